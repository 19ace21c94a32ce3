package tool

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/text"
	"goclaw/llm"
)

func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	s := open(t, Options{MaxOutput: 300}, map[string]string{
		"short":     "one\ntwo\nthree",
		"dir/below": "deep\n",
		"empty":     "",
		"blank":     "\n\n\n",
		"crlf":      "a\r\nb\r\n",
		"long":      numbered(100),
		"wide":      strings.Repeat("é", 200) + "\nend\n",
		"late":      "first\n" + strings.Repeat("x", 400) + "\n",
		"latin1":    "caf\xe9 au lait\n",
		"bin":       "\x7fELF\x02\x01\x01\x00\x00\x00",
		"pdf":       "%PDF-1.4\nhello\n",
	})
	tests := []struct {
		name string
		args o
		want string
	}{
		{"whole", o{"path": "short"}, "one\ntwo\nthree"},
		{"absolute", o{"path": filepath.Join(s.ws.dir, "short")}, "one\ntwo\nthree"},
		{"below", o{"path": "./dir/../dir/below"}, "deep\n"},
		{"from", o{"path": "short", "offset": 2}, "two\nthree"},
		{"some", o{"path": "short", "offset": 2, "limit": 1}, "two\n[lines 2 to 2 of 3; read on with offset 3]"},
		{"last", o{"path": "short", "offset": 3, "limit": 1}, "three"},
		{"limit beyond", o{"path": "short", "limit": 99}, "one\ntwo\nthree"},
		{"column", o{"path": "short", "offset": 3, "column": 3}, "ree"},
		{"empty", o{"path": "empty"}, "(the file is empty)"},
		{"blank", o{"path": "blank"}, "\n\n\n[lines 1 to 3 hold only white space]"},
		{"crlf", o{"path": "crlf"}, "a\r\nb\r\n"},
		{"wide", o{"path": "wide"}, strings.Repeat("é", 150) + "\n[line 1 of 2, cut before byte 301; read on with offset 1 and column 301]"},
		{"wide, on", o{"path": "wide", "column": 301}, strings.Repeat("é", 50) + "\nend\n"},
		{"late", o{"path": "late"}, "first\n[lines 1 to 1 of 2; read on with offset 2]"},
		{"latin1", o{"path": "latin1"}, "caf\uFFFD au lait\n[some bytes are not valid UTF-8 and are shown as \uFFFD]"},
		{"binary", o{"path": "bin"}, "bin is a binary file (application/octet-stream, 10 B), not shown. It begins with the bytes 7f 45 4c 46 02 01 01 00 00 00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ok(t, s, "read_file", tt.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := ok(t, s, "read_file", o{"path": "long"})
	contains(t, got, "line 1\n", "[lines 1 to 38 of 100; read on with offset 39]")
	contains(t, ok(t, s, "read_file", o{"path": "pdf"}), "application/pdf", "not shown")

	fails(t, s, "read_file", o{"path": "short", "offset": 9}, "offset 9 is past the end: the file has 3 lines")
	fails(t, s, "read_file", o{"path": "short", "offset": 3, "column": 99}, "column 99 is past the end of line 3")
	fails(t, s, "read_file", o{"path": "dir"}, "dir is a directory; list_directory")
	fails(t, s, "read_file", o{"path": "shrot"}, "shrot does not exist; did you mean short?")
	fails(t, s, "read_file", o{"path": "dir/belwo"}, "did you mean dir/below?")
	fails(t, s, "read_file", o{"path": "dri/below"}, "did you mean dir?")
	fails(t, s, "read_file", o{"path": "short/x"}, "a part of the path is not a directory")
}

func TestReadFileDefaultLimit(t *testing.T) {
	s := open(t, Options{}, map[string]string{"long": numbered(2500)})
	got := ok(t, s, "read_file", o{"path": "long"})
	contains(t, got, "line 2000\n[lines 1 to 2000 of 2500; read on with offset 2001]")
	if got := ok(t, s, "read_file", o{"path": "long", "offset": 2001}); got != numbered(2500)[len(numbered(2000)):] {
		t.Errorf("the rest is %q", got)
	}
}

// Following the notes gives back the whole file, whatever its lines are like.
func TestReadingOn(t *testing.T) {
	note := regexp.MustCompile(`\n?\[lines? [^\n]*read on with offset (\d+)(?: and column (\d+))?\]$`)
	blank := regexp.MustCompile(`\[lines \d+ to \d+ hold only white space\]\n?`)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		var b strings.Builder
		for range rng.IntN(40) {
			// Some lines exceed the output, some the buffer of the reader.
			n := []int{0, 5, 80, 700, 70_000}[min(rng.IntN(20)/4, 4)]
			b.WriteString(strings.Repeat("aé€😀", rng.IntN(n+1)/4) + "\n")
		}
		b.WriteString("end")
		want := b.String()
		s := open(t, Options{MaxOutput: 4096}, map[string]string{"f": want})
		var got strings.Builder
		args := o{"path": "f"}
		for steps := 0; ; steps++ {
			if steps > 10_000 {
				t.Fatal("no end")
			}
			text := ok(t, s, "read_file", args)
			if len(text) > 4096+noteRoom {
				t.Fatalf("%d bytes in one result", len(text))
			}
			text = blank.ReplaceAllString(text, "")
			m := note.FindStringSubmatchIndex(text)
			if m == nil {
				got.WriteString(text)
				break
			}
			args = o{"path": "f"}
			args["offset"], _ = strconv.Atoi(text[m[2]:m[3]])
			if m[4] >= 0 {
				args["column"], _ = strconv.Atoi(text[m[4]:m[5]])
				got.WriteString(text[:m[0]])
			} else {
				got.WriteString(text[:m[0]] + "\n")
			}
		}
		if got.String() != want {
			t.Fatalf("case %d: read %d bytes that differ from the %d of the file", i, got.Len(), len(want))
		}
	}
}

func TestReadImage(t *testing.T) {
	palette := color.Palette{color.Black}
	img := image.NewPaletted(image.Rect(0, 0, 30, 20), palette)
	encode := func(f func(*bytes.Buffer) error) string {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	pngData := encode(func(b *bytes.Buffer) error { return png.Encode(b, img) })
	huge := encode(func(b *bytes.Buffer) error {
		return png.Encode(b, image.NewPaletted(image.Rect(0, 0, 8001, 1), palette))
	})
	// An extended WebP of 30 x 20 with an empty body.
	webpData := "RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x13\x00\x00"
	files := map[string]string{
		"a.png":        pngData,
		"b.jpg":        encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) }),
		"c.gif":        encode(func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) }),
		"d.webp":       webpData,
		"misnamed.txt": pngData,
		"torn.png":     pngData[:len(pngData)-12],
		"head.png":     pngData[:10],
		"torn.webp":    strings.Replace(webpData, "\x16", "\x99", 1),
		"huge.png":     huge,
		"heavy.png":    pngData + strings.Repeat("x", llm.MaxImage),
	}
	s := open(t, Options{}, files)
	for name, mime := range map[string]string{"a.png": "image/png", "b.jpg": "image/jpeg", "c.gif": "image/gif", "d.webp": "image/webp", "misnamed.txt": "image/png"} {
		r := run(t, s, "read_file", o{"path": name})
		want := []llm.Block{
			llm.Text{Text: fmt.Sprintf("%s, %s, 30 x 20 pixels", mime, text.Bytes(int64(len(files[name]))))},
			llm.Image{MIME: mime, Data: base64.StdEncoding.EncodeToString([]byte(files[name]))},
		}
		if diff := cmp.Diff(want, r.Blocks); diff != "" || r.IsError {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, head := range map[string]string{
		"lossy":    "RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x1e\x00\x14\x40",
		"lossless": "RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\x1d\xc0\x04\x00\x00\x00\x00\x00\x00",
	} {
		im, err := llm.NewImage([]byte(head))
		if w, h := im.Size(); w != 30 || h != 20 || err != nil {
			t.Errorf("%s WebP: %d x %d, %v", name, w, h, err)
		}
	}
	fails(t, s, "read_file", o{"path": "torn.png"}, "damaged", "cut short")
	fails(t, s, "read_file", o{"path": "head.png"}, "damaged")
	fails(t, s, "read_file", o{"path": "torn.webp"}, "damaged", "cut short")
	fails(t, s, "read_file", o{"path": "huge.png"}, "8001 x 1", "8000 pixels")
	fails(t, s, "read_file", o{"path": "heavy.png"}, "larger than the 3.8 MB that can be sent")
}

func TestListDirectory(t *testing.T) {
	s := open(t, Options{}, map[string]string{
		"b.txt": "12345", "a.txt": strings.Repeat("x", 2048), "zdir/inner/deep.txt": "x", "zdir/f": "", "adir/g": "1",
		".git/config": "x", "with\nnewline": "x", " lead": "",
	})
	for link, to := range map[string]string{"link": "b.txt", "out": "/etc/passwd", "loop": "."} {
		if err := os.Symlink(to, filepath.Join(s.ws.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.ws.dir, "adir", "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args o
		want string
	}{
		{"top", o{}, `
.git/
adir/
zdir/
" lead"  0 B
a.txt  2.0 KB
b.txt  5 B
link  -> b.txt
loop  -> .
out  -> /etc/passwd
"with\nnewline"  1 B
`},
		{"tree", o{"path": ".", "depth": 20}, `
.git/
  [not entered: list it by its path]
adir/
  none/
  g  1 B
zdir/
  inner/
    deep.txt  1 B
  f  0 B
" lead"  0 B
a.txt  2.0 KB
b.txt  5 B
link  -> b.txt
loop  -> .
out  -> /etc/passwd
"with\nnewline"  1 B
`},
		{"below", o{"path": "zdir"}, "\ninner/\nf  0 B\n"},
		{"two levels", o{"path": "zdir", "depth": 2}, "\ninner/\n  deep.txt  1 B\nf  0 B\n"},
		{"unentered by its path", o{"path": ".git", "depth": 2}, "\nconfig  1 B\n"},
		{"empty", o{"path": "adir/none"}, "\n(the directory is empty)"},
		{"absolute", o{"path": s.ws.dir + "/adir"}, "\nnone/\ng  1 B\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, "\n"+ok(t, s, "list_directory", tt.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
	fails(t, s, "list_directory", o{"path": "a.txt"}, "a.txt is not a directory; read_file")
	fails(t, s, "list_directory", o{"path": "zdri"}, "did you mean zdir?")
}

func TestListDirectoryIsCapped(t *testing.T) {
	files := map[string]string{"last/f": ""}
	for i := range 1200 {
		files[fmt.Sprintf("first/%04d", i)] = ""
	}
	s := open(t, Options{}, files)
	got := ok(t, s, "list_directory", o{"path": "first"})
	contains(t, got, "0999  0 B\n[200 more entries not shown")
	// The neighbours of a large directory are seen all the same.
	got = ok(t, s, "list_directory", o{"depth": 3})
	contains(t, got, "first/\n", "last/\n", "[202 more entries not shown", "[not entered: the listing is full]")

	s = open(t, Options{MaxOutput: 300, Workspace: s.ws.dir}, nil)
	got = ok(t, s, "list_directory", o{"path": "first"})
	if len(got) > 300+noteRoom {
		t.Errorf("%d bytes", len(got))
	}
	contains(t, got, "more lines not shown")
}

func TestWriteFile(t *testing.T) {
	s := open(t, Options{}, map[string]string{"old": "12345", "note": "a", "dir/f": "x"})
	dir := s.ws.dir
	tests := []struct {
		name string
		args o
		want string // of the result
		file string // contents afterwards
	}{
		{"new", o{"path": "new", "content": "hello"}, "made new with 5 bytes", "hello"},
		{"parents", o{"path": "a/b/c", "content": "x"}, "made a/b/c with 1 bytes", "x"},
		{"replace", o{"path": "old", "content": "abc"}, "wrote 3 bytes to old, which had 5", "abc"},
		{"empty", o{"path": "old", "content": ""}, "wrote 0 bytes to old, which had 3", ""},
		{"append", o{"path": "note", "content": "b\n", "append": true}, "added 2 bytes to note, which now has 4", "a\nb\n"},
		{"append again", o{"path": "note", "content": "c\n", "append": true}, "added 2 bytes to note, which now has 6", "a\nb\nc\n"},
		{"append to none", o{"path": "fresh", "content": "c", "append": true}, "made fresh with 1 bytes", "c"},
		{"newline in the name", o{"path": "two\nlines", "content": "c"}, `made "two\nlines" with 1 bytes`, "c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ok(t, s, "write_file", tt.args); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := get(t, filepath.Join(dir, tt.args["path"].(string))); got != tt.file {
				t.Errorf("file holds %q, want %q", got, tt.file)
			}
		})
	}
	fails(t, s, "write_file", o{"path": "dir", "content": "x"}, "dir is a directory")
	fails(t, s, "write_file", o{"path": ".", "content": "x"}, ". is a directory")
	fails(t, s, "write_file", o{"path": "dir/f/g", "content": "x"}, "not a directory")
	noTemps(t, dir)
}

// noTemps fails if a temporary file was left anywhere below dir.
func noTemps(t testing.TB, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s was left behind", path)
		}
		return nil
	})
}

func TestWriteKeepsTheMode(t *testing.T) {
	s := open(t, Options{}, map[string]string{"run.sh": "#!/bin/sh\n", "secret": "x", "fixed": "x"})
	modes := map[string]os.FileMode{"run.sh": 0o755, "secret": 0o600, "fixed": 0o444}
	for name, m := range modes {
		if err := os.Chmod(filepath.Join(s.ws.dir, name), m); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, s, "write_file", o{"path": "run.sh", "content": "#!/bin/sh\ntrue\n"})
	ok(t, s, "edit_file", o{"path": "secret", "old_string": "x", "new_string": "y"})
	fails(t, s, "write_file", o{"path": "fixed", "content": "y"}, "fixed is read-only (mode 0444)")
	fails(t, s, "edit_file", o{"path": "fixed", "old_string": "x", "new_string": "y"}, "read-only")
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(s.ws.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", name, got, want)
		}
	}
}

func TestWriteThroughLinks(t *testing.T) {
	s := open(t, Options{}, map[string]string{"real/f": "old", "x": "top"})
	dir := s.ws.dir
	for link, to := range map[string]string{
		"link":      "real/f",
		"twice":     "link",
		"dangling":  "real/new",
		"real/up":   "../x",
		"d":         "real",
		"loop":      "loop",
		"real/here": dir + "/x",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, s, "write_file", o{"path": "twice", "content": "one"})
	ok(t, s, "edit_file", o{"path": "link", "old_string": "one", "new_string": "two"})
	ok(t, s, "write_file", o{"path": "dangling", "content": "three"})
	ok(t, s, "write_file", o{"path": "d/up", "content": "four"})
	got := map[string]string{"real/f": get(t, dir+"/real/f"), "real/new": get(t, dir+"/real/new"), "x": get(t, dir+"/x")}
	if diff := cmp.Diff(map[string]string{"real/f": "two", "real/new": "three", "x": "four"}, got); diff != "" {
		t.Error(diff)
	}
	for _, link := range []string{"link", "twice", "dangling", "real/up"} {
		if info, err := os.Lstat(filepath.Join(dir, link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no longer a link", link)
		}
	}
	fails(t, s, "write_file", o{"path": "loop", "content": "x"}, "more than 40 links")
	fails(t, s, "write_file", o{"path": "real/here", "content": "x"}, "absolute path")
	noTemps(t, dir)
}

// Whoever reads while a file is replaced sees the old text or the new one.
func TestWriteIsAtomic(t *testing.T) {
	a, b := strings.Repeat("a", 200_000), strings.Repeat("b", 200_000)
	s := open(t, Options{}, map[string]string{"f": a})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := get(t, filepath.Join(s.ws.dir, "f")); got != a && got != b {
				t.Errorf("saw a torn file of %d bytes", len(got))
				return
			}
		}
	})
	for i := range 20 {
		ok(t, s, "write_file", o{"path": "f", "content": []string{a, b}[i%2]})
	}
	close(stop)
	wg.Wait()
}

func TestEditFile(t *testing.T) {
	tests := []struct {
		name           string
		text, old, new string
		all            bool
		want           string // the file afterwards, "" if it must fail
		says           []string
	}{
		{"once", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n",
			[]string{"replaced once in f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"}},
		{"delete a line", "a\nb\nc\n", "b\n", "", false, "a\nc\n", []string{"@@ -1,3 +1,2 @@\n a\n-b\n c\n"}},
		{"join lines", "a\nb\nc\n", "a\n", "a ", false, "a b\nc\n", []string{"@@ -1,3 +1,2 @@\n-a\n-b\n+a b\n c\n"}},
		{"insert", "a\nc\n", "a\n", "a\nb\n", false, "a\nb\nc\n", []string{"@@ -1,2 +1,3 @@\n a\n+b\n c\n"}},
		{"context is not a change", "a\nb\nc\nd\n", "a\nb\nc\n", "a\nX\nc\n", false, "a\nX\nc\nd\n", []string{" a\n-b\n+X\n c\n d\n"}},
		{"no newline at the end", "a\nb", "b", "c", false, "a\nc", []string{" a\n-b\n+c\n"}},
		{"all", "x1\nx2\n-\nx3\n", "x", "y", true, "y1\ny2\n-\ny3\n",
			[]string{"replaced 3 times in f\n@@ -1,4 +1,4 @@\n-x1\n+y1\n-x2\n+y2\n -\n-x3\n+y3\n"}},
		{"all on one line", "x x x\n", "x", "yy", true, "yy yy yy\n", []string{"-x x x\n+yy yy yy\n"}},
		{"all, line breaks gone", "a\nb\nc\nd\n", "\n", ",", true, "a,b,c,d,", []string{"-a\n-b\n-c\n-d\n+a,b,c,d,\n"}},
		{"far apart", "x\n" + strings.Repeat("-\n", 20) + "x\n", "x", "y\ny", true, "y\ny\n" + strings.Repeat("-\n", 20) + "y\ny\n",
			[]string{"@@ -1,4 +1,5 @@\n-x\n+y\n+y\n -\n -\n -\n@@ -19,4 +20,5 @@\n -\n -\n -\n-x\n+y\n+y\n"}},
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\n", false, "a\r\nB\r\nc\r\n", []string{" a\n-b\n+B\n c\n"}},
		{"invalid bytes stay", "caf\xe9\nb\n", "b", "c", false, "caf\xe9\nc\n", []string{"-b\n+c\n"}},
		{"several", "foo\nbar\nfoo\n\nfoo\n", "foo", "x", false, "",
			[]string{"f: old_string was found 3 times, at lines 1, 3, 5", "replace_all"}},
		{"overlapping", "aaa\n", "aa", "b", false, "", []string{"found 2 times, at lines 1, 1"}},
		{"many", strings.Repeat("x\n", 30), "x", "y", false, "", []string{"found 30 times", "19, 20, ..."}},
		{"none", "a\nb\n", "zzz", "x", false, "", []string{"f: old_string was not found; read the file again"}},
		{"white space", "func f() {\n\treturn 1\n}\n", "func f() {\n    return 1\n}", "x", false, "",
			[]string{"not found exactly; lines 1 to 3 differ from it in white space only:\nfunc f() {\n\treturn 1\n}"}},
		{"changed below", "head\nbody\n", "head\nother\n", "x", false, "", []string{"its first line is line 1 of the file"}},
		{"same", "a\n", "a", "a", false, "", []string{"nothing to change"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, Options{}, map[string]string{"f": tt.text})
			args := o{"path": "f", "old_string": tt.old, "new_string": tt.new}
			if tt.all {
				args["replace_all"] = true
			}
			want := tt.want
			if want == "" {
				fails(t, s, "edit_file", args, tt.says...)
				want = tt.text
			} else {
				contains(t, ok(t, s, "edit_file", args), tt.says...)
			}
			if got := get(t, filepath.Join(s.ws.dir, "f")); got != want {
				t.Errorf("file holds %q, want %q", got, want)
			}
		})
	}
	s := open(t, Options{}, map[string]string{"dir/f": "x"})
	fails(t, s, "edit_file", o{"path": "none", "old_string": "a", "new_string": "b"}, "none does not exist")
	fails(t, s, "edit_file", o{"path": "dir", "old_string": "a", "new_string": "b"}, "dir is a directory")
}

func TestDiffIsSmall(t *testing.T) {
	s := open(t, Options{}, map[string]string{"f": strings.Repeat("x\n"+strings.Repeat("-\n", 9), 500), "wide": strings.Repeat("y", 9000) + "x"})
	got := ok(t, s, "edit_file", o{"path": "f", "old_string": "x", "new_string": "y", "replace_all": true})
	contains(t, got, "replaced 500 times", "more changes not shown]")
	if len(got) > 3*maxDiff {
		t.Errorf("%d bytes", len(got))
	}
	got = ok(t, s, "edit_file", o{"path": "wide", "old_string": "x", "new_string": "z"})
	if len(got) > 3*maxDiffLine {
		t.Errorf("%d bytes for one long line", len(got))
	}
	got = ok(t, s, "edit_file", o{"path": "f", "old_string": strings.Repeat("y\n"+strings.Repeat("-\n", 9), 500), "new_string": strings.Repeat("long line\n", 9000)})
	contains(t, got, "rest of this change is not shown")
	if len(got) > 3*maxDiff {
		t.Errorf("%d bytes for one long change", len(got))
	}
}

// A diff's hunks, applied to the old text, give the new one.
func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "x\ny", true)
	f.Add("a\n\nb", "\n", "", true)
	f.Add("abab\nab", "ab", "\n", true)
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		if old == "" || old == new || len(text) > 1000 {
			return
		}
		e, err := plan(text, old, new, all)
		if err != nil {
			return
		}
		lines := splitLines(text)
		var got strings.Builder
		at := 0
		for _, c := range e.changes(lines) {
			if c.from < at || c.to < c.from {
				t.Fatalf("change from line %d to %d behind line %d", c.from, c.to, at)
			}
			got.WriteString(strings.Join(lines[at:c.from], "") + strings.Join(c.new, ""))
			at = c.to
		}
		got.WriteString(strings.Join(lines[at:], ""))
		if got.String() != e.apply() {
			t.Errorf("changes give %q, the edit gives %q", got.String(), e.apply())
		}
		e.diff()
	})
}

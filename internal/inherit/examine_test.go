package inherit_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/session"
	"goclaw/store/memory"
)

func TestExamine(t *testing.T) {
	answer := `{"type":"message","id":"2","parentId":"1","timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}],"stopReason":"toolUse"}}`
	failed := func(id int, text string) string {
		return fmt.Sprintf(`{"type":"message","id":"%d","parentId":"%d","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"%s"}],"isError":true}}`, id, id-1, text)
	}
	tests := map[string]struct {
		lines []string
		want  []string
	}{
		"well":              {[]string{header("s"), userLine("1", "", "a"), userLine("2", "1", "b")}, nil},
		"no header":         {[]string{userLine("1", "", "a")}, []string{"0 the file has no header"}},
		"damaged line":      {[]string{header("s"), userLine("1", "", "a"), `{"type":`, userLine("2", "1", "b")}, []string{"3 not a JSON line: it breaks off at byte 8"}},
		"dangling":          {[]string{header("s"), userLine("1", "", "a"), userLine("2", "x", "b")}, []string{`3 its parent "x" is nowhere in the file`, "0 programs that do not repair this show only part of the history"}},
		"own parent":        {[]string{header("s"), userLine("1", "1", "a")}, []string{"2 it is its own parent"}},
		"the same id":       {[]string{header("s"), userLine("1", "", "a"), userLine("1", "", "b")}, []string{`3 the id "1" is on line 2 already`}},
		"no result":         {[]string{header("s"), userLine("1", "", "a"), answer}, []string{`3 the call "c1" has no result`}},
		"silent failure":    {[]string{header("s"), userLine("1", "", "a"), answer, failed(3, ""), failed(4, "why"), failed(5, " \\n")}, []string{`4 the failed result of "c1" says nothing`, `6 the failed result of "c1" says nothing`}},
		"odd name":          {[]string{header("s"), userLine("1", "", "a"), strings.Replace(answer, "bash", "functions.bash", 1), failed(3, "why")}, []string{`3 the call "c1" names the tool "functions.bash"`}},
		"compacts too much": {[]string{header("s"), userLine("1", "", "a"), `{"type":"compaction","id":"2","parentId":"1","timestamp":"2026-11-15T00:00:01.000Z","summary":"s","firstKeptEntryId":"gone","tokensBefore":1}`}, []string{`3 it keeps records from "gone", which does not precede it`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.jsonl")
			if err := os.WriteFile(file, []byte(strings.Join(test.lines, "\n")+"\n"), 0o400); err != nil {
				t.Fatal(err)
			}
			cat, err := inherit.Find(context.Background(), []string{file}, inherit.FindOptions{})
			if err != nil {
				t.Fatal(err)
			}
			x, err := doctor.Examine(context.Background(), cat.Transcripts[0])
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range x.Findings {
				got = append(got, fmt.Sprintf("%d %s", f.Line, f.What))
				if f.Cost == "" {
					t.Errorf("%v: what does it cost?", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParentAhead: what it costs that a parent comes after its child.
func TestParentAhead(t *testing.T) {
	for name, test := range map[string]struct{ lines, want []string }{
		"lost": {[]string{userLine("1", "", "a"), userLine("3", "2", "c"), userLine("2", "1", "b"), userLine("4", "3", "d")},
			[]string{`its parent "2" comes after it, on line 4: the message "2" is lost to OpenClaw and goclaw, which do not look ahead; pi shows it, and a repaired copy has it`}},
		"circle": {[]string{userLine("1", "2", "a"), userLine("2", "1", "b")},
			[]string{`its parent "2" comes after it, on line 3: pi hangs on it: they continue each other`}},
	} {
		file := filepath.Join(t.TempDir(), "s.jsonl")
		write(t, file, header("s")+"\n"+strings.Join(test.lines, "\n")+"\n")
		cat, err := inherit.Find(t.Context(), []string{file}, inherit.FindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		x, err := doctor.Examine(t.Context(), cat.Transcripts[0])
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range x.Findings {
			if strings.Contains(f.What, "comes after") {
				got = append(got, f.What+": "+f.Cost)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestLongLineIsCopied: a line that is only too long for goclaw is said to be
// that, and a repaired copy has it where it was, for whoever can read it.
func TestLongLineIsCopied(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.jsonl")
	long := userLine("2", "1", strings.Repeat("x", 33<<20))
	whole := strings.Join([]string{header("s"), userLine("1", "", "a"), long, userLine("3", "2", "c"), userLine("4", "3", "d")}, "\n") + "\n"
	write(t, file, whole)
	cat, err := inherit.Find(t.Context(), []string{file}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := doctor.Examine(t.Context(), cat.Transcripts[0])
	if err != nil {
		t.Fatal(err)
	}
	if f := x.Findings[0]; f.Line != 3 || !strings.HasPrefix(f.Cost, "goclaw reads no line longer than 32 MiB") {
		t.Errorf("%v", f)
	}
	var b bytes.Buffer
	if err := doctor.Repair(t.Context(), cat.Transcripts[0], &b); err != nil {
		t.Fatal(err)
	}
	if b.String() != whole {
		t.Errorf("the copy of what is well otherwise has %d bytes, the file %d", b.Len(), len(whole))
	}
}

// TestRepairedReadsAlike: a repaired copy of every fixture gives, read as pi
// reads it, the context that the original gives where it is repaired, and has
// no finding left that a repair could remove.
func TestRepairedReadsAlike(t *testing.T) {
	ctx := context.Background()
	cat, err := inherit.Find(ctx, []string{unpacked(t)}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	n := 0
	// Of these the repaired branch lacks a message that pi shows, or would if it did
	// not hang: the copy has it, before another.
	more := map[string][2]string{
		"child-before-parent.jsonl":         {"assistant a1", "user q2"},
		"empty-string-parentId.jsonl":       {"user q2", "assistant a2"},
		"duplicate-id-cycle-HANGS-PI.jsonl": {"user q2", "user q3"},
	}
	for _, tr := range cat.Transcripts {
		var b bytes.Buffer
		if err := doctor.Repair(ctx, tr, &b); err != nil {
			t.Errorf("%s: %v", tr.Path, err)
			continue
		}
		src, err := session.Replay(tr.ID, tr.Records(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(src.Branch, func(r session.Record) bool { _, ok := r.Body.(session.Reset); return ok }) {
			continue // pi knows no reset
		}
		n++
		want := lines(src, src.ModelName())
		if m, ok := more[filepath.Base(tr.Path)]; ok {
			want = slices.Insert(want, slices.Index(want, m[1]), m[0])
		}
		for i, replay := range []replaying{session.Replay, session.ReplayStrict} {
			got, err := replay(tr.ID, codec.Read("", bytes.NewReader(b.Bytes()), codec.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Damage) > 0 {
				t.Errorf("%s: the copy is damaged: %v", tr.Path, got.Damage)
			}
			if diff := cmp.Diff(want, lines(got, src.ModelName())); diff != "" {
				t.Errorf("%s (strict %v): (-original +copy):\n%s", tr.Path, i == 1, diff)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d copies compared", n)
	}
}

// replaying is a way to read a log.
type replaying func(session.ID, iter.Seq2[session.Record, error]) (*session.Session, error)

// A line of an export that has changed since goclaw wrote it is named.
func TestExamineChangedLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.jsonl")
	text := header("s") + "\n" + seal(userLine("1", "", "said so")) + "\n" + seal(userLine("2", "1", "indeed")) + "\n"
	write(t, file, strings.Replace(text, "said so", "said no", 1))
	x, err := doctor.Examine(t.Context(), found(t, file))
	if err != nil || len(x.Findings) != 1 || x.Findings[0].Line != 2 || !strings.HasPrefix(x.Findings[0].What, "the line has changed since goclaw wrote it: ") {
		t.Errorf("%+v, %v", x.Findings, err)
	}
}

// Where a line gets another parent, or a header another key, its checksum is
// that of the new line: in a repaired copy, and in what is imported strictly.
func TestChangedLinesAreSealedAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.jsonl")
	lines := []string{seal(header("s")), seal(userLine("1", "", "a")), seal(userLine("2", "gone", "b")), userLine("3", "gone", "c")}
	write(t, file, strings.Join(lines, "\n")+"\n")
	x, err := doctor.Examine(t.Context(), found(t, file))
	if err != nil {
		t.Fatal(err)
	}
	copies := &doctor.Copy{Root: file, To: filepath.Join(dir, "repaired.jsonl")}
	if _, err := copies.Add(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	copies.Close()
	repaired, err := os.ReadFile(copies.To)
	if err != nil || !strings.Contains(string(repaired), `"parentId":"1"`) {
		t.Fatalf("the repaired copy is %s (%v)", repaired, err)
	}
	wantSealed(t, strings.Split(strings.TrimSpace(string(repaired)), "\n"), 3)
	st := memory.New()
	cat, err := inherit.Find(t.Context(), []string{file}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inherit.Import(t.Context(), st, cat, inherit.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	var stored []string
	for r, err := range st.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := codec.Native.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, string(line))
	}
	wantSealed(t, stored, 3)
}

func seal(line string) string { return string(native.Seal([]byte(line))) }

// wantSealed fails unless n of lines have a checksum, and all of those match.
func wantSealed(t *testing.T, lines []string, n int) {
	t.Helper()
	for _, l := range lines {
		sealed, err := native.Check([]byte(l))
		if err != nil {
			t.Errorf("%s: %v", l, err)
		}
		if sealed {
			n--
		}
		if strings.Count(l, `"crc32c"`) > 1 {
			t.Errorf("%s has two checksums", l)
		}
	}
	if n != 0 {
		t.Errorf("%d fewer lines than wanted have a checksum:\n%s", n, strings.Join(lines, "\n"))
	}
}

// found is the one transcript in file.
func found(t *testing.T, file string) *inherit.Transcript {
	t.Helper()
	cat, err := inherit.Find(t.Context(), []string{file}, inherit.FindOptions{})
	if err != nil || len(cat.Transcripts) != 1 {
		t.Fatalf("%+v, %v", cat, err)
	}
	return cat.Transcripts[0]
}

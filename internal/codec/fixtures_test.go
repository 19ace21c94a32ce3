package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/codec/native"
	"goclaw/llm"
	"goclaw/session"
)

// fixtures returns the files that real programs wrote: those in testdata, and
// the large ones if they are at hand.
func fixtures(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	paths, _ := filepath.Glob("testdata/*/*.jsonl*")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(filepath.ToSlash(p), "testdata/")] = b
	}
	if len(files) < 90 {
		t.Fatalf("only %d fixtures", len(files))
	}
	for _, name := range []string{"pi-0.73.1/large-6000.jsonl", "real-usage/large-session.jsonl"} {
		if b, err := os.ReadFile(filepath.Join("../../../shared/fixtures", name)); err == nil {
			files[name] = b
		}
	}
	return files
}

func readAll(t *testing.T, name string, b []byte, o Options) (recs []session.Record, damage []*session.Damage) {
	t.Helper()
	for r, err := range Read(name, bytes.NewReader(b), o) {
		if d, ok := err.(*session.Damage); ok {
			damage = append(damage, d)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
		if r.Seq != session.Seq(len(recs)) {
			t.Fatalf("record %d has Seq %d", len(recs), r.Seq)
		}
	}
	return recs, damage
}

func encodeAll(t *testing.T, recs []session.Record) string {
	t.Helper()
	var b strings.Builder
	for _, r := range recs {
		line, err := Native.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// damaged are the fixtures with lines that cannot be read, and what is said.
var damaged = map[string][]string{
	"edge/malformed-line-in-middle.jsonl": {`edge/malformed-line-in-middle.jsonl:6: not a JSON line: no key at byte 1 (10 bytes, after record 5)`},
	"edge/malformed-then-header.jsonl":    {`edge/malformed-then-header.jsonl:1: not a JSON line: not a JSON value at byte 0 (8 bytes, after record 0)`},
	"edge/malformed-parent-lost.jsonl":    {`edge/malformed-parent-lost.jsonl:6: not a JSON line: it breaks off at byte 40 (41 bytes, after record 5)`},
	"edge/nul-bytes-in-middle.jsonl":      {`edge/nul-bytes-in-middle.jsonl:7: not a JSON line: a NUL byte at byte 0 (9 bytes, after record 6)`},
	"edge/torn-last-line.jsonl":           {`edge/torn-last-line.jsonl:10: the last line is incomplete: not a JSON line: it breaks off at byte 396 (396 bytes, after record 9)`},
	"edge/torn-utf8-last-line.jsonl":      {`edge/torn-utf8-last-line.jsonl:3: the last line is incomplete: not a JSON line: invalid UTF-8 at byte 134 (135 bytes, after record 2)`},
}

// Every native file reads, and is written back byte for byte; what is damaged
// is named, and what is blank says nothing.
func TestFixturesRoundTrip(t *testing.T) {
	for name, file := range fixtures(t) {
		if strings.HasPrefix(name, "claw0") || strings.HasPrefix(name, "pi-v") || strings.HasPrefix(name, "real-usage") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			recs, damage := readAll(t, name, file, Options{})
			var said []string
			for _, d := range damage {
				said = append(said, d.Error())
			}
			if diff := cmp.Diff(damaged[name], said); diff != "" {
				t.Errorf("damage (-want +got):\n%s", diff)
			}
			lost := map[int]bool{}
			for _, d := range damage {
				lost[d.Line] = true
			}
			var want strings.Builder
			for i, line := range strings.Split(string(file), "\n") {
				if strings.TrimSpace(line) != "" && !lost[i+1] {
					want.WriteString(line + "\n")
				}
			}
			if got := encodeAll(t, recs); got != want.String() {
				t.Errorf("written back:\n%s\nwant:\n%s", got, want.String())
			}
			if f, err := Detect(bytes.NewReader(file)); err != nil || f != FormNative && len(recs) > 0 {
				t.Errorf("Detect = %q, %v", f, err)
			}
		})
	}
}

// pi's own count of entries, and the files it wrote when it brought old ones
// up to date.
func TestFixturesAsPi(t *testing.T) {
	var want map[string]struct {
		Entries, BytesAfter int
		FileAfter           string
	}
	b, err := os.ReadFile("testdata/pi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	files := fixtures(t)
	for name, w := range want {
		t.Run(name, func(t *testing.T) {
			recs, _ := readAll(t, name, files[name], Options{})
			entries := 0
			for _, r := range recs {
				_, header := r.Body.(session.Header)
				if !header && string(native.Trim(r.Raw)) != "null" {
					entries++
				}
			}
			if entries != w.Entries {
				t.Errorf("%d entries, pi has %d", entries, w.Entries)
			}
			if w.BytesAfter == 0 {
				return
			}
			got := encodeAll(t, recs)
			if w.FileAfter != "" {
				if diff := cmp.Diff(w.FileAfter, got); diff != "" {
					t.Errorf("(-pi +got):\n%s", diff)
				}
			}
			if len(got) != w.BytesAfter {
				t.Errorf("%d bytes, pi wrote %d", len(got), w.BytesAfter)
			}
			again, _ := readAll(t, name, []byte(got), Options{})
			if !reflect.DeepEqual(recs, again) {
				t.Errorf("the new file reads otherwise:\n%s", cmp.Diff(recs, again))
			}
		})
	}
}

// encoding/json sees the same in every line.
func TestFixturesAsEncodingJSON(t *testing.T) {
	messages := 0
	for name, file := range fixtures(t) {
		if strings.HasPrefix(name, "claw0") {
			continue
		}
		for i, line := range bytes.Split(file, []byte("\n")) {
			var v struct {
				Type, ID, Summary, CustomType string
				ParentID                      *string
				Message                       struct {
					Role, Model, StopReason, ToolCallID, Command string
					Content                                      json.RawMessage
					Usage                                        llm.Usage
				}
			}
			b := native.Trim(line)
			if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &v) != nil {
				continue
			}
			recs, err := Native.Decode(line)
			if err != nil {
				t.Fatalf("%s:%d: %v", name, i+1, err)
			}
			r := recs[0]
			if v.Type == "session" {
				continue
			}
			if r.ID != v.ID || v.ParentID != nil && r.Parent != *v.ParentID {
				t.Fatalf("%s:%d: id %q, parent %q", name, i+1, r.ID, r.Parent)
			}
			var texts []string
			for _, s := range contentTexts(v.Message.Content) {
				texts = append(texts, fmt.Sprint(s))
			}
			var got []string
			switch b := r.Body.(type) {
			case session.Message:
				messages++
				blocks := b.Blocks
				if res := b.Results(); len(res) == 1 {
					if blocks = res[0].Blocks; res[0].CallID != v.Message.ToolCallID {
						t.Errorf("%s:%d: result of %q", name, i+1, res[0].CallID)
					}
				}
				for _, bl := range blocks {
					switch bl := bl.(type) {
					case llm.Text:
						got = append(got, bl.Text)
					case llm.Thinking:
						got = append(got, bl.Text)
					case llm.ToolCall:
						got = append(got, bl.ID+bl.Name+string(bl.Args))
					case llm.Image:
						got = append(got, bl.Data)
					default:
						t.Errorf("%s:%d: a block %T", name, i+1, bl)
					}
				}
				if b.Model != v.Message.Model || string(b.Stop) != v.Message.StopReason || b.Usage != v.Message.Usage {
					t.Errorf("%s:%d: %q, %q, %v", name, i+1, b.Model, b.Stop, b.Usage)
				}
			case session.CustomMessage:
				if v.Type != "message" {
					continue
				}
				for _, bl := range b.Blocks {
					got = append(got, bl.(llm.Text).Text)
				}
			case session.Shell:
				if b.Command != v.Message.Command {
					t.Errorf("%s:%d: command %q", name, i+1, b.Command)
				}
			case session.Compaction:
				if b.Summary != v.Summary {
					t.Errorf("%s:%d: summary %q", name, i+1, b.Summary)
				}
			case session.Unknown:
				if v.Type == "message" || v.Type == "compaction" {
					t.Errorf("%s:%d: unknown", name, i+1)
				}
			}
			if diff := cmp.Diff(texts, got); diff != "" {
				t.Errorf("%s:%d: (-encoding/json +got)\n%s", name, i+1, diff)
			}
		}
	}
	if messages < 700 {
		t.Errorf("only %d messages in the fixtures", messages)
	}
}

func contentTexts(content json.RawMessage) (out []string) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		if s != "" {
			out = append(out, s)
		}
		return out
	}
	var blocks []struct {
		Text, Thinking, Data, ID, Name string
		Arguments                      json.RawMessage
	}
	if json.Unmarshal(content, &blocks) == nil {
		for _, b := range blocks {
			out = append(out, b.Text+b.Thinking+b.Data+b.ID+b.Name+string(b.Arguments))
		}
	}
	return out
}

// The index of a version 1 compaction counts the header.
func TestFirstKeptIndex(t *testing.T) {
	file := fixtures(t)["pi-v1/compaction-by-index.jsonl"]
	recs, _ := readAll(t, "v1", file, Options{})
	kept := ""
	for _, r := range recs {
		if c, ok := r.Body.(session.Compaction); ok {
			kept = c.FirstKept
		}
	}
	for _, r := range recs {
		if r.ID == kept {
			if m, ok := r.Body.(session.Message); !ok || m.Text() != "q2" {
				t.Errorf("the first kept record is %+v", r.Body)
			}
			return
		}
	}
	t.Errorf("nothing has the id %q", kept)
}

// What the whole reading adds up to: the turns of each claw0 file, in order.
func TestClaw0Fixtures(t *testing.T) {
	files := fixtures(t)
	for _, c := range []struct {
		name string
		form Form
		want []string
	}{
		{"claw0-old/main_cli_user_ab3aae252395.jsonl", FormClaw0Old, []string{
			`session main:cli:user ab3aae252395 2026-11-15T01:00:47.039Z`,
			`user hello there`,
			`assistant Answer 1 to: hello there ✓ 你好`,
			`user what time is it [time]`,
			`assistant Checking the time. get_current_time(toolu_r1_002)`,
			`result toolu_r1_002 get_current_time 2026-11-15T01:00:47.045051+00:00`,
			`assistant Answer 3 to: what time is it [time] ✓ 你好`,
			`user two rounds [list] [time]`,
			`assistant list_directory(toolu_r1_005)`,
			`result toolu_r1_005 list_directory   [file] notes.txt  (9 bytes)`,
			`assistant Checking the time. get_current_time(toolu_r1_006)`,
			`result toolu_r1_006 get_current_time 2026-11-15T01:00:47.050117+00:00`,
			`assistant Answer 7 to: two rounds [list] [time] ✓ 你好`,
			`custom claw0 toolu_r1_004a`,
			`user after the error`,
			`assistant Answer 10 to: after the error ✓ 你好`,
			`custom claw0 toolu_r1_008`,
			`user resumed after restart [time]`,
			`assistant Checking the time. get_current_time(toolu_r2_001)`,
			`result toolu_r2_001 get_current_time 2026-11-15T01:00:47.479453+00:00`,
			`assistant Answer 2 to: resumed after restart [time] ✓ 你好`,
		}},
		{"claw0-old/main_cli_user_010047_c7475b50cc81.jsonl", FormClaw0Old, []string{
			`session main:cli:user_010047 c7475b50cc81 2026-11-15T01:00:47.057Z`,
			`user second session q1`,
			`assistant Answer 11 to: second session q1 ✓ 你好`,
		}},
		{"claw0-new/bc17fa9d53c2.jsonl", FormClaw0, []string{
			`user second session q1`,
			`assistant Answer 13 to: second session q1 ✓ 你好`,
			`user overflow please`,
			`user second session after overflow`,
			`user resumed after restart [both]`,
			`assistant Two things. list_directory(toolu_r2_001a) read_file(toolu_r2_001b)`,
			"result toolu_r2_001a list_directory [dir]  .sessions\n[file] notes.txt",
			"result toolu_r2_001b read_file my notes\n",
			`assistant Answer 2 to: resumed after restart [both] ✓ 你好`,
		}},
		{"claw0-new/fbe25e463d69.jsonl", FormClaw0, []string{
			`user hello there`,
			`assistant Answer 1 to: hello there ✓ 你好`,
			`user what time is it [time]`,
			`assistant Checking the time. get_current_time(toolu_r1_002)`,
			`result toolu_r1_002 get_current_time 2026-11-15 01:00:46 UTC`,
			`assistant Answer 3 to: what time is it [time] ✓ 你好`,
			`user do both [both]`,
			`assistant Two things. list_directory(toolu_r1_004a) read_file(toolu_r1_004b)`,
			"result toolu_r1_004a list_directory [dir]  .sessions\n[file] notes.txt",
			"result toolu_r1_004b read_file my notes\n",
			`assistant Answer 5 to: do both [both] ✓ 你好`,
			`user two rounds [list] [time]`,
			`assistant list_directory(toolu_r1_006)`,
			"result toolu_r1_006 list_directory [dir]  .sessions\n[file] notes.txt",
			`assistant Checking the time. get_current_time(toolu_r1_007)`,
			`result toolu_r1_007 get_current_time 2026-11-15 01:00:46 UTC`,
			`assistant Answer 8 to: two rounds [list] [time] ✓ 你好`,
			`user late apierror [list]`,
			`assistant list_directory(toolu_r1_009)`,
			"result toolu_r1_009 list_directory [dir]  .sessions\n[file] notes.txt",
			`user apierror now`,
			`user after errors`,
			`assistant Answer 12 to: after errors ✓ 你好`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := files[c.name]
			if f, err := Detect(bytes.NewReader(file)); f != c.form || err != nil {
				t.Errorf("Detect = %q, %v", f, err)
			}
			recs, damage := readAll(t, c.name, file, Options{})
			if len(damage) > 0 {
				t.Error(damage)
			}
			if diff := cmp.Diff(c.want, tell(recs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			parent := ""
			for _, r := range recs {
				if again, err := Native.Decode(r.Raw); err != nil {
					t.Error(err)
				} else if again[0].Seq = r.Seq; !cmp.Equal(again[0], r) {
					t.Errorf("its native line says something else:\n%s", cmp.Diff(r, again[0]))
				}
				if _, ok := r.Body.(session.Header); ok {
					continue
				}
				if r.Parent != parent || r.ID == "" {
					t.Errorf("record %d (%s) continues %q, want %q", r.Seq, r.ID, r.Parent, parent)
				}
				parent = r.ID
			}
			if diff := cmp.Diff(string(file), originals(t, recs)); diff != "" {
				t.Errorf("the lines it was made of (-file +got):\n%s", diff)
			}
		})
	}
}

// tell puts records into words.
func tell(recs []session.Record) (out []string) {
	for _, r := range recs {
		switch b := r.Body.(type) {
		case session.Header:
			out = append(out, fmt.Sprintf("session %s %s %s", b.Key, b.ID, r.Time.Format("2006-01-02T15:04:05.000Z07:00")))
		case session.Custom:
			out = append(out, "custom "+b.Type+" "+regexp.MustCompile(`toolu_\w+`).FindString(string(b.Data)))
		case session.Message:
			s := string(b.Role)
			for _, bl := range b.Blocks {
				switch bl := bl.(type) {
				case llm.Text:
					s += " " + bl.Text
				case llm.ToolCall:
					s += " " + bl.Name + "(" + bl.ID + ")"
				case llm.ToolResult:
					s = "result " + bl.CallID + " " + bl.Name + " " + bl.Text()
				}
			}
			out = append(out, s)
		default:
			out = append(out, fmt.Sprintf("%T", b))
		}
	}
	return out
}

// originals puts together the file that claw0 records were made of, by the
// numbers of their lines.
func originals(t *testing.T, recs []session.Record) string {
	t.Helper()
	lines := map[int]string{}
	next := 1
	for _, r := range recs {
		var v struct {
			Type  string
			Claw0 []json.RawMessage
			Data  json.RawMessage
		}
		if err := json.Unmarshal(r.Raw, &v); err != nil {
			t.Fatal(err)
		}
		n := 1
		if r.ID != "" {
			if _, err := fmt.Sscanf(r.ID[:8], "%x", &n); err != nil {
				t.Fatal(err)
			}
		}
		if v.Type == "custom" {
			v.Claw0 = []json.RawMessage{v.Data}
		}
		// A doubled call stands before its result, whose id counts.
		if m, ok := r.Body.(session.Message); ok && len(m.Results()) == 1 {
			n -= len(v.Claw0) - 1
		}
		for i, l := range v.Claw0 {
			lines[n+i] = string(l)
			next = max(next, n+i+1)
		}
	}
	var b strings.Builder
	for i := 1; i < next; i++ {
		b.WriteString(lines[i] + "\n")
	}
	return b.String()
}

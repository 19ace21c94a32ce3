package codec

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// rebuild makes messages of lines as claw0 does, by its own simple rules.
func rebuild(t *testing.T, old bool, file string) any {
	t.Helper()
	type m = map[string]any
	var out []m
	lastIs := func(role string) ([]any, bool) {
		if len(out) == 0 || out[len(out)-1]["role"] != role {
			return nil, false
		}
		list, ok := out[len(out)-1]["content"].([]any)
		return list, ok
	}
	add := func(role string, block m) {
		if list, ok := lastIs(role); ok && !old {
			out[len(out)-1]["content"] = append(list, block)
			return
		}
		out = append(out, m{"role": role, "content": []any{block}})
	}
	for _, line := range strings.Split(strings.TrimSpace(file), "\n") {
		var v m
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		switch v["type"] {
		case "user", "assistant":
			out = append(out, m{"role": v["type"], "content": v["content"]})
		case "tool_use":
			add("assistant", m{"type": "tool_use", "id": v["tool_use_id"], "name": v["name"], "input": v["input"]})
		case "tool_result":
			content, ok := v["content"]
			if old {
				content, ok = v["output"]
			}
			if !ok {
				t.Errorf("claw0 cannot read %s", line)
			}
			add("user", m{"type": "tool_result", "tool_use_id": v["tool_use_id"], "content": content})
		}
	}
	return plain(t, out)
}

func plain(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The rules above are claw0's: they give what claw0 gave.
func TestRebuildAsClaw0(t *testing.T) {
	for _, name := range []string{"claw0-new/bc17fa9d53c2", "claw0-new/fbe25e463d69", "claw0-old/main_cli_user_ab3aae252395"} {
		file, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("testdata/" + name + ".rebuilt.json")
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ Messages any }
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Messages, rebuild(t, strings.HasPrefix(name, "claw0-old"), string(file))); diff != "" {
			t.Errorf("%s (-claw0 +got):\n%s", name, diff)
		}
	}
}

// conversation is a log with a bit of everything.
var conversation = []session.Record{
	{Seq: 1, Time: day, Body: session.Header{Version: 3, ID: "s1", Key: "main:cli:user"}},
	{Seq: 2, ID: "m1", Time: day, Body: session.ModelChange{Provider: "anthropic", Model: "claude"}},
	{Seq: 3, ID: "u1", Parent: "m1", Time: day, Body: session.Message{Message: llm.UserText("look at <a> & b"), At: day}},
	{Seq: 4, ID: "a1", Parent: "u1", Time: day, Body: session.Message{Stop: llm.StopTool, Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
		llm.Thinking{Text: "hm", Signature: "x"}, llm.Text{Text: "I look."}, llm.Text{Text: "Twice."},
		llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}, llm.ToolCall{ID: "c2", Name: "list", Args: json.RawMessage(`{}`)},
	}}}},
	{Seq: 5, ID: "r1", Parent: "a1", Time: day, Body: session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{
		llm.ToolResult{CallID: "c1", Name: "read", Blocks: []llm.Block{llm.Text{Text: "A"}}}}}}},
	{Seq: 6, ID: "r2", Parent: "r1", Time: day, Body: session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{
		llm.ToolResult{CallID: "c2", Name: "list", IsError: true, Blocks: []llm.Block{llm.Text{Text: "no"}}}}}}},
	{Seq: 7, ID: "x1", Parent: "r2", Time: day, Body: session.Message{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopError, Error: "late"}},
	{Seq: 8, ID: "k1", Parent: "x1", Time: day, Body: session.Checkpoint{Summary: "s", Covers: "r2"}},
	{Seq: 9, ID: "a2", Parent: "k1", Time: day, Body: session.Message{Message: llm.AssistantText("Done.\n"), Stop: llm.StopEnd}},
	{Seq: 10, ID: "z1", Parent: "a2", Time: day, Body: session.Unknown{Type: "zap"}, Raw: json.RawMessage(`{"type":"zap","id":"z1","parentId":"a2","timestamp":"2026-11-15T00:32:00.134Z","x":1.0}` + "\r")},
}

func TestClaw0Written(t *testing.T) {
	for _, c := range []struct {
		form Form
		want string
		sees string
	}{
		{FormClaw0, `{"type":"session","id":"s1","key":"main:cli:user","created":1794702720.134,"goclaw":{…}}
{"type":"model_change",…}
{"type":"user","content":"look at <a> & b","ts":1794702720.134,"goclaw":{…}}
{"type":"assistant","content":[{"type":"text","text":"I look."},{"type":"text","text":"Twice."},{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"c2","name":"list","input":{}}],"ts":1794702720.134,"goclaw":{…}}
{"type":"tool_result","tool_use_id":"c1","content":"A","ts":1794702720.134,"goclaw":{…}}
{"type":"tool_result","tool_use_id":"c2","content":"no","ts":1794702720.134,"goclaw":{…}}
{"type":"message",…}
{"type":"checkpoint",…}
{"type":"assistant","content":[{"type":"text","text":"Done.\n"}],"ts":1794702720.134,"goclaw":{…}}
{"type":"zap",…}`,
			`[{"role":"user","content":"look at <a> & b"},
			{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"text","text":"Twice."},{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"c2","name":"list","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"A"},{"type":"tool_result","tool_use_id":"c2","content":"no"}]},
			{"role":"assistant","content":[{"type":"text","text":"Done.\n"}]}]`},
		{FormClaw0Old, `{"type":"session","id":"s1","key":"main:cli:user","created":"2026-11-15T00:32:00.134000+00:00","goclaw":{…}}
{"type":"model_change",…}
{"type":"user","content":"look at <a> & b","ts":"2026-11-15T00:32:00.134000+00:00","goclaw":{…}}
{"type":"assistant","content":"I look.","ts":"2026-11-15T00:32:00.134000+00:00","goclaw":{…}}
{"type":"assistant","content":"Twice.","ts":"2026-11-15T00:32:00.134000+00:00","goclaw":false}
{"type":"tool_use","name":"read","tool_use_id":"c1","input":{"path":"a"},"ts":"2026-11-15T00:32:00.134000+00:00","goclaw":false}
{"type":"tool_use","name":"list","tool_use_id":"c2","input":{},"ts":"2026-11-15T00:32:00.134000+00:00","goclaw":false}
{"type":"tool_result","tool_use_id":"c1","output":"A","ts":"2026-11-15T00:32:00.134000+00:00","goclaw":{…}}
{"type":"tool_result","tool_use_id":"c2","output":"no","ts":"2026-11-15T00:32:00.134000+00:00","goclaw":{…}}
{"type":"message",…}
{"type":"checkpoint",…}
{"type":"assistant","content":"Done.\n","ts":"2026-11-15T00:32:00.134000+00:00","goclaw":{…}}
{"type":"zap",…}`,
			`[{"role":"user","content":"look at <a> & b"},{"role":"assistant","content":"I look."},{"role":"assistant","content":"Twice."},
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"list","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"A"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"no"}]},
			{"role":"assistant","content":"Done.\n"}]`},
	} {
		t.Run(string(c.form), func(t *testing.T) {
			file := write(t, c.form.Codec(), conversation)
			var short []string
			for _, line := range strings.Split(strings.TrimSpace(file), "\n") {
				if before, _, ok := strings.Cut(line, `"goclaw":{`); ok {
					line = before + `"goclaw":{…}}`
				} else if typ, _, _ := strings.Cut(line, ","); !strings.Contains(line, `"goclaw":false`) {
					line = typ + ",…}"
				}
				short = append(short, line)
			}
			if diff := cmp.Diff(c.want, strings.Join(short, "\n")); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			var sees any
			if err := json.Unmarshal([]byte(c.sees), &sees); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sees, rebuild(t, c.form == FormClaw0Old, file)); diff != "" {
				t.Errorf("claw0 sees (-want +got):\n%s", diff)
			}
			if f, err := Detect(strings.NewReader(file)); f != c.form || err != nil {
				t.Errorf("Detect = %q, %v", f, err)
			}
			got, damage := readAll(t, "f", []byte(file), Options{})
			if diff := cmp.Diff(withRaw(t, conversation), got); diff != "" || damage != nil {
				t.Errorf("read back: %v (-want +got):\n%s", damage, diff)
			}
		})
	}
}

func write(t testing.TB, c Codec, recs []session.Record) string {
	t.Helper()
	var b strings.Builder
	for _, r := range recs {
		lines, err := c.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(lines)
		b.WriteByte('\n')
	}
	return b.String()
}

// withRaw returns recs as they are after they were written.
func withRaw(t testing.TB, recs []session.Record) []session.Record {
	t.Helper()
	var out []session.Record
	for _, r := range recs {
		line, err := Native.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Raw = line
		out = append(out, r)
	}
	return out
}

func TestClaw0RoundTrip(t *testing.T) {
	for _, c := range []Codec{Claw0, Claw0Old} {
		rapid.Check(t, func(t *rapid.T) {
			r := genRecord(t)
			line, err := Native.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "raw") {
				r.Raw = append(line, " \r"...)
				line = r.Raw
			}
			lines, err := c.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			var got []session.Record
			for _, l := range bytes.Split(lines, []byte("\n")) {
				recs, err := c.Decode(l)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, recs...)
			}
			r.Raw = line
			if diff := cmp.Diff([]session.Record{r}, got); diff != "" {
				t.Fatalf("%s\n(-want +got):\n%s", lines, diff)
			}
		})
	}
}

// Wherever claw0's lines break off, what is appended there gets the number
// that comes next, and keeps it.
func TestClaw0Append(t *testing.T) {
	for _, name := range []string{"claw0-new/fbe25e463d69", "claw0-old/main_cli_user_ab3aae252395"} {
		file, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(strings.TrimSpace(string(file))+"\n", "\n")
		for cut := 1; cut < len(lines); cut++ {
			prefix := strings.Join(lines[:cut], "")
			before, _ := readAll(t, "f", []byte(prefix), Options{})
			r := session.Record{ID: "new", Parent: before[len(before)-1].ID, Time: day, Body: session.Message{Message: llm.AssistantText("ours"), Stop: llm.StopEnd}}
			after, _ := readAll(t, "f", []byte(prefix+write(t, Claw0, []session.Record{r})), Options{})
			r.Seq = session.Seq(len(before) + 1)
			want := append(before, withRaw(t, []session.Record{r})...)
			if !reflect.DeepEqual(want, after) {
				t.Fatalf("%s, cut behind line %d (-want +got):\n%s", name, cut, cmp.Diff(want, after))
			}
			// claw0 goes on: its records continue ours.
			more, _ := readAll(t, "f", []byte(prefix+write(t, Claw0, []session.Record{r})+lines[1]), Options{})
			if last := more[len(more)-1]; len(more) != len(want)+1 || last.Parent != "new" {
				t.Fatalf("%s, cut behind line %d: %d records, the last continues %q", name, cut, len(more), last.Parent)
			}
		}
	}
}

// A file may be entered at every record that is its line's own, and behind
// it, and reads on as it does from the beginning.
func TestEnter(t *testing.T) {
	claw, err := os.ReadFile("testdata/claw0-new/fbe25e463d69.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ours := write(t, Claw0, conversation)
	for _, c := range []struct {
		name, file string
		form       Form
		own        int
	}{
		{"native", write(t, Native, conversation), FormNative, len(conversation)},
		{"claw0 behind ours", ours + string(claw), FormClaw0, len(conversation)},
		{"ours behind claw0", string(claw) + ours, FormClaw0, len(conversation)},
		{"claw0 behind our header", ours[:strings.Index(ours, "\n")+1] + string(claw), FormClaw0, 1},
		{"version 1", `{"type":"session","id":"s"}` + "\n" + `{"type":"reset","timestamp":"2026"}`, FormNative, 0},
	} {
		want, _ := readAll(t, "f", []byte(c.file), Options{Form: c.form})
		o := session.NewOutline("s")
		own := 0
		for s := NewScanner("f", strings.NewReader(c.file), Options{Form: c.form}); s.Next(); {
			r, leaf := s.Record(), o.Leaf
			if err := o.Apply(r); err != nil {
				t.Fatal(err)
			}
			if !s.WholeLine() {
				continue
			}
			own++
			at := readFrom(t, c.file[s.Offset():], Options{Form: c.form, Offset: s.Offset(), Line: s.Line() - 1, After: r.Seq - 1, Leaf: leaf})
			behind := readFrom(t, c.file[s.End():], Options{Form: c.form, Offset: s.End(), Line: s.Line(), After: r.Seq, Leaf: o.Leaf})
			if !reflect.DeepEqual(want[r.Seq-1:], at) {
				t.Fatalf("%s: entered at record %d (-want +got):\n%s", c.name, r.Seq, cmp.Diff(want[r.Seq-1:], at))
			}
			if len(behind)+int(r.Seq) != len(want) || len(behind) > 0 && !reflect.DeepEqual(want[r.Seq:], behind) {
				t.Fatalf("%s: entered behind record %d (-want +got):\n%s", c.name, r.Seq, cmp.Diff(want[r.Seq:], behind))
			}
		}
		if own != c.own {
			t.Errorf("%s: %d records are their line's own, want %d", c.name, own, c.own)
		}
	}
}

func readFrom(t *testing.T, file string, o Options) (recs []session.Record) {
	t.Helper()
	for r, err := range Read("f", strings.NewReader(file), o) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
	}
	return recs
}

// What claw0 does not write, but its tutorials and other hands do.
func TestClaw0Odd(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"tutorial order", `{"type":"user","content":"q","ts":1.5}
{"type":"assistant","content":"look","ts":2.5}
{"type":"tool_use","tool_use_id":"toolu_1","name":"a","input":{},"ts":3}
{"type":"tool_use","tool_use_id":"toolu_2","name":"b","input":{},"ts":3}
{"type":"tool_result","tool_use_id":"toolu_2","output":"two","ts":4}
{"type":"tool_result","tool_use_id":"toolu_1","output":"one","ts":4}
{"type":"assistant","content":"done","ts":5}`,
			[]string{"user q", "assistant look a(toolu_1) b(toolu_2)", "result toolu_2 b two", "result toolu_1 a one", "assistant done"}},
		{"call without result, doubled", `{"type":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"a","input":{"x":1}}],"ts":1}
{"type":"tool_use","tool_use_id":"toolu_1","name":"a","input":{"x":1},"ts":1}
{"type":"user","content":"still there?","ts":2}`,
			[]string{"assistant a(toolu_1)", "custom claw0 toolu_1", "user still there?"}},
		{"blocks of a vendor", `{"type":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}],"ts":1}
{"type":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"}],"ts":1}`,
			[]string{"user see", "assistant ok"}},
		{"unknown kinds", `{"type":"user","content":"q","ts":1}
{"type":"note","text":"n"}
[1]
{"type":"user","content":"r","ts":"never"}`, []string{"user q", "session.Unknown", "session.Unknown", "user r"}},
	} {
		recs, damage := readAll(t, "f", []byte(c.file), Options{Form: FormClaw0})
		if diff := cmp.Diff(c.want, tell(recs)); diff != "" || damage != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, damage, diff)
		}
	}
}

// A line that would not fit twice is the native line alone.
func TestClaw0Large(t *testing.T) {
	r := rec(session.Message{Message: llm.UserText(strings.Repeat("x", storekit.MaxRecord/2+1)), At: day})
	lines, err := Claw0.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	native, err := Native.Encode(r)
	if err != nil || !bytes.Equal(lines, native) {
		t.Errorf("%d bytes, the native line has %d, %v", len(lines), len(native), err)
	}
}

func FuzzClaw0(f *testing.F) {
	for _, name := range []string{"claw0-new/fbe25e463d69", "claw0-old/main_cli_user_ab3aae252395"} {
		file, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Add([]byte(write(f, Claw0Old, conversation)))
	f.Add([]byte(`{"type":"user","goclaw":"{}\n{}"}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		// Nothing panics, every line is a record, a part of one, or damage,
		// and every record can be written as a native line and read again.
		for r, err := range Read("f", bytes.NewReader(file), Options{Form: FormClaw0}) {
			if err != nil {
				continue
			}
			line, err := Native.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Native.Decode(line)
			if err != nil || len(again) != 1 {
				t.Fatalf("%s: %v", line, err)
			}
			again[0].Seq = r.Seq
			if diff := cmp.Diff(r, again[0]); diff != "" {
				t.Fatalf("%s\n%s", line, diff)
			}
		}
	})
}

package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

func TestObject(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101)
	for in, want := range map[string]string{
		`{"a":1}`:                     `{"a":1}`,
		" {\"a\" : 1}\n":              `{"a" : 1}`,
		"":                            `{}`,
		" null ":                      `{}`,
		`[]`:                          `{"_raw":"[]"}`,
		`{"a"`:                        `{"_raw":"{\"a\""}`,
		"{\"a\":\"\xff\"}":            "{\"a\":\"\uFFFD\"}",
		`{"a":"\ud83d"}`:              `{"a":"\ufffd"}`,
		`{"a":"\uDE00x"}`:             `{"a":"\ufffdx"}`,
		`{"\ud83d\ud83d":1}`:          `{"\ufffd\ufffd":1}`,
		`{"a":"\ud83d\ude00"}`:        `{"a":"\ud83d\ude00"}`,
		`{"a":"\\ud83d"}`:             `{"a":"\\ud83d"}`,
		`{"a":"\\\ud83d\n\ud83d\\"}`:  `{"a":"\\\ufffd\n\ufffd\\"}`,
		`{"a":"\ude00\ud83d\ude00!"}`: `{"a":"\ufffd\ud83d\ude00!"}`,
		deep:                          `{"_raw":` + quote(deep) + `}`,
		strings.Repeat("[", 101):      `{"_raw":"` + strings.Repeat("[", 101) + `"}`,
		`{"a":"` + strings.Repeat("{", 300) + `"}`: `{"a":"` + strings.Repeat("{", 300) + `"}`,
	} {
		got := llm.Object(json.RawMessage(in))
		if string(got) != want {
			t.Errorf("Object(%q) = %s, want %s", in, got, want)
		}
		if err := llmtest.CheckObject(got); err != nil {
			t.Errorf("Object(%q) = %s: %v", in, got, err)
		}
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Whatever bytes a model wrote as arguments, an API can parse what is sent,
// and what is fine stays as it is.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":"\ud83d\\\ude00"}`, `{"\ud83d":[{}]}`, "{\"\xff\":null}", `{"a":"\\ud83d`, strings.Repeat(`{"a":[`, 90) + strings.Repeat(`]}`, 90)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := llm.Object(json.RawMessage(in))
		if err := llmtest.CheckObject(got); err != nil {
			t.Fatalf("Object(%q) = %s: %v", in, got, err)
		}
		if again := llm.Object(got); string(again) != string(got) {
			t.Fatalf("Object(%q) = %s, and again %s", in, got, again)
		}
		trimmed := strings.TrimSpace(in)
		if llmtest.CheckObject(json.RawMessage(trimmed)) == nil && strings.Count(in, "{")+strings.Count(in, "[") <= 100 && string(got) != trimmed {
			t.Fatalf("Object(%q) = %s, want it unchanged", in, got)
		}
	})
}

func TestCallID(t *testing.T) {
	long := strings.Repeat("x", 41)
	seen := map[string]string{}
	for _, id := range []string{"c1", "toolu_01-A", long[:40], "", long, long + "y", "a.b", "a:b", "é", "\xff"} {
		got := llm.CallID(id)
		if err := llmtest.CheckID(got); err != nil {
			t.Errorf("CallID(%q) = %q: %v", id, got, err)
		}
		if keep := llmtest.CheckID(id) == nil; keep != (got == id) {
			t.Errorf("CallID(%q) = %q", id, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q both become %q", id, other, got)
		}
		seen[got] = id
	}
}

func TestSendableImages(t *testing.T) {
	png := llmtest.Images[0]
	left := func(why string) llm.Block { return llm.Text{Text: "[image left out: " + why + "]"} }
	wide := "iVBORw0KGgoAAAANSUhEUgAAJxAAAAABCAYAAAAfFcSJ" // 10,000 x 1
	for _, c := range []struct {
		name string
		in   llm.Image
		want llm.Block
	}{
		{"fine", png, png},
		{"a wrong type", llm.Image{MIME: "image/jpeg", Data: png.Data}, png},
		{"no type", llm.Image{Data: png.Data}, png},
		{"a data URL", llm.Image{Data: "data:image/png;base64," + png.Data}, png},
		{"lines, without padding", llm.Image{MIME: "image/png", Data: "\n" + strings.TrimRight(png.Data[:8]+"\r\n"+png.Data[8:], "=")}, png},
		{"letters for URLs", llm.Image{MIME: "image/webp", Data: strings.ReplaceAll(llmtest.Images[2].Data, "+", "-")}, llmtest.Images[2]},
		{"a URL", llm.Image{MIME: "image/png", Data: "data:image/png,x"}, left("its data is not base64")},
		{"empty", llm.Image{MIME: "image/png"}, left("it is empty")},
		{"no base64", llm.Image{MIME: "image/png", Data: "a!"}, left("its data is not base64")},
		{"half a byte", llm.Image{MIME: "image/png", Data: "AAAAA"}, left("its data is not base64")},
		{"no picture", llm.Image{MIME: "image/png", Data: "AAAA"}, left(`"image/png" cannot be read`)},
		{"another type", llm.Image{MIME: "image/heic", Data: "AAAA"}, left(`"image/heic" cannot be read`)},
		{"too wide", llm.Image{MIME: "image/png", Data: wide}, left("image/png of 10000 x 1 pixels, more than the 8000 a side that can be sent")},
		{"too large", llm.Image{MIME: "image/png", Data: png.Data[:88] + strings.Repeat("A", 6<<20)}, left("image/png of 6.0 MB, more than the 5.0 MB that can be sent")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := llm.Sendable(llm.Message{Role: llm.User, Blocks: []llm.Block{c.in}})
			if diff := cmp.Diff([]llm.Block{c.want}, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// What may not stand in a message is left out, and results stay before
// everything else.
func TestSendableShape(t *testing.T) {
	png := llmtest.Images[0]
	call := llm.ToolCall{ID: "c1", Name: "shoot", Args: json.RawMessage(`{}`)}
	failed := llm.Failed(call, "it broke")
	failed.Blocks = append(failed.Blocks, png)
	ok := llm.Result(llm.ToolCall{ID: "c2", Name: "read"}, "fine")
	user := llm.Message{Role: llm.User, Blocks: []llm.Block{failed, ok, call, llm.Text{Text: "\x1f"}, llm.Thinking{Text: "t", Signature: "s"}, llm.Other{}, llm.Text{Text: "and?"}}}
	want := []llm.Block{llm.Failed(call, "it broke"), ok, llm.Text{Text: "[from shoot, call c1]"}, png, llm.Text{Text: "and?"}}
	if diff := cmp.Diff(want, llm.Sendable(user)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(failed.Blocks) != 2 {
		t.Errorf("the result itself was changed: %+v", failed)
	}
	answer := llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "unsigned"}, llm.Thinking{Signature: "s"}, png, ok, llm.Text{Text: " "}, llm.ToolCall{ID: "c1"}}}
	want = []llm.Block{llm.Thinking{Signature: "s"}, llm.ToolCall{ID: "c1", Name: "unknown_tool", Args: json.RawMessage(`{}`)}}
	if diff := cmp.Diff(want, llm.Sendable(answer)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Validate refuses one thing after the other.
func TestValidate(t *testing.T) {
	call := func(id, name, args string) llm.Block {
		return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
	}
	result := func(id string, failed bool, blocks ...llm.Block) llm.Block {
		return llm.ToolResult{CallID: id, Blocks: blocks, IsError: failed}
	}
	hi, sig := llm.Text{Text: "hi"}, llm.Thinking{Text: "t", Signature: "s"}
	with := func(a, u []llm.Block) llm.Request {
		return llm.Request{Messages: []llm.Message{llm.UserText("q"), {Role: llm.Assistant, Blocks: a}, {Role: llm.User, Blocks: u}}}
	}
	blocks := func(b ...llm.Block) []llm.Block { return b }
	tool := func(name, schema string) llm.Request {
		return llm.Request{Messages: []llm.Message{llm.UserText("q")}, Tools: []llm.ToolSpec{{Name: name, Schema: json.RawMessage(schema)}}}
	}
	png := llmtest.Images[0]
	for i, c := range []struct {
		req  llm.Request
		says string
	}{
		{with(blocks(sig, hi, call("c1", "read", `{}`)), blocks(result("c1", true, hi), hi, png)), ""},
		{llm.Request{}, "at least one message"},
		{llm.Request{Messages: []llm.Message{llm.AssistantText("a")}}, "role is"},
		{llm.Request{Messages: []llm.Message{llm.UserText("q"), llm.UserText("q")}}, "role is"},
		{llm.Request{Messages: []llm.Message{llm.UserText("q"), llm.AssistantText("a ")}}, "the last message"},
		{with(nil, blocks(hi)), "must not be empty"},
		{with(blocks(llm.Text{}), blocks(hi)), "non-whitespace"},
		{with(blocks(hi), blocks(llm.Text{Text: " \u00a0\x1c"})), "non-whitespace"},
		{with(blocks(hi, sig), blocks(hi)), "must come first"},
		{with(blocks(sig), blocks(hi)), "must not end with thinking"},
		{with(blocks(llm.Thinking{Text: "t"}, hi), blocks(hi)), "without signature"},
		{with(blocks(call("c1", "read", `{}`)), blocks(hi)), "no tool_result"},
		{with(blocks(call("c1", "read", `{}`)), blocks(hi, result("c1", false, hi))), "after other content"},
		{with(blocks(hi), blocks(result("c1", false, hi))), "unexpected tool_use_id"},
		{with(blocks(call("c1", "read", `{}`)), blocks(result("c1", false, hi), result("c1", false, hi))), "unexpected tool_use_id"},
		{with(blocks(call("c1", "read", `{}`)), blocks(result("c1", true))), "cannot be empty"},
		{with(blocks(call("c1", "read", `{}`)), blocks(result("c1", true, llm.Text{Text: "\n"}))), "non-whitespace"},
		{with(blocks(call("c1", "read", `{}`)), blocks(result("c1", true, hi, png))), "must be type"},
		{with(blocks(call("c1", "read", `{}`), call("c1", "read", `{}`)), blocks(result("c1", false, hi))), "must be unique"},
		{with(blocks(call("c 1", "read", `{}`)), blocks(result("c 1", false, hi))), "tool_use.id"},
		{with(blocks(call(strings.Repeat("c", 41), "read", `{}`)), blocks(hi)), "tool_use.id"},
		{with(blocks(call("c1", "functions.read", `{}`)), blocks(hi)), "tool_use.name"},
		{with(blocks(call("c1", "", `{}`)), blocks(hi)), "tool_use.name"},
		{with(blocks(call("c1", strings.Repeat("n", 65), `{}`)), blocks(hi)), "tool_use.name"},
		{with(blocks(call("c1", "read", `[]`)), blocks(hi)), "valid dictionary"},
		{with(blocks(call("c1", "read", `{"a":"\ud83d"}`)), blocks(hi)), "surrogate"},
		{with(blocks(call("c1", "read", "{\"a\":\"\xff\"}")), blocks(hi)), "not valid JSON"},
		{with(blocks(call("c1", "read", strings.Repeat(`{"a":`, 200)+"1"+strings.Repeat("}", 200))), blocks(hi)), "recursion"},
		{with(blocks(png), blocks(hi)), "not allowed"},
		{with(blocks(hi), blocks(llm.Image{MIME: "image/bmp", Data: png.Data})), "four types"},
		{with(blocks(hi), blocks(llm.Image{MIME: "image/gif", Data: png.Data})), "does not match"},
		{with(blocks(hi), blocks(llm.Image{MIME: "image/png", Data: png.Data + "\n"})), "invalid base64"},
		{with(blocks(hi), blocks(llm.Image{MIME: "image/png", Data: png.Data[:12]})), "could not process"},
		{with(blocks(hi), blocks(llm.Image{MIME: "image/png", Data: strings.Repeat("A", 6<<20)})), "5 MB"},
		{tool("bad name", `{"type":"object"}`), "tool_use.name"},
		{tool("read", `{}`), "Input should be 'object'"},
	} {
		err := llmtest.Validate(c.req)
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("case %d: got %v, want %q", i, err, c.says)
		}
	}
}

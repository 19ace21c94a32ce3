package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

func TestSendableTools(t *testing.T) {
	long := strings.Repeat("n", 200)
	in := []llm.ToolSpec{
		{Name: "functions.read_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		{Name: "functions_read_file"}, {Name: "bad name!"}, {Name: "读文件"}, {Name: ""}, {Name: long}, {Name: long + "x"},
		{Name: "fine", Schema: json.RawMessage(` {"type": "object"}`)}, {Name: "list", Schema: json.RawMessage(`[]`)}, {Name: "text", Schema: json.RawMessage(`{"type":"string"}`)},
	}
	sent, names := llm.SendableTools(in)
	var got []string
	for i, s := range sent {
		got = append(got, s.Name)
		if own, changed := names[s.Name]; changed != (s.Name != in[i].Name) || changed && own != in[i].Name {
			t.Errorf("%q is sent as %q, which stands for %q", in[i].Name, s.Name, own)
		}
	}
	want := []string{"functions_read_file_2", "functions_read_file", "bad_name_", "unknown_tool", "unknown_tool_2", long[:64], long[:62] + "_2", "fine", "list", "text"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if s := string(sent[0].Schema); s != string(in[0].Schema) {
		t.Errorf("a good schema became %s", s)
	}
	req := llm.Request{Messages: []llm.Message{llm.UserText("q")}, Tools: sent}
	if err := llmtest.Validate(req); err != nil {
		t.Error(err)
	}
}

func TestAnyToolsAreSendable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tools []llm.ToolSpec
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			tools = append(tools, llm.ToolSpec{Name: rapid.StringMatching(`[ab.é]{0,3}`).Draw(t, "name"), Schema: json.RawMessage(rapid.SampledFrom([]string{"", "{}", "null", `{"type":"object"}`, `{"type":"object","properties":{}}`, "{"}).Draw(t, "schema"))})
		}
		sent, _ := llm.SendableTools(tools)
		if err := llmtest.Validate(llm.Request{Messages: []llm.Message{llm.UserText("q")}, Tools: sent}); err != nil {
			t.Fatal(err)
		}
		again, names := llm.SendableTools(sent)
		if fmt.Sprint(again) != fmt.Sprint(sent) || len(names) > 0 {
			t.Fatalf("%v becomes %v", sent, again)
		}
	})
}

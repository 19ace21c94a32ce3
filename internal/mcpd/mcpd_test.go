package mcpd

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"goclaw/llm"
)

// echo says what it was called with.
type echo struct{}

func (echo) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: "echo", Description: "says it", Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}`)}
}

func (echo) Run(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	if strings.Contains(string(call.Args), "fail") {
		return llm.Failed(call, "it failed"), nil
	}
	return llm.Result(call, string(call.Args)), nil
}

// TestServe talks to the server by the line.
func TestServe(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), []Tool{echo{}}, "1", in, out) }()
	lines := bufio.NewScanner(fromServer)
	ask := func(request string) string {
		t.Helper()
		if _, err := io.WriteString(toServer, request+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatal("no answer")
		}
		return lines.Text()
	}
	got := ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if !strings.Contains(got, `"name":"goclaw"`) {
		t.Errorf("initialize: %s", got)
	}
	if _, err := io.WriteString(toServer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ params, want, not string }{
		{`{"name":"echo","arguments":{"query":"hi"}}`, `{\"query\":\"hi\"}`, `"isError":true`},
		{`{"name":"echo","arguments":{"query":"fail"}}`, `it failed`, `"isError":false`},
		{`{"name":"echo","arguments":{"query":1}}`, `"isError":true`, `it failed`},
		{`{"name":"echo"}`, `"isError":true`, `it failed`},
		{`{"name":"bash","arguments":{}}`, `"error"`, `"result"`},
	} {
		got := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + c.params + `}`)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %s", c.params, got)
		}
	}
	// What is no message is answered, and it goes on.
	for _, c := range []struct{ line, want string }{
		{`not JSON`, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":3,"method":`, `"code":-32700`},
		{"\x00\xff", `"code":-32700`},
		{`{} {}`, `"code":-32700`},
		{`42`, `"code":-32600`},
		{`{}`, `"code":-32600`},
		{`[]`, `"code":-32600`},
		{`"` + strings.Repeat("x", 2*maxLine) + `"`, `this message is too long: at most 1048576 bytes are allowed`},
	} {
		if got := ask(c.line); !strings.Contains(got, c.want) || !strings.Contains(got, `"id":null`) {
			t.Errorf("%.40q: %s, want %s", c.line, got, c.want)
		}
		if got := ask(`  {"jsonrpc":"2.0","id":4,"method":"ping"}` + "\r"); !strings.Contains(got, `"id":4`) || !strings.Contains(got, `"result"`) {
			t.Errorf("behind %.40q: %s", c.line, got)
		}
	}
	if got := ask("\n\n" + `[{"jsonrpc":"2.0","id":5,"method":"ping"}]`); !strings.Contains(got, `"id":5`) {
		t.Errorf("several at once: %s", got)
	}
	toServer.Close()
	if err := <-done; err != nil {
		t.Errorf("at the end of its input: %v", err)
	}
}

// TestPiped: what is asked last is answered, also if the input ends with it.
func TestPiped(t *testing.T) {
	for range 20 {
		var out strings.Builder
		in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
nonsense
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"query":"hi"}}}
{"jsonrpc":"2.0","id":3,"method":"ping"}`
		if err := Serve(t.Context(), []Tool{echo{}}, "1", strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"id":1,`, `-32700`, `"id":2,`, `"id":3,`} {
			if !strings.Contains(out.String(), want) {
				t.Fatalf("no %s in:\n%s", want, out.String())
			}
		}
	}
}

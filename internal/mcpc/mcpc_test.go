package mcpc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"goclaw/internal/mcpc"
	"goclaw/llm"
	"goclaw/tool"
)

// everything returns a server of other people, from npm, that has a tool for
// everything in the protocol; scripts/test fetches it.
func everything(t *testing.T) mcpc.Server {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	path, err := filepath.Abs("../../.cache/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no server-everything in .cache/npm, where scripts/test puts it")
	}
	return mcpc.Server{Command: node, Args: []string{path, "stdio"}, Env: os.Environ()}
}

// call calls a tool and returns the text of its result.
func call(t *testing.T, tools []tool.Tool, name, args string) llm.ToolResult {
	t.Helper()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Spec().Name == name })
	if i < 0 {
		var names []string
		for _, t := range tools {
			names = append(names, t.Spec().Name)
		}
		t.Fatalf("there is no %s: %v", name, names)
	}
	r, err := tools[i].Run(t.Context(), llm.ToolCall{ID: "c", Name: name, Args: []byte(args)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEverything uses a server of another maker through its program.
func TestEverything(t *testing.T) {
	s := everything(t)
	client, tools, problems := mcpc.Connect(t.Context(), map[string]mcpc.Server{"everything": s, "again": s, "gone": {Command: "/nowhere/mcp"}}, "test")
	defer client.Close()
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "MCP server gone: ") {
		t.Fatalf("%v", problems)
	}
	if got := call(t, tools, "everything__echo", `{"message":"hello"}`).Text(); got != "Echo: hello" {
		t.Errorf("echo: %q", got)
	}
	if got := call(t, tools, "again__get-sum", `{"a":2,"b":3}`).Text(); !strings.Contains(got, "5") {
		t.Errorf("a sum: %q", got)
	}
	// Its picture has a wrong checksum, which APIs refuse.
	if got := call(t, tools, "everything__get-tiny-image", `{}`).Text(); !strings.Contains(got, "[an image that cannot be shown: the image (image/png) is damaged") {
		t.Errorf("an image: %s", got)
	}
	// The order is the same at every start, and a Set takes all of them.
	set, err := tool.New(tool.Options{Workspace: t.TempDir(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, one := range tools {
		if err := set.Add(one); err != nil {
			t.Error(err)
		}
	}
	if !strings.HasPrefix(tools[0].Spec().Name, "again__") {
		t.Errorf("the first tool is %s", tools[0].Spec().Name)
	}
	// What it does is asked about, and nobody is there.
	r, err := set.Run(t.Context(), llm.ToolCall{ID: "c", Name: "everything__echo", Args: []byte(`{"message":"hello"}`)})
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "no one to ask") {
		t.Errorf("%v, %v", r.Text(), err)
	}
}

// TestDies: a server that ends at its start is a line with its last words.
func TestDies(t *testing.T) {
	defer mcpc.Patient()() // it may be slow to say them
	client, _, problems := mcpc.Connect(t.Context(), map[string]mcpc.Server{"dead": {Command: "/bin/sh", Args: []string{"-c", "echo reading; echo no token is set >&2; exit 3"}}}, "test")
	defer client.Close()
	if len(problems) != 1 || !strings.HasSuffix(problems[0].Error(), "; it printed: no token is set") || strings.Contains(problems[0].Error(), "\n") {
		t.Errorf("%v", problems)
	}
}

// TestHTTP uses a server at an address, with a header.
func TestHTTP(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	type in struct {
		N int `json:"n"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "ticket", Description: "a ticket", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			if a.N == 0 {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such ticket"}}}, nil, nil
			}
			return nil, map[string]int{"number": a.N}, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	client, tools, problems := mcpc.Connect(t.Context(), map[string]mcpc.Server{
		"my tickets": {URL: web.URL, Headers: map[string]string{"Authorization": "Bearer x"}},
		"refused":    {URL: web.URL},
		"both":       {URL: web.URL, Command: "x"},
		"neither":    {},
		"odd":        {URL: "ftp://x"},
	}, "test")
	defer client.Close()
	if len(problems) != 4 || len(tools) != 1 {
		t.Fatalf("%v, %v", tools, problems)
	}
	if got := call(t, tools, "my_tickets__ticket", `{"n":7}`); got.IsError || !strings.Contains(got.Text(), `"number":7`) {
		t.Errorf("%+v", got)
	}
	if got := call(t, tools, "my_tickets__ticket", `{"n":0}`); !got.IsError || got.Text() != "no such ticket" {
		t.Errorf("%+v", got)
	}
	if m := tools[0].(tool.Mutator); m.Mutates(llm.ToolCall{}) {
		t.Error("a tool that only reads is taken to change something")
	}
}

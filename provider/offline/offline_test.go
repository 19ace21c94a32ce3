package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

func spec(name, schema string) llm.ToolSpec {
	return llm.ToolSpec{Name: name, Description: name, Schema: json.RawMessage(schema)}
}

var (
	readSpec   = spec("read_file", `{"type":"object","properties":{"path":{"type":"string","minLength":1},"offset":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1},"column":{"type":"integer"}},"required":["path"],"additionalProperties":false}`)
	listSpec   = spec("list_directory", `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer","minimum":1,"maximum":20}},"additionalProperties":false}`)
	writeSpec  = spec("write_file", `{"type":"object","properties":{"path":{"type":"string","minLength":1},"content":{"type":"string"},"append":{"type":"boolean"}},"required":["path","content"],"additionalProperties":false}`)
	plainWrite = spec("write_file", `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`)
	editSpec   = spec("edit_file", `{"type":"object","properties":{"path":{"type":"string","minLength":1},"old_string":{"type":"string","minLength":1},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["path","old_string","new_string"],"additionalProperties":false}`)
	timeSpec   = spec("get_current_time", `{"type":"object","properties":{"timezone":{"type":"string"}},"additionalProperties":false}`)
	bashSpec   = spec("bash", `{"type":"object","properties":{"command":{"type":"string","minLength":1},"timeout":{"type":"number"}},"required":["command"],"additionalProperties":false}`)
	memSearch  = spec("memory_search", `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"],"additionalProperties":false}`)
	memGet     = spec("memory_get", `{"type":"object","properties":{"file":{"type":"string"},"from":{"type":"integer"},"lines":{"type":"integer"}},"required":["file"],"additionalProperties":false}`)
	sessSearch = spec("session_search", `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"],"additionalProperties":false}`)
	sessRead   = spec("session_read", `{"type":"object","properties":{"session":{"type":"string"},"around":{"type":"string"}},"required":["session"],"additionalProperties":false}`)

	allSpecs = []llm.ToolSpec{readSpec, listSpec, writeSpec, editSpec, timeSpec, bashSpec, memSearch, sessSearch}
)

// chat is a conversation with fake tools over files in memory.
type chat struct {
	t     testing.TB
	model *Provider
	tools []llm.ToolSpec
	files map[string]string
	found map[string]string // by search tools
	msgs  []llm.Message
	calls []string // "name {args}", of the last turn
}

func newChat(t testing.TB, msgs ...llm.Message) *chat {
	return &chat{t: t, model: New(Config{}), tools: allSpecs, files: map[string]string{}, msgs: msgs}
}

// ask says text and returns the answer, tools run in between.
func (c *chat) ask(text string) string {
	c.t.Helper()
	if n := len(c.msgs); n > 0 && c.msgs[n-1].Role == llm.User {
		c.msgs[n-1].Blocks = append(c.msgs[n-1].Blocks, llm.Text{Text: text})
	} else {
		c.msgs = append(c.msgs, llm.UserText(text))
	}
	return c.goOn()
}

func (c *chat) goOn() string {
	c.t.Helper()
	c.calls = nil
	for range maxCalls + 2 {
		req := llm.Request{Model: Name, Messages: c.msgs, Tools: c.tools}
		if err := llmtest.Validate(req); err != nil {
			c.t.Fatalf("the request is not valid: %v", err)
		}
		a, err := collect(c.model, req)
		if err != nil {
			c.t.Fatal(err)
		}
		c.msgs = append(c.msgs, a.Message)
		calls := a.Message.Calls()
		if len(calls) == 0 {
			if a.Stop != llm.StopEnd {
				c.t.Fatalf("stop of a text is %q", a.Stop)
			}
			return a.Message.Text()
		}
		if a.Stop != llm.StopTool {
			c.t.Fatalf("stop of calls is %q", a.Stop)
		}
		var results []llm.Block
		for _, call := range calls {
			c.calls = append(c.calls, call.Name+" "+string(call.Args))
			results = append(results, c.run(call))
		}
		c.msgs = append(c.msgs, llm.Message{Role: llm.User, Blocks: results})
	}
	c.t.Fatalf("no end after the calls %v", c.calls)
	return ""
}

// collect reads a stream and checks that its deltas are what its end holds.
func collect(m llm.Provider, req llm.Request) (llm.Answer, error) {
	var text strings.Builder
	var calls []llm.ToolCall
	for d, err := range m.Stream(context.Background(), req) {
		if err != nil {
			return llm.Answer{}, err
		}
		text.WriteString(d.Text)
		if d.Call != nil {
			calls = append(calls, *d.Call)
		}
		if d.End == nil {
			continue
		}
		if got := d.End.Message.Text(); got != text.String() {
			return *d.End, fmt.Errorf("streamed %q, ended with %q", text.String(), got)
		}
		if diff := cmp.Diff(calls, d.End.Message.Calls()); diff != "" {
			return *d.End, fmt.Errorf("streamed calls differ: %s", diff)
		}
		return *d.End, nil
	}
	return llm.Answer{}, errors.New("no end")
}

func (c *chat) run(call llm.ToolCall) llm.ToolResult {
	i := slices.IndexFunc(c.tools, func(s llm.ToolSpec) bool { return s.Name == call.Name })
	if i < 0 {
		c.t.Fatalf("called %s, which was not offered", call.Name)
	}
	if err := checkArgs(c.tools[i], call.Args); err != nil {
		c.t.Fatalf("called %s with %s: %v", call.Name, call.Args, err)
	}
	var a struct {
		Path, File, Content, Command, Query, Session, Timezone string
		Offset, Limit                                          int
		Append                                                 bool
		Old                                                    string `json:"old_string"`
		New                                                    string `json:"new_string"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		c.t.Fatal(err)
	}
	switch call.Name {
	case "read_file", "memory_get":
		p := a.Path + a.File
		text, ok := c.files[p]
		if !ok {
			return llm.Failed(call, p+" does not exist")
		}
		if text == "" {
			return llm.Result(call, "(the file is empty)")
		}
		lines := slices.Collect(strings.Lines(text))
		from, of := max(1, a.Offset), len(lines)
		if from > of {
			return llm.Failed(call, "past the end")
		}
		to := of
		if a.Limit > 0 {
			to = min(of, from-1+a.Limit)
		}
		text = strings.Join(lines[from-1:to], "")
		if to < of {
			text += fmt.Sprintf("[lines %d to %d of %d; read on with offset %d]", from, to, of, to+1)
		}
		return llm.Result(call, text)
	case "list_directory":
		return c.list(call, a.Path)
	case "write_file":
		old, there := c.files[a.Path]
		if a.Append {
			if there && !strings.HasSuffix(old, "\n") {
				old += "\n"
			}
			a.Content = old + a.Content
		}
		c.files[a.Path] = a.Content
		return llm.Result(call, fmt.Sprintf("wrote %d bytes to %s", len(a.Content), a.Path))
	case "edit_file":
		if strings.Count(c.files[a.Path], a.Old) != 1 {
			return llm.Failed(call, "old_string was not found")
		}
		c.files[a.Path] = strings.Replace(c.files[a.Path], a.Old, a.New, 1)
		return llm.Result(call, "replaced once in "+a.Path+"\n-"+a.Old+"\n+"+a.New)
	case "get_current_time":
		return llm.Result(call, "2026-08-30T14:05:00+02:00 (Sunday, Europe/Berlin)")
	case "bash":
		if strings.Contains(a.Command, "rm ") {
			return llm.Failed(call, "not run: the user did not allow this command.")
		}
		return llm.Result(call, "ran "+a.Command+"\n[exit code 0]")
	case "memory_search", "session_search":
		if text, ok := c.found[call.Name]; ok {
			return llm.Result(call, text)
		}
		return llm.Failed(call, "the index is broken")
	case "session_read":
		return llm.Result(call, "user: hello from "+a.Session)
	}
	return llm.Failed(call, "unknown")
}

func (c *chat) list(call llm.ToolCall, dir string) llm.ToolResult {
	seen := map[string]bool{}
	for p := range c.files {
		rest := p
		if dir != "." && dir != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(p, path.Clean(dir)+"/"); !ok {
				continue
			}
		}
		if d, _, deep := strings.Cut(rest, "/"); deep {
			seen[d+"/"] = true
		} else {
			seen[fmt.Sprintf("%s  %d B", rest, len(c.files[p]))] = true
		}
	}
	if len(seen) == 0 {
		if dir == "." {
			return llm.Result(call, "(the directory is empty)")
		}
		return llm.Failed(call, dir+" does not exist")
	}
	var lines []string
	for l := range seen {
		lines = append(lines, l)
	}
	sort.Strings(lines)
	return llm.Result(call, strings.Join(lines, "\n")+"\n")
}

func checkArgs(s llm.ToolSpec, args json.RawMessage) error {
	var schema jsonschema.Schema
	if err := json.Unmarshal(s.Schema, &schema); err != nil {
		return err
	}
	r, err := schema.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return err
	}
	return r.Validate(v)
}

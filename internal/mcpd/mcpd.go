// Package mcpd serves tools to other agents through the Model Context Protocol.
// goclaw gives it the search over all sessions and memory files.
package mcpd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"goclaw/llm"
)

// Tool is a tool that is offered, such as those of recall.Index.Tools.
type Tool interface {
	Spec() llm.ToolSpec
	Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error)
}

// maxLine is how many bytes a request may have.
const maxLine = 1 << 20

// Serve answers on in and out, one message per line, until in ends or ctx does. A
// line that is no message gets an error as its answer.
func Serve(ctx context.Context, tools []Tool, version string, in io.Reader, out io.Writer) error {
	s, err := server(tools, version)
	if err != nil {
		return err
	}
	w := &writer{Writer: out, told: make(chan struct{}, 1)}
	err = s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(newLines(ctx, in, w)), Writer: w, MaxLineLength: -1})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// writer writes one line at a time and counts answers. Closing it does nothing:
// the stream belongs to the caller.
type writer struct {
	mu sync.Mutex
	io.Writer
	answers int
	told    chan struct{} // holds a value when there is another answer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.Writer.Write(p)
	if m, bad := jsonrpc.DecodeMessage(bytes.TrimSpace(p)); bad == nil {
		if _, ok := m.(*jsonrpc.Response); ok {
			w.answers++
			select {
			case w.told <- struct{}{}:
			default:
			}
		}
	}
	return n, err
}

// answered waits for n answers.
func (w *writer) answered(ctx context.Context, n int) {
	for {
		w.mu.Lock()
		done := w.answers >= n
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-w.told:
		case <-ctx.Done():
			return
		}
	}
}

func (*writer) Close() error { return nil }

func server(tools []Tool, version string) (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "goclaw", Title: "goclaw: past conversations and memory", Version: version}, &mcp.ServerOptions{
		Instructions: "Search and read past conversations and the memory files. Nothing can be changed. " +
			"Results carry citations: session#record for session_read, file:line for memory_get.",
	})
	no := false
	for _, t := range tools {
		spec := t.Spec()
		check, err := validator(spec.Schema)
		if err != nil {
			return nil, err
		}
		s.AddTool(&mcp.Tool{
			Name: spec.Name, Description: spec.Description, InputSchema: spec.Schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			args := req.Params.Arguments
			if len(args) == 0 {
				args = json.RawMessage("{}")
			}
			if err := check(args); err != nil {
				return failed(err.Error()), nil
			}
			res, err := t.Run(ctx, llm.ToolCall{ID: "mcp", Name: spec.Name, Args: args})
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: res.Text()}}, IsError: res.IsError}, nil
		})
	}
	return s, nil
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}

// validator returns a function that checks arguments against a schema.
func validator(schema json.RawMessage) (func(json.RawMessage) error, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return func(args json.RawMessage) error {
		var v map[string]any
		if err := json.Unmarshal(args, &v); err != nil {
			return err
		}
		return r.Validate(v)
	}, nil
}

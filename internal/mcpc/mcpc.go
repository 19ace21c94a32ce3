// Package mcpc is the client of the Model Context Protocol: it offers the tools
// of other programs' servers to the model.
//
// A server that cannot be used costs nothing but its own tools. Names have the
// server before them, so that two servers may have tools of the same name, and
// the order is that of the servers' names and of their own lists: the prompt
// that is made of them stays the same from start to start.
package mcpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"goclaw/llm"
	"goclaw/tool"
)

// Server is how a server is reached: a program that is started, or an address.
type Server struct {
	Command string
	Args    []string
	Env     []string // of the program, "NAME=value"
	Dir     string   // where it is started

	URL     string // http or https
	Headers map[string]string
}

// patience is how long a server may take until its tools are known. Tests wait
// longer.
var patience = 15 * time.Second

// terminate is how long a program may take to end when its input has.
var terminate = time.Second

// Client is a set of connected servers.
type Client struct {
	mu       sync.Mutex
	sessions []*mcp.ClientSession
}

// Close ends the connections and the programs that were started.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range c.sessions {
		all.Go(func() { s.Close() })
	}
	all.Wait()
	c.sessions = nil
}

// Problem is why a server, or one of its tools, is not there.
type Problem struct {
	Server string
	Err    error
}

func (p Problem) Error() string { return fmt.Sprintf("MCP server %s: %v", p.Server, p.Err) }

// Connect connects to all servers at once. version is that of this program.
func Connect(ctx context.Context, servers map[string]Server, version string) (*Client, []tool.Tool, []Problem) {
	c := &Client{}
	names := slices.Sorted(maps.Keys(servers))
	tools, failed := make([][]tool.Tool, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { tools[i], failed[i] = c.connect(ctx, name, servers[name], version) })
	}
	all.Wait()
	var problems []Problem
	for i, err := range failed {
		if err != nil {
			problems = append(problems, Problem{names[i], err})
		}
	}
	return c, slices.Concat(tools...), problems
}

func (c *Client) connect(ctx context.Context, name string, s Server, version string) ([]tool.Tool, error) {
	said := &lastWords{}
	transport, err := s.transport(said)
	if err != nil {
		return nil, err
	}
	// The connection outlives the wait for it.
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { cancel(fmt.Errorf("it did not answer within %s", patience)) })
	defer timer.Stop()
	client := mcp.NewClient(&mcp.Implementation{Name: "goclaw", Version: version}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		if err = cmp.Or(cause(ctx), err); said.String() != "" {
			err = fmt.Errorf("%w; it printed: %s", err, said)
		}
		return nil, err
	}
	c.mu.Lock()
	c.sessions = append(c.sessions, session)
	c.mu.Unlock()
	var out []tool.Tool
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, cmp.Or(cause(ctx), fmt.Errorf("its tools cannot be listed: %w", err))
		}
		one, err := newRemote(name, session, t)
		if err != nil {
			return out, err
		}
		out = append(out, one)
	}
	return out, nil
}

// cause returns why ctx was cancelled, nil if it was not.
func cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// lastWords keeps the last line that was written to it.
type lastWords struct {
	mu  sync.Mutex
	end []byte
}

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 1 << 10
	l.end = append(l.end, p...)
	l.end = bytes.Clone(l.end[max(0, len(l.end)-most):])
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.end), ""))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

func (s Server) transport(said io.Writer) (mcp.Transport, error) {
	switch {
	case s.Command != "" && s.URL != "":
		return nil, errors.New("it has a command and a url: keep one of them")
	case s.Command != "":
		cmd := exec.Command(s.Command, s.Args...)
		cmd.Env, cmd.Dir, cmd.Stderr = s.Env, s.Dir, said
		return &mcp.CommandTransport{Command: cmd, TerminateDuration: terminate}, nil
	case strings.HasPrefix(s.URL, "http://"), strings.HasPrefix(s.URL, "https://"):
		return &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: headers(s.Headers)}, DisableStandaloneSSE: true}, nil
	case s.URL != "":
		return nil, fmt.Errorf("%q is not an address: it must begin with http:// or https://", s.URL)
	}
	return nil, errors.New("it has neither a command nor a url")
}

// headers are added to every request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// remote is a tool of a server.
type remote struct {
	session *mcp.ClientSession
	server  string
	name    string // there
	spec    llm.ToolSpec
	reads   bool // it says that it changes nothing
}

// odd are the characters that a name of a tool must not have.
var odd = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

const (
	maxName        = 64
	maxDescription = 1024 // bytes that a description may take from the window
)

// Name returns what a tool of a server is called here.
func Name(server, tool string) string {
	name := odd.ReplaceAllString(server, "_") + "__" + odd.ReplaceAllString(tool, "_")
	return name[:min(len(name), maxName)]
}

func newRemote(server string, session *mcp.ClientSession, t *mcp.Tool) (*remote, error) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("the tool %s: %w", t.Name, err)
	}
	about := cmp.Or(t.Description, t.Title, t.Name)
	if len(about) > maxDescription {
		about = strings.ToValidUTF8(about[:maxDescription], "") + " …"
	}
	r := &remote{session: session, server: server, name: t.Name, spec: llm.ToolSpec{Name: Name(server, t.Name), Description: about, Schema: schema}}
	r.reads = t.Annotations != nil && t.Annotations.ReadOnlyHint
	return r, nil
}

func (r *remote) Spec() llm.ToolSpec { return r.spec }

// Mutates implements tool.Mutator, as far as the server can be believed.
func (r *remote) Mutates(llm.ToolCall) bool { return !r.reads }

// Request implements tool.Guarded: what another program does is asked about.
func (r *remote) Request(call llm.ToolCall) (tool.Request, bool) {
	return tool.Request{Tool: call.Name, Command: string(call.Args), Dir: "the MCP server " + r.server, Rule: tool.Rule{Tool: call.Name}}, true
}

func (r *remote) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	res, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: r.name, Arguments: json.RawMessage(call.Args)})
	if ctx.Err() != nil {
		return llm.Failed(call, "interrupted"), ctx.Err()
	}
	if err != nil {
		return llm.Failed(call, fmt.Sprintf("the MCP server %s: %v", r.server, err)), nil
	}
	out := llm.ToolResult{CallID: call.ID, Name: call.Name, IsError: res.IsError}
	for _, c := range res.Content {
		out.Blocks = append(out.Blocks, block(c))
	}
	if len(out.Blocks) == 0 && res.StructuredContent != nil {
		if data, err := json.Marshal(res.StructuredContent); err == nil {
			out.Blocks = append(out.Blocks, llm.Text{Text: string(data)})
		}
	}
	return out, nil
}

// block returns what a server sent as the model can take it.
func block(c mcp.Content) llm.Block {
	switch c := c.(type) {
	case *mcp.TextContent:
		return llm.Text{Text: c.Text}
	case *mcp.ImageContent:
		if im, err := llm.NewImage(c.Data); err == nil {
			return im
		} else {
			return llm.Text{Text: fmt.Sprintf("[an image that cannot be shown: %v]", err)}
		}
	case *mcp.EmbeddedResource:
		if c.Resource != nil && c.Resource.Text != "" {
			return llm.Text{Text: c.Resource.Text}
		}
	case *mcp.ResourceLink:
		return llm.Text{Text: fmt.Sprintf("[%s: %s]", cmp.Or(c.Title, c.Name), c.URI)}
	}
	return llm.Text{Text: fmt.Sprintf("[%T that cannot be shown]", c)}
}

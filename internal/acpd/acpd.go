// Package acpd is goclaw as an agent for editors: the Agent Client Protocol on
// standard input and output.
package acpd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
)

// Server is an MCP server that the editor wants a session to have.
type Server struct {
	Name, Command, URL string
	Args               []string
	Env, Headers       map[string]string
}

// Host is what the editor talks to: sessions, and what runs turns in them.
type Host interface {
	Begin(ctx context.Context, folder string) (session.Info, error)
	Find(ctx context.Context, id session.ID) (session.Info, error)
	// List returns sessions with titles, of one folder if that is not empty, and
	// where the next ones begin ("": there are none).
	List(ctx context.Context, folder, after string) (infos []session.Info, next string, err error)
	// Continue returns the session in which to go on: in itself, or the
	// continuation of a mirror.
	Continue(ctx context.Context, in session.Info) (session.Info, error)
	Open(ctx context.Context, id session.ID) (*session.Session, error)
	// Seat returns what runs the turns of a session in a folder.
	Seat(ctx context.Context, in session.Info, folder string, servers []Server, ask tool.Approver) (Seat, error)
	// Window returns the model's window, how much of it is in use, and what the
	// session has cost in dollars.
	Window(ctx context.Context, in session.Info) (size, used int, usd float64, err error)
}

// Seat runs the turns of one session.
type Seat interface {
	Run(ctx context.Context, in llm.Message) iter.Seq2[agent.Event, error]
	Mode() tool.Mode
	SetMode(tool.Mode)
	Close()
}

// callOf returns the call that an Approver is asked about, if ctx has it.
func callOf(ctx context.Context) (llm.ToolCall, bool) {
	call, ok := ctx.Value(callKey{}).(llm.ToolCall)
	return call, ok
}

// WithCall returns a context in which call is run.
func WithCall(ctx context.Context, call llm.ToolCall) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

type callKey struct{}

// Serve talks to an editor until it leaves or ctx is done.
func Serve(ctx context.Context, host Host, version string, in io.Reader, out io.Writer) error {
	a := &editor{ctx: ctx, host: host, version: version, open: map[acp.SessionId]*conversation{}}
	a.conn = acp.NewAgentSideConnection(a, out, a.order.watch(in))
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	a.close()
	return nil
}

// editor is the connection to an editor.
type editor struct {
	ctx     context.Context
	host    Host
	version string
	conn    *acp.AgentSideConnection
	order   order

	mu   sync.Mutex
	open map[acp.SessionId]*conversation
}

// conversation is a session that the editor has opened. Its id stays the same
// when an imported session goes on in one of our own.
type conversation struct {
	editor  *editor
	id      acp.SessionId
	in      session.Info
	folder  string
	servers []Server
	seat    Seat
	title   string

	turn   sync.Mutex // held while a turn runs
	mu     sync.Mutex
	stop   context.CancelFunc // of the turn
	number int                // of its prompt
}

func (a *editor) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.open {
		c.cancel()
		c.turn.Lock() // until the turn has ended
		if c.seat != nil {
			c.seat.Close()
		}
		c.turn.Unlock()
	}
	a.open = map[acp.SessionId]*conversation{}
}

// Initialize says what goclaw can do.
func (a *editor) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersion(acp.ProtocolVersionNumber),
		AgentInfo:       &acp.Implementation{Name: "goclaw", Title: acp.Ptr("goclaw"), Version: a.version},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:         true,
			PromptCapabilities:  acp.PromptCapabilities{Image: true, EmbeddedContext: true},
			McpCapabilities:     acp.McpCapabilities{Http: true},
			SessionCapabilities: acp.SessionCapabilities{List: &acp.SessionListCapabilities{}, Resume: &acp.SessionResumeCapabilities{}, Close: &acp.SessionCloseCapabilities{}},
		},
		AuthMethods: []acp.AuthMethod{},
	}, nil
}

// Authenticate has nothing to do: keys are goclaw's own.
func (a *editor) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

// modes are what is done without asking.
var modes = []acp.SessionMode{
	{Id: "ask", Name: "Ask", Description: acp.Ptr("Asks before it changes files or runs commands")},
	{Id: "edits", Name: "Edits", Description: acp.Ptr("Changes files in the folder, asks before commands")},
	{Id: "plan", Name: "Plan", Description: acp.Ptr("Reads only")},
	{Id: "all", Name: "All", Description: acp.Ptr("Asks only about goclaw's own files")},
}

// NewSession begins a session.
func (a *editor) NewSession(ctx context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	folder, err := folderOf(p.Cwd)
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	in, err := a.host.Begin(ctx, folder)
	if err != nil {
		return acp.NewSessionResponse{}, failed(err)
	}
	c, err := a.seat(ctx, acp.SessionId(in.ID), in, folder, p.McpServers)
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	return acp.NewSessionResponse{SessionId: c.id, Modes: c.modes()}, nil
}

// LoadSession opens a session and tells the editor everything that was said.
func (a *editor) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	c, err := a.find(ctx, p.SessionId, p.Cwd, p.McpServers)
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	s, err := a.host.Open(ctx, c.in.ID)
	if err != nil {
		return acp.LoadSessionResponse{}, failed(err)
	}
	for _, rec := range s.Branch {
		for _, u := range c.told(rec.Body) {
			if err := c.update(ctx, u); err != nil {
				return acp.LoadSessionResponse{}, err
			}
		}
	}
	c.about(ctx)
	return acp.LoadSessionResponse{Modes: c.modes()}, nil
}

// ResumeSession opens a session of which the editor knows the past.
func (a *editor) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	c, err := a.find(ctx, p.SessionId, p.Cwd, p.McpServers)
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	return acp.ResumeSessionResponse{Modes: c.modes()}, nil
}

// CloseSession ends what runs in a session, and frees it.
func (a *editor) CloseSession(_ context.Context, p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	a.mu.Lock()
	c := a.open[p.SessionId]
	delete(a.open, p.SessionId)
	a.mu.Unlock()
	if c == nil {
		return acp.CloseSessionResponse{}, unknown(p.SessionId)
	}
	c.cancel()
	c.turn.Lock()
	defer c.turn.Unlock()
	c.seat.Close()
	return acp.CloseSessionResponse{}, nil
}

// ListSessions lists the sessions, of one folder if the editor asks for that.
func (a *editor) ListSessions(ctx context.Context, p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	var folder, after string
	if p.Cwd != nil {
		folder = *p.Cwd
	}
	if p.Cursor != nil {
		after = *p.Cursor
	}
	infos, next, err := a.host.List(ctx, folder, after)
	if err != nil {
		return acp.ListSessionsResponse{}, failed(err)
	}
	out := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	for _, in := range infos {
		row := acp.SessionInfo{SessionId: acp.SessionId(in.ID), Cwd: in.CWD, UpdatedAt: acp.Ptr(transcript.Stamp(in.Updated))}
		if row.Cwd == "" {
			row.Cwd = string(filepath.Separator)
		}
		if in.Title != "" {
			row.Title = acp.Ptr(in.Title)
		}
		out.Sessions = append(out.Sessions, row)
	}
	if next != "" {
		out.NextCursor = acp.Ptr(next)
	}
	return out, nil
}

// Cancel stops the turn of a session, unless its prompt came after the
// cancellation, which the library may hand over late.
func (a *editor) Cancel(_ context.Context, p acp.CancelNotification) error {
	c := a.get(p.SessionId)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil && a.order.withdrawn(c.id, c.number) {
		c.stop()
	}
	return nil
}

// SetSessionMode changes what is done without asking.
func (a *editor) SetSessionMode(_ context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	c := a.get(p.SessionId)
	if c == nil {
		return acp.SetSessionModeResponse{}, unknown(p.SessionId)
	}
	mode, err := tool.ParseMode(string(p.ModeId))
	if err != nil {
		return acp.SetSessionModeResponse{}, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	c.seat.SetMode(mode)
	return acp.SetSessionModeResponse{}, nil
}

// SetSessionConfigOption has no options to set.
func (a *editor) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewInvalidParams(map[string]any{"error": "goclaw has no options to set: it has modes"})
}

// Prompt runs a turn.
func (a *editor) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	number := a.order.begin(p.SessionId)
	c := a.get(p.SessionId)
	if c == nil {
		return acp.PromptResponse{}, unknown(p.SessionId)
	}
	say, err := message(p.Prompt)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	// The request's own context ends with a cancellation, too, and then nothing
	// could be told any more.
	return c.prompt(a.ctx, ctx.Done(), number, say)
}

func (a *editor) get(id acp.SessionId) *conversation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[id]
}

// find opens a session that there is.
func (a *editor) find(ctx context.Context, id acp.SessionId, cwd string, servers []acp.McpServer) (*conversation, error) {
	folder, err := folderOf(cwd)
	if err != nil {
		return nil, err
	}
	in, err := a.host.Find(ctx, session.ID(id))
	if errors.Is(err, session.ErrNotFound) {
		return nil, unknown(id)
	}
	if err != nil {
		return nil, failed(err)
	}
	return a.seat(ctx, id, in, folder, servers)
}

// seat makes a session ready for turns.
func (a *editor) seat(ctx context.Context, id acp.SessionId, in session.Info, folder string, servers []acp.McpServer) (*conversation, error) {
	c := &conversation{editor: a, id: id, in: in, folder: folder, servers: serversOf(servers), title: in.Title}
	var err error
	if c.seat, err = a.host.Seat(ctx, in, folder, c.servers, tool.ApproverFunc(c.approve)); err != nil {
		return nil, failed(err)
	}
	a.mu.Lock()
	old := a.open[id]
	a.open[id] = c
	a.mu.Unlock()
	if old != nil {
		old.cancel()
		old.turn.Lock()
		old.seat.Close()
		old.turn.Unlock()
	}
	return c, nil
}

func folderOf(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf("cwd %q is not an absolute path", cwd)})
	}
	return filepath.Clean(cwd), nil
}

func serversOf(list []acp.McpServer) (out []Server) {
	for _, s := range list {
		switch {
		case s.Stdio != nil:
			env := map[string]string{}
			for _, e := range s.Stdio.Env {
				env[e.Name] = e.Value
			}
			out = append(out, Server{Name: s.Stdio.Name, Command: s.Stdio.Command, Args: s.Stdio.Args, Env: env})
		case s.Http != nil:
			headers := map[string]string{}
			for _, h := range s.Http.Headers {
				headers[h.Name] = h.Value
			}
			out = append(out, Server{Name: s.Http.Name, URL: s.Http.Url, Headers: headers})
		}
	}
	return out
}

func unknown(id acp.SessionId) error {
	return acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf("there is no session %q", id)})
}

// failed returns err in the form of the protocol, with its text where editors
// show it.
func failed(err error) error {
	return &acp.RequestError{Code: -32603, Message: err.Error()}
}

// message returns what an editor sends as a message of the user. Files that the
// editor gives are quoted with their names; those that it only names are named.
func message(blocks []acp.ContentBlock) (llm.Message, error) {
	m := llm.Message{Role: llm.User}
	text := func(s string) { m.Blocks = append(m.Blocks, llm.Text{Text: s}) }
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			text(b.Text.Text)
		case b.Image != nil:
			if _, err := base64.StdEncoding.DecodeString(b.Image.Data); err != nil {
				return m, acp.NewInvalidParams(map[string]any{"error": "an image is not in base64"})
			}
			m.Blocks = append(m.Blocks, llm.Image{MIME: b.Image.MimeType, Data: b.Image.Data})
		case b.ResourceLink != nil:
			text("[" + strings.TrimPrefix(b.ResourceLink.Uri, "file://") + "]")
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			text(fmt.Sprintf("<file path=%q>\n%s\n</file>", strings.TrimPrefix(r.Uri, "file://"), r.Text))
		default:
			return m, acp.NewInvalidParams(map[string]any{"error": "a part of the message is of a kind that goclaw does not understand"})
		}
	}
	if !slices.ContainsFunc(m.Blocks, func(b llm.Block) bool { t, ok := b.(llm.Text); return !ok || strings.TrimSpace(t.Text) != "" }) {
		return m, acp.NewInvalidParams(map[string]any{"error": "the message is empty"})
	}
	return m, nil
}

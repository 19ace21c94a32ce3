package acpd

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
)

func (c *conversation) modes() *acp.SessionModeState {
	return &acp.SessionModeState{AvailableModes: modes, CurrentModeId: acp.SessionModeId(c.seat.Mode().String())}
}

// cancel stops the turn, if one runs.
func (c *conversation) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

func (c *conversation) update(ctx context.Context, u acp.SessionUpdate) error {
	return c.editor.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: c.id, Update: u})
}

// prompt runs the turn of a prompt, by its number, and tells the editor what
// happens. One runs at a time. It stops when the editor has withdrawn its request,
// maybe before it began.
func (c *conversation) prompt(ctx context.Context, withdrawn <-chan struct{}, number int, say llm.Message) (acp.PromptResponse, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	turn, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-withdrawn:
			stop()
		case <-turn.Done():
		}
	}()
	c.mu.Lock()
	c.stop, c.number = stop, number
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.stop = nil
		c.mu.Unlock()
	}()
	if c.editor.order.withdrawn(c.id, number) {
		stop()
	}
	if err := c.own(turn); err != nil && turn.Err() == nil {
		return acp.PromptResponse{}, failed(err)
	} else if err != nil {
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	out := acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	for ev, err := range c.seat.Run(turn, say) {
		if err != nil {
			if turn.Err() != nil || errors.Is(err, context.Canceled) {
				return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
			}
			return out, failed(err)
		}
		if d, ok := ev.(agent.Done); ok {
			if d.Stop == llm.StopLength {
				out.StopReason = acp.StopReasonMaxTokens
			}
			u := d.Usage
			out.Usage = &acp.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedReadTokens: acp.Ptr(u.CacheRead), CachedWriteTokens: acp.Ptr(u.CacheWrite), TotalTokens: u.Total()}
		}
		for _, u := range c.shown(ev) {
			if err := c.update(ctx, u); err != nil {
				return out, err // the editor has left: the turn ends, and what was said is kept
			}
		}
	}
	c.about(ctx)
	return out, nil
}

// own lets an imported session go on in one of our own.
func (c *conversation) own(ctx context.Context) error {
	if !c.in.Mirror() {
		return nil
	}
	in, err := c.editor.host.Continue(ctx, c.in)
	if err != nil {
		return err
	}
	seat, err := c.editor.host.Seat(ctx, in, c.folder, c.servers, tool.ApproverFunc(c.approve))
	if err != nil {
		return err
	}
	mode := c.seat.Mode()
	c.seat.Close()
	c.in, c.seat = in, seat
	c.seat.SetMode(mode)
	return nil
}

// about tells the editor the session's title, and how full the window is.
func (c *conversation) about(ctx context.Context) {
	in, err := c.editor.host.Find(ctx, c.in.ID)
	if err != nil {
		return
	}
	if in.Title != "" && in.Title != c.title {
		c.title = in.Title
		_ = c.update(ctx, acp.SessionUpdate{SessionInfoUpdate: &acp.SessionSessionInfoUpdate{SessionUpdate: "session_info_update", Title: acp.Ptr(in.Title), UpdatedAt: acp.Ptr(transcript.Stamp(in.Updated))}})
	}
	if size, used, usd, err := c.editor.host.Window(ctx, in); err == nil && size > 0 {
		u := &acp.SessionUsageUpdate{SessionUpdate: "usage_update", Size: size, Used: used}
		if usd > 0 {
			u.Cost = &acp.Cost{Amount: usd, Currency: "USD"}
		}
		_ = c.update(ctx, acp.SessionUpdate{UsageUpdate: u})
	}
}

// shown returns what the editor is told about an event of a turn.
func (c *conversation) shown(ev agent.Event) []acp.SessionUpdate {
	switch ev := ev.(type) {
	case agent.Said:
		switch {
		case ev.Text != "":
			return []acp.SessionUpdate{acp.UpdateAgentMessageText(ev.Text)}
		case ev.Thinking != "":
			return []acp.SessionUpdate{acp.UpdateAgentThoughtText(ev.Thinking)}
		}
	case agent.Calling:
		return []acp.SessionUpdate{c.started(ev.Call, acp.ToolCallStatusInProgress)}
	case agent.Called:
		return []acp.SessionUpdate{c.ended(ev.Call, ev.Result)}
	case agent.Recorded, agent.Done:
	default:
		if text := transcript.Event(ev); text != "" { // a compaction, a retry, a refusal
			return []acp.SessionUpdate{acp.UpdateAgentThoughtText("[" + text + "]\n")}
		}
	}
	return nil
}

// told returns what the editor is told about a record of the past.
func (c *conversation) told(b session.Body) (out []acp.SessionUpdate) {
	switch b := b.(type) {
	case session.Compaction:
		return []acp.SessionUpdate{acp.UpdateAgentThoughtText("[The earlier turns were compacted: this summary is sent in their place.]\n" + b.Summary + "\n")}
	case session.Message:
		for _, block := range b.Blocks {
			switch block := block.(type) {
			case llm.Text:
				if b.Role == llm.Assistant {
					out = append(out, acp.UpdateAgentMessageText(block.Text))
				} else {
					out = append(out, acp.UpdateUserMessageText(block.Text))
				}
			case llm.Thinking:
				if block.Text != "" {
					out = append(out, acp.UpdateAgentThoughtText(block.Text))
				}
			case llm.Image:
				if b.Role == llm.User {
					out = append(out, acp.UpdateUserMessage(acp.ImageBlock(block.Data, block.MIME)))
				}
			case llm.ToolCall:
				out = append(out, c.started(block, acp.ToolCallStatusPending))
			case llm.ToolResult:
				out = append(out, c.ended(llm.ToolCall{ID: block.CallID, Name: block.Name}, block))
			}
		}
	}
	return out
}

// kinds are what the tools do, for the editor's icons.
var kinds = map[string]acp.ToolKind{
	"read_file": acp.ToolKindRead, "list_directory": acp.ToolKindRead, "memory_get": acp.ToolKindRead, "session_read": acp.ToolKindRead,
	"write_file": acp.ToolKindEdit, "edit_file": acp.ToolKindEdit, "bash": acp.ToolKindExecute, "fetch": acp.ToolKindFetch,
	"grep": acp.ToolKindSearch, "glob": acp.ToolKindSearch, "memory_search": acp.ToolKindSearch, "session_search": acp.ToolKindSearch,
}

func kindOf(name string) acp.ToolKind {
	if k, ok := kinds[name]; ok {
		return k
	}
	return acp.ToolKindOther
}

func (c *conversation) started(call llm.ToolCall, status acp.ToolCallStatus) acp.SessionUpdate {
	opts := []acp.ToolCallStartOpt{acp.WithStartKind(kindOf(call.Name)), acp.WithStartStatus(status), acp.WithStartRawInput(rawOf(call))}
	if path := c.pathOf(call); path != "" {
		opts = append(opts, acp.WithStartLocations([]acp.ToolCallLocation{{Path: path}}))
	}
	return acp.StartToolCall(acp.ToolCallId(call.ID), transcript.CallLine(call), opts...)
}

func (c *conversation) ended(call llm.ToolCall, r llm.ToolResult) acp.SessionUpdate {
	status := acp.ToolCallStatusCompleted
	if r.IsError {
		status = acp.ToolCallStatusFailed
	}
	content := []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(r.Text()))}
	if call.Name == "edit_file" && !r.IsError {
		if _, diff, ok := strings.Cut(r.Text(), "\n"); ok && strings.Contains(diff, "@@ ") {
			content = diffOf(c.pathOf(call), diff)
		}
	}
	return acp.UpdateToolCall(acp.ToolCallId(call.ID), acp.WithUpdateStatus(status), acp.WithUpdateContent(content))
}

func rawOf(call llm.ToolCall) any {
	var v any
	if json.Unmarshal(call.Args, &v) != nil {
		return string(call.Args)
	}
	return v
}

// pathOf returns the file that a call is about, if it names one.
func (c *conversation) pathOf(call llm.ToolCall) string {
	var args struct{ Path string }
	_ = json.Unmarshal(call.Args, &args)
	return c.absolute(args.Path)
}

// absolute returns a path as editors want it.
func (c *conversation) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.folder, path)
}

// diffOf returns a unified diff as an editor shows it: what each part was, and
// what it becomes.
func diffOf(path, diff string) (out []acp.ToolCallContent) {
	var before, after strings.Builder
	flush := func() {
		if before.Len()+after.Len() > 0 {
			out = append(out, acp.ToolDiffContent(path, after.String(), before.String()))
		}
		before.Reset()
		after.Reset()
	}
	inside := false
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			inside = true
		case !inside || strings.HasPrefix(line, `\`):
		case strings.HasPrefix(line, "-"):
			before.WriteString(line[1:])
		case strings.HasPrefix(line, "+"):
			after.WriteString(line[1:])
		default:
			before.WriteString(strings.TrimPrefix(line, " "))
			after.WriteString(strings.TrimPrefix(line, " "))
		}
	}
	flush()
	return out
}

// answers are those to a question, by the ids of the editor's options.
var answers = map[acp.PermissionOptionId]tool.Decision{"once": tool.Once, "session": tool.Session, "always": tool.Always, "no": tool.No}

// approve asks the editor's user.
func (c *conversation) approve(ctx context.Context, r tool.Request) (tool.Decision, error) {
	options := []acp.PermissionOption{{Kind: acp.PermissionOptionKindAllowOnce, Name: "Once", OptionId: "once"}}
	if !r.Private {
		options = append(options,
			acp.PermissionOption{Kind: acp.PermissionOptionKindAllowAlways, Name: "For this session: " + r.Rule.String(), OptionId: "session"},
			acp.PermissionOption{Kind: acp.PermissionOptionKindAllowAlways, Name: "Always in this folder: " + r.Rule.String(), OptionId: "always"})
	}
	options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"})
	title := r.Command
	if title == "" {
		title = "Change " + r.Path
	}
	q := acp.ToolCallUpdate{ToolCallId: "question", Title: acp.Ptr(title), Kind: acp.Ptr(kindOf(r.Tool)), Status: acp.Ptr(acp.ToolCallStatusPending)}
	if call, ok := callOf(ctx); ok {
		q.ToolCallId, q.RawInput = acp.ToolCallId(call.ID), rawOf(call)
	}
	if r.Diff != "" {
		q.Content = diffOf(c.absolute(r.Path), r.Diff)
		q.Locations = []acp.ToolCallLocation{{Path: c.absolute(r.Path)}}
	}
	resp, err := c.editor.conn.RequestPermission(ctx, acp.RequestPermissionRequest{SessionId: c.id, ToolCall: q, Options: options})
	switch {
	case err != nil:
		return tool.No, err
	case resp.Outcome.Selected == nil:
		return tool.No, tool.Because("the question was closed without an answer")
	}
	return answers[resp.Outcome.Selected.OptionId], nil
}

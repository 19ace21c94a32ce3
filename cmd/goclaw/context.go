package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

func (a *app) contextCmd() *cobra.Command {
	var file string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "context KEY",
		Short: "Show what the model would be sent now",
		Long: `Shows what the model would be sent if the conversation went on now, and how
much of its window that takes. --file reads a transcript directly, whatever
agent wrote it, and changes nothing.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return atMost(0)(cmd, args)
			}
			return exactly("KEY")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var s *session.Session
			var err error
			if file != "" {
				s, err = a.readFile(cmd.Context(), file, strict)
			} else {
				s, err = a.contextOf(cmd.Context(), args[0], strict)
			}
			if err != nil {
				return err
			}
			return a.showContext(cmd.Context(), s, file != "", asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "a transcript of any agent instead of a session; of a database PATH#ID, else the one used last")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"model","system","messages","budget","breakdown","cost"}`)
	cmd.Flags().BoolVar(&strict, "strict", false, "read the tree as pi does, without healing it")
	return cmd
}

func (a *app) contextOf(ctx context.Context, ref string, strict bool) (*session.Session, error) {
	st, in, err := a.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if strict {
		return session.Replay(in.ID, st.Read(ctx, in.ID, 0), session.Strict())
	}
	return session.Open(ctx, st, in.ID)
}

// readFile replays a transcript without touching it: of a file of any agent,
// or of a database, "PATH#ID" or the session that was used last.
func (a *app) readFile(ctx context.Context, path string, strict bool) (*session.Session, error) {
	file, id := path, ""
	fi, err := os.Stat(file)
	if i := strings.LastIndexByte(path, '#'); err != nil && i > 0 {
		file, id = path[:i], path[i+1:]
		fi, err = os.Stat(file)
	}
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", file)
	}
	cat, err := inherit.Find(ctx, []string{file}, inherit.Options{})
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	var opts []session.Option
	if strict {
		opts = append(opts, session.Strict())
	}
	var best *session.Session
	for _, t := range cat.Transcripts {
		if id != "" && id != string(t.ID) && id != string(t.Key) || id == "" && len(cat.Transcripts) > 1 && t.Archive != "" {
			continue
		}
		s, err := session.Replay(t.ID, t.Records(ctx), opts...)
		if err != nil {
			return nil, err
		}
		if best == nil || s.Updated.After(best.Updated) {
			best = s
		}
	}
	switch {
	case best != nil:
		return best, nil
	case id != "":
		return nil, fmt.Errorf("%s has no session %q", file, id)
	case len(cat.Problems) > 0:
		return nil, errors.New(cat.Problems[0].String())
	}
	return nil, fmt.Errorf("%s is not a transcript that is known here", file)
}

func (a *app) showContext(ctx context.Context, s *session.Session, file, asJSON bool) error {
	v, err := a.contextVoice(ctx, s, file)
	if err != nil {
		return err
	}
	p := v.prompt(a.conf)
	x := window.Explain(s, p, v.tokens, v.budget)
	if x.Cost, err = a.contextCost(ctx, s, file); err != nil {
		return err
	}
	budget := x.Budget
	p.Tail = window.Tail(s, budget, a.conf.Session.MemoryFlush.ShowInSystemPrompt)
	req := window.Build(s, p, window.Loose)
	if asJSON {
		parts := []map[string]any{}
		for _, part := range x.Parts {
			parts = append(parts, map[string]any{"name": part.Name, "tokens": part.Tokens, "count": part.Count})
		}
		return a.printJSON(map[string]any{
			"model": v.name(), "system": req.System, "messages": wireMessages(req.Messages), "tail": req.Tail,
			"budget":    map[string]int{"window": budget.Window, "reserve": budget.Reserve, "used": budget.Used, "percent": budget.Percent()},
			"breakdown": map[string]any{"parts": parts, "other": x.Other, "pinned": x.Pinned, "pins": x.Pins, "ratio": x.Ratio},
			"folds":     x.Folds, "flushWarned": x.Warned, "flushActioned": x.Saved,
			"cost": map[string]any{"usd": x.Cost, "input": x.Spent.Input, "output": x.Spent.Output, "cacheRead": x.Spent.CacheRead, "cacheWrite": x.Spent.CacheWrite},
		})
	}
	st := a.style()
	fmt.Fprintln(a.out, st.Bold("system"))
	fmt.Fprintln(a.out, req.System)
	for _, m := range wireMessages(req.Messages) {
		fmt.Fprintln(a.out)
		fmt.Fprintln(a.out, st.Bold(string(m.Role)))
		for _, b := range m.Content {
			text, ok := b["text"].(string)
			if !ok {
				raw, err := json.Marshal(b)
				if err != nil {
					return err
				}
				text = string(raw)
			}
			fmt.Fprintln(a.out, text)
		}
	}
	fmt.Fprintln(a.out)
	for _, line := range transcript.Window(x, 40) {
		fmt.Fprintln(a.out, st.Dim(line))
	}
	fmt.Fprintln(a.out, st.Dim(v.name()+" "+budget.String()))
	a.damage(s.Damage)
	return nil
}

// contextCost is what s has cost in dollars. A file was read whole; of a
// session in the store only what the model is sent.
func (a *app) contextCost(ctx context.Context, s *session.Session, file bool) (float64, error) {
	if !file {
		return a.spent(ctx, s.ID)
	}
	bill := bill{conf: a.conf}
	for _, r := range s.Branch {
		bill.add(r.Body)
	}
	return bill.usd, nil
}

// wireMessage is a message in the form of the Anthropic Messages API, which
// other programs read from context --json.
type wireMessage struct {
	Role    llm.Role         `json:"role"`
	Content []map[string]any `json:"content"`
}

func wireMessages(ms []llm.Message) []wireMessage {
	out := []wireMessage{}
	for _, m := range ms {
		out = append(out, wireMessage{m.Role, wireBlocks(m.Blocks)})
	}
	return out
}

func wireBlocks(blocks []llm.Block) []map[string]any {
	out := []map[string]any{}
	for _, b := range blocks {
		switch b := b.(type) {
		case llm.Text:
			out = append(out, map[string]any{"type": "text", "text": b.Text})
		case llm.Thinking:
			if b.Redacted {
				out = append(out, map[string]any{"type": "redacted_thinking", "data": b.Signature})
			} else {
				out = append(out, map[string]any{"type": "thinking", "thinking": b.Text, "signature": b.Signature})
			}
		case llm.ToolCall:
			out = append(out, map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": b.Args})
		case llm.ToolResult:
			r := map[string]any{"type": "tool_result", "tool_use_id": b.CallID, "content": wireBlocks(b.Blocks)}
			if b.IsError {
				r["is_error"] = true
			}
			out = append(out, r)
		case llm.Image:
			out = append(out, map[string]any{"type": "image", "source": map[string]string{"type": "base64", "media_type": b.MIME, "data": b.Data}})
		}
	}
	return out
}

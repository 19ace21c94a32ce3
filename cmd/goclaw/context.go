package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/agent"
	"goclaw/internal/inherit"
	"goclaw/internal/models"
	"goclaw/internal/nextrequest"
	"goclaw/internal/spending"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

func contextCmd(a *app) *cobra.Command {
	var file string
	var asJSON, strict, wire bool
	cmd := &cobra.Command{
		Use:   "context KEY",
		Short: "Show what the model would be sent now",
		Long: `Shows what the model would be sent next, and how much of its window that takes.
No API key is needed: nothing is sent. With --json, system, messages and tools
are the bytes of the next request; your next message is appended to them.
--file reads a transcript directly, whatever agent wrote it, and changes
nothing.`,
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
				s, err = readFile(cmd.Context(), file, strict)
			} else {
				s, err = contextOf(cmd.Context(), a, args[0], strict)
			}
			if err != nil {
				return err
			}
			return showContext(cmd.Context(), a, s, file != "", asJSON || wire, wire)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "read a transcript file of any agent instead of a session; for a database, PATH#ID (default: the session used last)")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"model","system","messages","tools","tail","budget","breakdown","cost"}`)
	cmd.Flags().BoolVar(&wire, "wire", false, "--json, in the form of the model's own API instead of Anthropic's")
	cmd.Flags().BoolVar(&strict, "strict", false, "read the tree as pi does, without repairing it")
	return cmd
}

func contextOf(ctx context.Context, a *app, ref string, strict bool) (*session.Session, error) {
	st, in, err := a.stores.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if strict {
		return session.ReplayStrict(in.ID, st.Read(ctx, in.ID, 0))
	}
	return session.Open(ctx, st, in.ID)
}

// readFile replays a transcript without touching it: of a file of any agent,
// or of a database, "PATH#ID" or the session that was used last.
func readFile(ctx context.Context, path string, strict bool) (*session.Session, error) {
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
	cat, err := inherit.Find(ctx, []string{file}, inherit.FindOptions{})
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	replay := session.Replay
	if strict {
		replay = session.ReplayStrict
	}
	var best *session.Session
	for _, t := range cat.Transcripts {
		if id != "" && id != string(t.ID) && id != string(t.Key) || id == "" && len(cat.Transcripts) > 1 && t.Archive != "" {
			continue
		}
		s, err := replay(t.ID, t.Records(ctx))
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
	return nil, fmt.Errorf("%s is not a transcript of a known program", file)
}

func showContext(ctx context.Context, a *app, s *session.Session, file, asJSON, wire bool) error {
	m, err := a.models.ForContext(ctx, s, file)
	if err != nil {
		return err
	}
	p := m.Prompt(a.conf)
	if !file {
		p = a.prompt(m, s)
		p.Tools = turnTools(ctx, a)
	}
	x := window.Explain(s, p, m.Tokens, m.Budget)
	if x.Cost, err = contextCost(ctx, a, s, file); err != nil {
		return err
	}
	next, err := nextrequest.Encode(m.Provider, asJSON && wire, s, p)
	if err != nil {
		return err
	}
	o := models.CompactOptions(a.conf.Session)
	first := agent.CompactsFirst(s, x.Budget, agent.Policy{Compact: &o, Prompt: p, Tokens: m.Tokens})
	if asJSON {
		return printContextJSON(a.data(), contextJSON(m, x, first, window.Tail(s, x.Budget, a.conf.Session.MemoryFlush.ShowInSystemPrompt)), next)
	}
	if err := printContext(a.env, p, next); err != nil {
		return err
	}
	st := a.style()
	for _, line := range transcript.Window(x, 40) {
		fmt.Fprintln(a.out, st.Dim(line))
	}
	if first {
		fmt.Fprintln(a.out, st.Dim("  the past is compacted before the next question is asked"))
	}
	fmt.Fprintln(a.out, st.Dim(transcript.Name(m.Name())+" "+x.Budget.String()))
	if !file {
		_, problems := a.brief.Known()
		for _, line := range problems {
			fmt.Fprintln(a.out, st.Dim("  "+transcript.Printable(line)))
		}
	}
	a.damage(s.Damage...)
	return nil
}

// contextJSON returns what programs read besides the next request.
func contextJSON(m *models.Model, x window.Breakdown, first bool, tail string) map[string]any {
	b := x.Budget
	parts := []map[string]any{}
	for _, part := range x.Parts {
		parts = append(parts, map[string]any{"name": part.Name, "tokens": part.Tokens, "count": part.Count})
	}
	largest := []map[string]any{}
	for _, item := range x.Largest {
		largest = append(largest, map[string]any{"record": item.Seq, "name": item.Part, "tokens": item.Tokens})
	}
	return map[string]any{
		"model": m.Name(), "tail": tail,
		"budget":        map[string]int{"window": b.Window, "reserve": b.Reserve, "used": b.Used, "percent": b.Percent()},
		"compactsFirst": first,
		"breakdown":     map[string]any{"parts": parts, "largest": largest, "other": x.Other, "pinned": x.Pinned, "pins": x.Pins, "ratio": x.Ratio},
		"compactions":   x.Compactions,
		"folds":         x.Compactions, // the name of compactions in v0.1, which programs may read
		"flushWarned":   x.Warned, "flushActioned": x.Saved,
		"cost": map[string]any{"usd": x.Cost, "input": x.Spent.Input, "output": x.Spent.Output, "cacheRead": x.Spent.CacheRead, "cacheWrite": x.Spent.CacheWrite},
	}
}

// printContextJSON prints the next request and the rest as one object. The
// request is not encoded again: not even a space may differ.
func printContextJSON(w io.Writer, rest map[string]any, next nextrequest.Request) error {
	var b bytes.Buffer
	if err := writeJSON(&b, rest); err != nil {
		return err
	}
	fmt.Fprintf(w, "{\n  \"messages\": [%s],\n", bytes.Join(next.Messages, []byte(",")))
	if next.System != nil {
		fmt.Fprintf(w, "  \"system\": %s,\n", next.System)
	}
	if next.Tools != nil {
		fmt.Fprintf(w, "  \"tools\": %s,\n", next.Tools)
	}
	_, err := w.Write(b.Bytes()[len("{\n"):])
	return err
}

// printContext prints what people read: texts as they are, every other block as
// it is sent.
func printContext(e *env, p window.Prompt, next nextrequest.Request) error {
	st := e.style()
	fmt.Fprintln(e.out, st.Bold("system"))
	fmt.Fprintln(e.out, p.System)
	for _, raw := range next.Messages {
		var m struct {
			Role    string
			Content []json.RawMessage
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		fmt.Fprintln(e.out)
		fmt.Fprintln(e.out, st.Bold(m.Role))
		for _, block := range m.Content {
			var text struct{ Type, Text string }
			if err := json.Unmarshal(block, &text); err != nil {
				return err
			}
			if text.Type != "text" {
				text.Text = string(block)
			}
			fmt.Fprintln(e.out, text.Text)
		}
	}
	fmt.Fprintln(e.out)
	return nil
}

// turnTools are the tools that a turn would have. A turn would fail without
// them; here they are only missing.
func turnTools(ctx context.Context, a *app) []llm.ToolSpec {
	tools, err := newTools(a, nil)
	if err != nil {
		a.warn("this context has no tools: %s", transcript.Problem(err))
		return nil
	}
	defer tools.Close()
	servers := connect(ctx, a, tools)
	defer servers.close()
	for _, line := range servers.news(ctx) {
		a.warn("%s", line)
	}
	return tools.Specs()
}

// contextCost is what s has cost in dollars. A file was read whole; a session
// in the store only from where the context begins.
func contextCost(ctx context.Context, a *app, s *session.Session, file bool) (float64, error) {
	if !file {
		return spending.Of(ctx, a.stores.Store, a.conf, s.ID)
	}
	return spending.On(a.conf, s.Branch), nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// maxInput is how much of standard input is attached.
const maxInput = 8 << 20

func (a *app) askCmd() *cobra.Command {
	var asJSON, goOn bool
	var ref string
	var attach []string
	cmd := &cobra.Command{
		Use:   "ask TEXT",
		Short: "One turn: ask, stream the answer, exit",
		Long: `Says TEXT in a session, streams the answer and exits. What comes on standard
input is attached. With --json every event is a line: delta, recorded, tool,
notice, error, done. An answer that was cut because it reached the limit on its
length ("cut" in done) is kept, and exits 1.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if goOn {
				if len(args) > 0 || len(attach) > 0 {
					return usage("--continue goes on with what was said before: it takes no TEXT")
				}
				return a.ask(cmd.Context(), ref, llm.Message{}, asJSON)
			}
			in, err := a.message(strings.Join(args, " "), attach)
			if err != nil {
				return err
			}
			return a.ask(cmd.Context(), ref, in, asJSON)
		},
	}
	cmd.Flags().StringVarP(&ref, "session", "s", "", "the session: its key, id, title, or the beginning of one; a whole new key, such as main:cli:trip, begins one (default: the configured key)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print events, a line each")
	cmd.Flags().BoolVarP(&goOn, "continue", "c", false, "go on with a turn that failed or was interrupted")
	cmd.Flags().StringArrayVarP(&attach, "attach", "a", nil, "attach a file: a picture or text (may be given again)")
	return cmd
}

// message makes what the user says of text, attachments and standard input.
func (a *app) message(text string, attach []string) (llm.Message, error) {
	m := llm.Message{Role: llm.User}
	for _, path := range attach {
		b, err := a.attachment(path)
		if err != nil {
			return m, err
		}
		m.Blocks = append(m.Blocks, b)
	}
	var parts []string // the question first: what is attached is about it
	if strings.TrimSpace(text) != "" {
		parts = append(parts, text)
	}
	if !a.isTerminal(a.in) && a.in != nil {
		data, err := io.ReadAll(io.LimitReader(a.in, maxInput+1))
		if err != nil {
			return m, fmt.Errorf("standard input: %w", err)
		}
		if len(data) > maxInput {
			return m, fmt.Errorf("standard input is longer than %d MiB: give the path of a file instead", maxInput>>20)
		}
		b, err := a.content("standard input", data)
		if err != nil {
			return m, err
		}
		if t, ok := b.(llm.Text); !ok {
			m.Blocks = append(m.Blocks, b)
		} else if t := strings.TrimSpace(t.Text); t != "" {
			parts = append(parts, t)
		}
	}
	if len(parts) > 0 {
		m.Blocks = append(m.Blocks, llm.Text{Text: strings.Join(parts, "\n\n")})
	}
	if len(m.Blocks) == 0 {
		return m, usage("ask needs TEXT, or something on standard input: see goclaw ask --help")
	}
	return m, nil
}

// attachment reads a file as a block: a picture, or text with its name.
func (a *app) attachment(path string) (llm.Block, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxInput {
		return nil, fmt.Errorf("%s cannot be attached: it is no file of at most %d MiB", path, maxInput>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s cannot be attached: it is empty", path)
	}
	b, err := a.content(path, data)
	if t, ok := b.(llm.Text); ok {
		b = llm.Text{Text: fmt.Sprintf("<file path=%q>\n%s\n</file>", path, t.Text)}
	}
	return b, err
}

// content returns what data holds: a picture or text. What is neither is
// refused: no model makes sense of it.
func (a *app) content(name string, data []byte) (llm.Block, error) {
	im, err := llm.NewImage(data)
	if err == nil {
		return im, nil
	}
	if !errors.Is(err, llm.ErrNoImage) {
		return nil, fmt.Errorf("%s cannot be attached: %w", name, err)
	}
	text, ok := llm.DecodeText(data)
	if !ok {
		kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
		return nil, fmt.Errorf("%s cannot be attached: it is neither text nor a PNG, JPEG, GIF or WebP picture (%s, %d bytes); convert it to text first", name, kind, len(data))
	}
	if n := strings.Count(text, "\uFFFD"); n > 0 && !utf8.Valid(data) {
		fmt.Fprintln(a.err, a.style().Dim(fmt.Sprintf("%s is not all UTF-8: what is not is sent as \uFFFD (%s)", name, transcript.Count(n, "place"))))
	}
	return llm.Text{Text: text}, nil
}

// target resolves the session that is asked: an existing one, or the draft of
// one that begins with what is said. The note is what to say about the choice.
func (a *app) target(ctx context.Context, r *runner.Runner, ref string) (s *session.Session, note string, err error) {
	if ref == "" || ref == a.conf.Session.DefaultKey { // a key, whatever its form
		s, err = r.Peek(ctx, session.Key(a.conf.Session.DefaultKey))
		return s, "", err
	}
	in, err := session.Address(ctx, a.st, ref)
	if err != nil {
		return nil, "", a.noSession(err)
	}
	switch {
	case in.ID == "":
		note = "a new session, " + string(in.Key)
	case string(in.ID) != ref && string(in.Key) != ref:
		in.Title = session.Titled(ctx, a.st, in)
		note = "continuing " + transcript.Called(in)
	}
	if string(in.Key) == ref && string(in.ID) != ref {
		s, err = r.Peek(ctx, in.Key)
	} else {
		s, err = session.Open(ctx, a.st, in.ID)
	}
	return s, note, err
}

// addressed says which session was meant.
type addressed struct {
	agent.Event
	note string
	key  session.Key
}

func (a *app) ask(ctx context.Context, ref string, in llm.Message, asJSON bool) error {
	r, done, err := a.runner(ctx, a.approver(asJSON))
	if err != nil {
		return err
	}
	defer done()
	s, note, err := a.target(ctx, r, ref)
	if err != nil {
		return err
	}
	v, err := a.decideAloud(ctx, s)
	if err != nil {
		return err
	}
	if err := a.torn(ctx, s, len(in.Blocks) == 0); err != nil {
		return err
	}
	if mirror, n, err := session.NewSince(ctx, a.st, s.Info); err == nil && n > 0 && !asJSON {
		fmt.Fprintln(a.err, a.style().Dim(transcript.Printable(transcript.GoneOn(mirror, s.Info, n, "goclaw sessions merge "+string(s.Key)))))
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	show := a.plainEvents()
	if asJSON {
		show = a.jsonEvents()
	} else if v.note != "" {
		fmt.Fprintln(a.err, a.style().Dim(v.note))
	}
	cut := false
	turn := r.RunID(ctx, s.ID, in)
	if s.ID == "" {
		turn = r.Run(ctx, s.Key, in)
	}
	var unseen error // nobody reads any more; the turn is finished all the same
	if note != "" {
		unseen = show(addressed{note: note, key: s.Key}, nil)
	}
	for ev, err := range turn {
		if err != nil {
			if errors.Is(err, context.Canceled) {
				err = errors.New("stopped: what was said so far is kept")
			}
			show(nil, err)
			if asJSON {
				return errQuiet
			}
			return err
		}
		if d, ok := ev.(agent.Done); ok {
			cut = d.Stop == llm.StopLength
		}
		if unseen == nil {
			unseen = show(ev, nil)
		}
	}
	if unseen != nil {
		return fmt.Errorf("the answer is kept, but could not be shown: %w", unseen)
	}
	if !asJSON {
		if err := a.expire(context.WithoutCancel(ctx), a.st); err != nil {
			return err
		}
	}
	switch {
	case cut && asJSON:
		return errQuiet
	case cut:
		return errors.New(`the answer was cut: it reached the limit on its length; goclaw ask "go on" asks for the rest`)
	}
	return nil
}

// torn says that the last turn of s did not come to its end. Going on needs
// one that did not, and that nobody else is in the middle of.
func (a *app) torn(ctx context.Context, s *session.Session, goOn bool) error {
	t, ok := runner.InterruptedIn(s)
	if ok {
		release, err := a.st.Lock(ctx, s.ID, whoAmI())
		var held *session.HeldError
		switch {
		case errors.As(err, &held) && goOn:
			return fmt.Errorf("another goclaw (pid %d) is in the middle of a turn in %s: there is nothing to go on with", held.PID, s.Key)
		case errors.As(err, &held):
			fmt.Fprintln(a.err, a.style().Dim(fmt.Sprintf("another goclaw (pid %d) is in the middle of a turn", held.PID)))
			return nil
		case err == nil:
			release()
		}
	}
	switch {
	case goOn && !runner.Resumable(s):
		return fmt.Errorf("nothing in %s was interrupted: there is nothing to go on with", s.Key)
	case !goOn && ok:
		fmt.Fprintln(a.err, a.style().Dim(fmt.Sprintf("the last turn did not end (%q): ask --continue goes on with it", transcript.OneLine(transcript.Printable(t.Prompt), 60))))
	}
	return nil
}

// interruptible returns a context that the first Ctrl-C cancels; the second
// ends the program at once.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signal.Ignore(syscall.SIGPIPE) // a reader that leaves does not end the turn
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt)
	var once sync.Once
	stop := func() { once.Do(func() { signal.Stop(sig); close(sig); cancel() }) }
	go func() {
		if _, ok := <-sig; !ok {
			return
		}
		a.interrupted.Store(true)
		cancel()
		if _, ok := <-sig; ok {
			os.Exit(130)
		}
	}()
	return ctx, stop
}

// plainEvents shows an answer as text; what is not the answer goes to
// standard error.
func (a *app) plainEvents() func(agent.Event, error) error {
	st := a.style()
	open := false // in the middle of a line
	return func(ev agent.Event, err error) error {
		if open && (err != nil || !isText(ev)) {
			open = false
			fmt.Fprintln(a.out)
		}
		switch ev := ev.(type) {
		case agent.Said:
			if ev.Text == "" {
				return nil
			}
			open = !strings.HasSuffix(ev.Text, "\n")
			_, err := io.WriteString(a.out, transcript.Printable(ev.Text))
			return err
		case agent.Calling:
			fmt.Fprintln(a.err, st.Yellow("→ "+transcript.CallLine(ev.Call)))
		case agent.Called:
			if ev.Result.IsError {
				fmt.Fprintln(a.err, st.Red("← "+transcript.OneLine(transcript.Printable(ev.Result.Text()), 160)))
			}
		case addressed:
			fmt.Fprintln(a.err, st.Dim(transcript.Printable(ev.note)))
		case agent.Squeezed:
			fmt.Fprintln(a.err, st.Dim(squeezed(ev)))
		case agent.Compacting:
			fmt.Fprintln(a.err, st.Dim("the window is full: folding the past"))
		case agent.NotCompacted:
			fmt.Fprintln(a.err, st.Dim(ev.Err.Error()))
		case agent.Learnt:
			fmt.Fprintln(a.err, st.Dim(learnt(ev)))
		case agent.Silent:
			fmt.Fprintln(a.err, st.Dim(transcript.Silent))
		case runner.Switched:
			fmt.Fprintln(a.err, st.Dim(transcript.Model(ev.To.Name(), ev.From.Name())))
		case runner.Continued:
			fmt.Fprintln(a.err, st.Dim(continued(ev)))
		case runner.Waiting:
			fmt.Fprintln(a.err, st.Dim("waiting: "+ev.By.Error()))
		}
		return nil
	}
}

func squeezed(ev agent.Squeezed) string {
	if ev.Answer > 0 {
		return fmt.Sprintf("the answer asked for is too long for the model: asking again for at most %s tokens", window.Short(ev.Answer))
	}
	if ev.To == window.Compact {
		return "too long for the model: folding the past"
	}
	return "too long for the model: asking again with shorter tool results"
}

func learnt(ev agent.Learnt) string {
	if ev.Answer > 0 {
		return fmt.Sprintf("%s/%s answers with at most %s tokens: remembered", ev.Provider, ev.Model, window.Short(ev.Answer))
	}
	return fmt.Sprintf("%s/%s takes only %s tokens: remembered", ev.Provider, ev.Model, window.Short(ev.Window))
}

func continued(ev runner.Continued) string {
	return fmt.Sprintf("%s is %s's and stays as it is: this goes on in %s", ev.From.Key, ev.From.Origin.Program, ev.To.Key)
}

func isText(ev agent.Event) bool {
	s, ok := ev.(agent.Said)
	return ok && s.Text != "" || ok && s.Thinking != ""
}

// jsonEvents prints every event as one line of JSON. Other programs rely on
// their form.
func (a *app) jsonEvents() func(agent.Event, error) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return func(ev agent.Event, err error) error {
		if err != nil {
			return enc.Encode(map[string]any{"type": "error", "message": oneLine(err)})
		}
		switch ev := ev.(type) {
		case agent.Said:
			switch {
			case ev.Text != "":
				return enc.Encode(map[string]any{"type": "delta", "text": ev.Text})
			case ev.Thinking != "":
				return enc.Encode(map[string]any{"type": "thinking", "text": ev.Thinking})
			}
		case agent.Recorded:
			line, err := recordJSON(ev.Record)
			if err != nil {
				return err
			}
			if err := enc.Encode(map[string]any{"type": "recorded", "record": line}); err != nil {
				return err
			}
			if n, ok := ev.Record.Body.(session.Notice); ok {
				return enc.Encode(map[string]any{"type": "notice", "text": n.Text, "percent": n.Percent, "injectAs": n.As})
			}
		case agent.Calling:
			return enc.Encode(map[string]any{"type": "tool", "state": "running", "id": ev.Call.ID, "name": ev.Call.Name, "input": ev.Call.Args})
		case agent.Called:
			return enc.Encode(map[string]any{"type": "tool", "state": "done", "id": ev.Call.ID, "name": ev.Call.Name, "isError": ev.Result.IsError, "output": ev.Result.Text()})
		case addressed:
			return enc.Encode(map[string]any{"type": "notice", "text": ev.note, "key": ev.key})
		case agent.Squeezed:
			return enc.Encode(map[string]any{"type": "notice", "text": squeezed(ev), "squeeze": ev.To.String()})
		case agent.Compacting:
			return enc.Encode(map[string]any{"type": "notice", "text": "the window is full: folding the past", "folded": ev.Cut.Compacted, "kept": ev.Cut.Kept, "tokensBefore": ev.Cut.Before})
		case agent.NotCompacted:
			return enc.Encode(map[string]any{"type": "notice", "text": ev.Err.Error(), "tokensBefore": ev.Err.Before, "tokensAfter": ev.Err.After})
		case agent.Learnt:
			return enc.Encode(map[string]any{"type": "notice", "text": learnt(ev), "model": ev.Provider + "/" + ev.Model, "window": ev.Window, "answer": ev.Answer})
		case agent.Silent:
			return enc.Encode(map[string]any{"type": "notice", "text": transcript.Silent, "noReply": true})
		case runner.Switched:
			to, from := ev.To.Name(), ev.From.Name()
			return enc.Encode(map[string]any{"type": "notice", "text": transcript.Model(to, from), "model": to, "before": from})
		case runner.Continued:
			return enc.Encode(map[string]any{"type": "notice", "text": continued(ev), "session": ev.To.ID, "key": ev.To.Key})
		case runner.Waiting:
			return enc.Encode(map[string]any{"type": "notice", "text": ev.By.Error()})
		case agent.Done:
			u := ev.Usage
			return enc.Encode(map[string]any{"type": "done", "stopReason": ev.Stop, "cut": ev.Stop == llm.StopLength, "usage": map[string]any{"input": u.Input, "output": u.Output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite, "cost": u.Cost.Total}})
		}
		return nil
	}
}

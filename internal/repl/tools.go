package repl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/tool"
)

// Modes is what is done without asking; a tool.Set has it.
type Modes interface {
	Mode() tool.Mode
	SetMode(m tool.Mode)
	Confinement() tool.Confinement
}

// toolCommands are the commands about what tools do and did.
type toolCommands struct {
	o    *Options
	cur  *current
	view *view
}

var modeNames = []string{"ask", "edits", "plan", "all"}

// unasked says what is done without asking now, and what commands cannot do.
func unasked(m Modes) string {
	if limits := m.Confinement().String(); limits != "" {
		return doesUnasked(m.Mode()) + "; " + limits
	}
	return doesUnasked(m.Mode())
}

func doesUnasked(m tool.Mode) string {
	switch m {
	case tool.ModeEdits:
		return "changes files unasked, and asks before it runs commands"
	case tool.ModePlan:
		return "only reads, and neither changes files nor runs commands"
	case tool.ModeAll:
		return "changes files and runs commands unasked"
	}
	return "asks before it runs commands or changes files"
}

// mode shows or changes what is done without asking.
func (t *toolCommands) mode(_ context.Context, arg string) error {
	if t.o.Modes == nil {
		return errors.New("there are no tools here")
	}
	if arg != "" {
		m, err := tool.ParseMode(arg)
		if err != nil {
			return err
		}
		t.o.Modes.SetMode(m)
	}
	t.view.print("%v: %s", t.o.Modes.Mode(), unasked(t.o.Modes))
	return nil
}

// show shows the whole of a record: what a tool returned, or a message.
func (t *toolCommands) show(ctx context.Context, arg string) error {
	n, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("/show takes the number of a record, not %q", arg)
	}
	s, err := t.cur.whole(ctx)
	if err != nil {
		return err
	}
	for _, rec := range s.Branch {
		if rec.Seq != session.Seq(n) {
			continue
		}
		m, ok := rec.Body.(session.Message)
		if !ok {
			break
		}
		for _, r := range m.Results() {
			t.view.print("%s", transcript.Printable(strings.TrimRight(r.Text(), "\n")))
		}
		if text := strings.TrimSpace(m.Text()); text != "" {
			t.view.print("%s", transcript.Printable(text))
		}
		return nil
	}
	return fmt.Errorf("record %d is not a message of this session: /history shows the numbers", n)
}

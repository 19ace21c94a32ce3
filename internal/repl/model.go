package repl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/mirrors"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// modelCommands show and change the model, and how much it thinks.
type modelCommands struct {
	o    *Options
	chat *Chat
	cur  *current
	view *view

	listed []string // the models that were listed last
}

// model lists the models, or changes to one: by its name, a part of it that only
// one has, or its number in the list.
func (c *modelCommands) model(ctx context.Context, arg string) error {
	if arg == "" || arg == "all" {
		ch := c.view.chooser()
		if ch == nil || c.o.Choices == nil {
			return c.list(ctx, arg == "all")
		}
		chosen, err := c.choose(ctx, ch, arg == "all")
		if err != nil || chosen == "" {
			return err
		}
		arg = chosen
	}
	spec, err := c.named(ctx, arg)
	if err != nil {
		return err
	}
	m, err := c.o.Choose(ctx, spec)
	if err != nil {
		return fmt.Errorf("%w (still using %s)", err, c.o.Model().Name)
	}
	if err := c.record(ctx, session.ModelChange{Provider: m.Provider, Model: m.Model, Chosen: true}); err != nil {
		return err
	}
	c.chat.asked, c.chat.told = m.Name, c.cur.ID // by the note below
	c.chat.offer()                               // it may think at other levels
	c.view.note("now using %s", m.Name)
	return nil
}

func (c *modelCommands) list(ctx context.Context, all bool) error {
	m := c.o.Model()
	about := transcript.Name(m.Name)
	if m.Budget.Window > 0 {
		about += fmt.Sprintf(", a window of %s tokens", window.Short(m.Budget.Window))
	}
	if c.o.Think != nil {
		s, err := c.cur.open(ctx)
		if err != nil {
			return err
		}
		if t := c.o.Think(s); t.Level != "" && t.Note == "" {
			about += ", thinking " + t.Level
		}
	}
	c.view.print("%s", about)
	if c.o.Choices == nil {
		return nil
	}
	ch := c.o.Choices(ctx, all)
	c.listed = ch.Names
	c.view.table(ch.Rows)
	for _, line := range ch.More {
		c.view.print("%s", line)
	}
	return nil
}

// named returns the name of the model that arg means.
func (c *modelCommands) named(ctx context.Context, arg string) (string, error) {
	if n, err := strconv.Atoi(arg); err == nil {
		if c.listed == nil && c.o.Choices != nil {
			c.listed = c.o.Choices(ctx, false).Names
		}
		if n < 1 || n > len(c.listed) {
			return "", fmt.Errorf("the list has no model %d: /model shows it", n)
		}
		return c.listed[n-1], nil
	}
	if strings.Contains(arg, "/") || c.o.Choices == nil {
		return arg, nil
	}
	var fits []string
	for _, name := range c.o.Choices(ctx, true).Names {
		if name == arg || strings.HasSuffix(name, "/"+arg) {
			return name, nil
		}
		if strings.Contains(strings.ToLower(name), strings.ToLower(arg)) {
			fits = append(fits, name)
		}
	}
	switch len(fits) {
	case 0:
		return arg, nil
	case 1:
		return fits[0], nil
	}
	const most = 5
	if len(fits) > most {
		fits = append(fits[:most], "...")
	}
	return "", fmt.Errorf("%q fits several models: %s", arg, strings.Join(fits, ", "))
}

// record appends body to the session; to a continuation of it if it is imported,
// because that is never written to.
func (c *modelCommands) record(ctx context.Context, body session.Body) error {
	if err := c.chat.own(ctx); err != nil {
		return err
	}
	return c.cur.record(ctx, body)
}

// own goes on in a continuation of the session if it is imported.
func (c *Chat) own(ctx context.Context) error {
	if !c.cur.Mirror() {
		return nil
	}
	own, err := mirrors.Continue(ctx, c.o.Store, c.cur.Info, c.o.Clock)
	if err == nil {
		c.show(runner.Continued{From: c.cur.Info, To: own})
	}
	return err
}

// standard is what /think takes for the level of the configuration.
const standard = "default"

// think shows how much the model thinks, or changes it.
func (c *modelCommands) think(ctx context.Context, level string) error {
	if c.o.Think == nil {
		return fmt.Errorf("the level of thinking cannot be set here")
	}
	level = strings.ToLower(level)
	if level == "" {
		ch := c.view.chooser()
		if ch == nil {
			return c.showLevel(ctx, "")
		}
		var err error
		if level, err = c.chooseLevel(ctx, ch); err != nil || level == "" {
			return err
		}
	}
	if level == standard {
		level = ""
	}
	note, err := c.o.SetThink(level)
	if err != nil {
		return err
	}
	if err := c.record(ctx, session.ThinkingChange{Level: level}); err != nil {
		return err
	}
	return c.showLevel(ctx, note)
}

// showLevel says how much the model thinks, and note about that.
func (c *modelCommands) showLevel(ctx context.Context, note string) error {
	s, err := c.cur.open(ctx)
	if err != nil {
		return err
	}
	t := c.o.Think(s)
	t.Note = cmp.Or(note, t.Note)
	says := "as much as the model decides"
	if t.Level != "" {
		says = fmt.Sprintf("%s (%s)", t.Level, t.From)
	}
	name := c.o.Model().Name
	switch {
	case t.Note != "":
		says += "; " + t.Note
	case len(t.Offers) > 0:
		says += fmt.Sprintf("; %s offers %s", name, strings.Join(t.Offers, ", "))
		if t.Level != "" && !slices.Contains(t.Offers, t.Level) {
			says += ", and takes the nearest"
		}
	}
	c.view.print("thinking: %s", says)
	return nil
}

// levels are what /think takes.
func (c *modelCommands) levels() []string {
	if c.o.Think != nil {
		if t := c.o.Think(&session.Session{}); len(t.Offers) > 0 {
			return append(slices.Clone(t.Offers), standard)
		}
	}
	return append(slices.Clone(llm.Levels), standard)
}

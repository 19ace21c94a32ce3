package repl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/mirrors"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
)

// open opens the session that the user named, or the one used last.
func (c *Chat) open(ctx context.Context) error {
	s, err := c.start(ctx)
	if err != nil {
		return err
	}
	if err := c.decide(ctx, s); err != nil {
		return err
	}
	var lines []string
	if c.o.Guide != nil {
		lines = c.o.Guide(ctx)
	}
	if n := c.o.Model().Note; n != "" && len(lines) == 0 {
		lines = []string{n}
	}
	for _, line := range lines {
		c.view.note("%s", line)
	}
	if c.o.Interactive && c.o.Modes != nil {
		c.view.note("%s in %s; it %s (/mode)", c.o.Model().Name, c.o.Folder, unasked(c.o.Modes))
	}
	c.welcome(ctx, s)
	return nil
}

// start returns the session to begin with.
func (c *Chat) start(ctx context.Context) (*session.Session, error) {
	if ch := c.view.chooser(); ch != nil && c.o.Pick != nil {
		return c.o.pick(ctx, ch)
	}
	if c.o.Session != "" {
		if c.o.Session == string(c.o.DefaultKey) { // a key, whatever its form
			return c.o.Runner.Peek(ctx, c.o.DefaultKey)
		}
		in, err := naming.Address(ctx, c.o.Store, c.o.Session, c.o.Lists.Last(), c.o.Begin)
		if err != nil {
			return nil, err
		}
		if in.ID == "" && !c.o.Interactive { // a person is greeted anyway
			c.view.note("a new session, %s", in.Key)
		}
		if string(in.Key) == c.o.Session && string(in.ID) != c.o.Session {
			return c.o.Runner.Peek(ctx, in.Key)
		}
		return session.Open(ctx, c.o.Store, in.ID)
	}
	last, err := c.last(ctx)
	if err != nil {
		return nil, err
	}
	if last.ID == "" {
		left, err := c.inherited(ctx)
		if err != nil {
			return nil, err
		}
		if left.ID == "" {
			return c.o.Runner.Peek(ctx, c.o.DefaultKey)
		}
		return session.Open(ctx, c.o.Store, left.ID)
	}
	cur, err := session.Current(ctx, c.o.Store, last.Key)
	if err != nil {
		return nil, err
	}
	if cur.ID != last.ID { // an older one of its key, opened by its id
		return session.Open(ctx, c.o.Store, last.ID)
	}
	s, err := c.o.Runner.Peek(ctx, last.Key)
	if err == nil && s.ID != last.ID && !last.Mirror() {
		c.view.note("%s was idle for too long: this is a new session, the old one is %s", last.Key, last.ID)
	}
	return s, err
}

// last returns the session with the default key's agent and channel in which
// something was said last; its ID is empty if there is none.
func (c *Chat) last(ctx context.Context) (session.Info, error) {
	p := c.o.DefaultKey.Parts()
	if p.Agent == "" || p.Channel == "" {
		return session.Info{}, nil
	}
	var last session.Info
	var at time.Time
	for in, err := range c.o.Store.List(ctx, session.Query{Agent: p.Agent, Channel: p.Channel}) {
		if err != nil || in.Updated.Before(at) { // the list has the latest first
			return last, err
		}
		said, err := lastSaid(ctx, c.o.Store, in)
		if err != nil {
			return last, err
		}
		if last.ID == "" || said.After(at) || said.Equal(at) && in.Created.Before(last.Created) { // not its fork
			last, at = in, said
		}
	}
	return last, nil
}

// lastSaid returns when something was last said in a session. A new title or a
// checkpoint does not count, unless nothing was said at all.
func lastSaid(ctx context.Context, st session.Store, in session.Info) (at time.Time, err error) {
	for n := session.Seq(8); at.IsZero(); n *= 8 {
		from := max(0, in.Last-n)
		for r, err := range st.Read(ctx, in.ID, from) {
			var damage *session.Damage
			if err != nil && !errors.As(err, &damage) {
				return at, err
			}
			if _, ok := r.Body.(session.Message); ok && err == nil {
				at = r.Time
			}
		}
		if from == 0 && at.IsZero() {
			return in.Updated, nil
		}
	}
	return at, nil
}

// inherited returns the session to start with if the user has said nothing here
// yet: the main session of another program, if the user wants it, or the session
// that already continues it. Its ID is empty if there is none.
func (c *Chat) inherited(ctx context.Context) (session.Info, error) {
	if _, err := session.Current(ctx, c.o.Store, c.o.DefaultKey); !errors.Is(err, session.ErrNotFound) {
		return session.Info{}, err
	}
	var main session.Info
	agent := c.o.DefaultKey.Parts().Agent
	for in, err := range c.o.Store.List(ctx, session.Query{Channel: "main"}) {
		if err != nil {
			return session.Info{}, err
		}
		p := in.Key.Parts()
		switch {
		case in.Turns == 0 || !in.Mirror() || p.Peer != "":
		case main.ID == "" || p.Agent == agent && main.Key.Parts().Agent != agent: // of several, the one used last
			main = in
		}
	}
	if main.ID == "" {
		return session.Info{}, nil
	}
	own, err := mirrors.ContinuationOf(ctx, c.o.Store, main)
	if err == nil || !errors.Is(err, session.ErrNotFound) {
		return own, err
	}
	for in, err := range c.o.Store.List(ctx, session.Query{}) {
		if err != nil || in.Turns > 0 && !in.Mirror() { // the user has begun one
			return session.Info{}, err
		}
	}
	what := fmt.Sprintf("%s of %s (%s)", main.Key, main.Origin.Program, transcript.Count(main.Turns, "turn"))
	if !c.o.Interactive {
		c.view.note("goclaw --session %s continues %s", main.Key, what)
		return session.Info{}, nil
	}
	if !c.yes(ctx, "Continue "+what+"?") {
		return session.Info{}, nil
	}
	return main, nil
}

// enter switches to s.
func (c *Chat) enter(ctx context.Context, s *session.Session) {
	if err := c.decide(ctx, s); err != nil {
		c.view.problem(err)
	}
	c.welcome(ctx, s)
}

// welcome makes s the current session and says what is in it.
func (c *Chat) welcome(ctx context.Context, s *session.Session) {
	c.cur.Info = s.Info
	c.status.open(s)
	if s.Mirror() {
		s.Title = naming.Title(ctx, c.o.Store, s.Info)
	}
	switch {
	case s.Turns > 0:
		c.view.note("Restored: %s of %s", transcript.Count(s.Turns, "previous turn"), transcript.Called(s.Info))
		if c.o.Interactive {
			c.view.preview(s)
		}
	case c.o.Interactive:
		c.view.note("New session %s with %s. /help lists the commands.", transcript.Called(s.Info), c.o.Model().Name)
	}
	if s.Turns > 0 && c.o.Interactive && s.CWD != "" && c.o.CWD != "" && filepath.Clean(s.CWD) != filepath.Clean(c.o.CWD) {
		c.view.note("This session began in %s; its tools now work in %s. /new starts a session here.", transcript.Name(transcript.Tilde(s.CWD)), c.o.Folder)
	}
	for _, d := range s.Damage {
		c.view.note("damaged: %v", d)
	}
	if mirror, n, err := mirrors.NewSince(ctx, c.o.Store, s.Info); err == nil && n > 0 {
		c.view.note("%s", transcript.GoneOn(mirror, s.Info, n, "/merge"))
	}
	c.interrupted(ctx, s)
}

// decide finds out which model s uses, and says so if that is not the model that
// was used before, here or in s.
func (c *Chat) decide(ctx context.Context, s *session.Session) error {
	m, problem, err := c.o.Decide(ctx, s)
	if err != nil {
		return err
	}
	if problem != "" {
		c.view.note("%s", problem)
	}
	last, used := s.LastModel()
	switch {
	case used && last.Name() != m.Name:
		c.view.note("%s", transcript.Model(m.Name, last.Name()))
		c.told = s.ID
	case c.asked != "" && c.asked != m.Name:
		c.view.note("model: %s", m.Name)
	}
	c.asked = m.Name
	return nil
}

// interrupted says what s was doing when it was interrupted, and offers to
// continue.
func (c *Chat) interrupted(ctx context.Context, s *session.Session) {
	t, ok := runner.InterruptedIn(s)
	if !ok {
		return
	}
	release, err := c.o.Store.Lock(ctx, string(s.ID), "")
	var held *session.HeldError
	if errors.As(err, &held) {
		c.view.note("%s (pid %d) is working in this session: your messages wait until it is done", held.Who, held.PID)
		return
	}
	if err == nil {
		release()
	}
	said := cell(t.Prompt, 80)
	switch {
	case len(t.Calls) > 0:
		var names []string
		for _, call := range t.Calls {
			names = append(names, cell(call.Name, 40))
		}
		c.view.note("The last turn (%q) was interrupted while it ran %s. This may have had effects, and is not repeated automatically.", said, strings.Join(names, ", "))
	case t.Partly:
		c.view.note("The last turn was interrupted: only the beginning of the answer to %q is there.", said)
	default:
		c.view.note("The last turn was interrupted: %q has no answer yet.", said)
	}
	if !c.o.Interactive {
		c.view.note("/continue resumes it.")
		return
	}
	if c.yes(ctx, "Continue it?") {
		c.turn(ctx, llm.Message{})
		return
	}
	c.view.note("/continue resumes it later.")
}

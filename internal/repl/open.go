package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// open opens the session that the user named, or the one used last, and says
// what there is.
func (r *REPL) open(ctx context.Context) error {
	s, err := r.start(ctx)
	if err != nil {
		return err
	}
	if err := r.decide(ctx, s); err != nil {
		return err
	}
	if n := r.Model().Note; n != "" {
		r.note("%s", n)
	}
	r.welcome(ctx, s)
	return nil
}

// start returns the session to begin with.
func (r *REPL) start(ctx context.Context) (*session.Session, error) {
	if r.Session != "" {
		if r.Session == string(r.DefaultKey) { // a key, whatever its form
			return r.Runner.Peek(ctx, r.DefaultKey)
		}
		in, err := session.Address(ctx, r.Store, r.Session)
		if err != nil {
			return nil, err
		}
		if in.ID == "" && !r.Interactive { // else it is said anyway
			r.note("a new session, %s", in.Key)
		}
		if string(in.Key) == r.Session && string(in.ID) != r.Session {
			return r.Runner.Peek(ctx, in.Key)
		}
		return session.Open(ctx, r.Store, in.ID)
	}
	last, err := r.last(ctx)
	if err != nil {
		return nil, err
	}
	if last.ID == "" {
		left, err := r.inherited(ctx)
		if err != nil {
			return nil, err
		}
		if left.ID == "" {
			return r.Runner.Peek(ctx, r.DefaultKey)
		}
		return session.Open(ctx, r.Store, left.ID)
	}
	cur, err := session.Current(ctx, r.Store, last.Key)
	if err != nil {
		return nil, err
	}
	if cur.ID != last.ID { // an older one of its key, opened by its id
		return session.Open(ctx, r.Store, last.ID)
	}
	s, err := r.Runner.Peek(ctx, last.Key)
	if err == nil && s.ID != last.ID && !last.Mirror() {
		r.note("%s was idle for too long: a new session begins, the old one is %s", last.Key, last.ID)
	}
	return s, err
}

// last returns the session that was used last of those with the default
// key's agent and channel, or none.
func (r *REPL) last(ctx context.Context) (session.Info, error) {
	p := r.DefaultKey.Parts()
	if p.Agent == "" || p.Channel == "" {
		return session.Info{}, nil
	}
	for in, err := range r.Store.List(ctx, session.Query{Agent: p.Agent, Channel: p.Channel, Limit: 1}) {
		return in, err
	}
	return session.Info{}, nil
}

// inherited returns the session to go on with where nothing was said here yet:
// the main one that another program left, if the user wants it, or the one that
// continues it already.
func (r *REPL) inherited(ctx context.Context) (session.Info, error) {
	if _, err := session.Current(ctx, r.Store, r.DefaultKey); !errors.Is(err, session.ErrNotFound) {
		return session.Info{}, err
	}
	var main session.Info
	begun := false
	agent := r.DefaultKey.Parts().Agent
	for in, err := range r.Store.List(ctx, session.Query{}) {
		if err != nil {
			return session.Info{}, err
		}
		p := in.Key.Parts()
		switch {
		case in.Turns == 0:
		case !in.Mirror():
			begun = true
		case p.Channel != "main" || p.Peer != "":
		case main.ID == "" || p.Agent == agent && main.Key.Parts().Agent != agent: // of several, the one used last
			main = in
		}
	}
	if main.ID == "" {
		return session.Info{}, nil
	}
	own, err := session.ContinuationOf(ctx, r.Store, main)
	if err == nil || !errors.Is(err, session.ErrNotFound) {
		return own, err
	}
	what := fmt.Sprintf("%s of %s (%s)", main.Key, main.Origin.Program, transcript.Count(main.Turns, "turn"))
	switch {
	case begun:
		return session.Info{}, nil
	case !r.Interactive:
		r.note("goclaw --session %s goes on with %s", main.Key, what)
		return session.Info{}, nil
	}
	if !r.yes(ctx, "Go on with "+what+"? [Y/n] ") {
		return session.Info{}, nil
	}
	return main, nil
}

// enter makes s the session that is talked in.
func (r *REPL) enter(ctx context.Context, s *session.Session) {
	if err := r.decide(ctx, s); err != nil {
		r.problem(err)
	}
	r.welcome(ctx, s)
}

// welcome says what there is in s.
func (r *REPL) welcome(ctx context.Context, s *session.Session) {
	r.cur = s.Info
	if s.Title == "" && s.Mirror() {
		s.Title = s.Topic()
	}
	switch {
	case s.Turns > 0:
		r.note("Restored: %s of %s", transcript.Count(s.Turns, "previous turn"), transcript.Called(s.Info))
		if r.Interactive {
			r.where(s)
		}
	case r.Interactive:
		r.note("A new session, %s, with %s. /help lists the commands.", transcript.Called(s.Info), r.Model().Name)
	}
	for _, d := range s.Damage {
		r.note("damaged: %v", d)
	}
	if mirror, n, err := session.NewSince(ctx, r.Store, s.Info); err == nil && n > 0 {
		r.note("%s", transcript.GoneOn(mirror, s.Info, n, "/merge"))
	}
	r.torn(ctx, s)
}

// where shows the end of the conversation, a line each.
func (r *REPL) where(s *session.Session) {
	user, answer := "", ""
	for _, rec := range s.Branch {
		m, ok := rec.Body.(session.Message)
		if !ok || strings.TrimSpace(m.Text()) == "" || m.Excluded || window.Silent(m.Message) {
			continue
		}
		if session.IsTurn(m) {
			user, answer = m.Text(), ""
		} else if m.Role == llm.Assistant {
			answer = m.Text()
		}
	}
	n := max(r.width()-6, 20)
	if user != "" {
		r.note("  > %s", transcript.OneLine(transcript.Printable(user), n))
	}
	if answer != "" {
		r.note("    %s", transcript.OneLine(transcript.Printable(answer), n))
	}
}

// decide finds out which model s is asked with, and says so if that is another
// than before, here or in s.
func (r *REPL) decide(ctx context.Context, s *session.Session) error {
	m, problem, err := r.Decide(ctx, s)
	if err != nil {
		return err
	}
	if problem != "" {
		r.note("%s", problem)
	}
	last, used := s.LastModel()
	switch {
	case used && last.Name() != m.Name:
		r.note("%s", transcript.Model(m.Name, last.Name()))
		r.told = s.ID
	case r.asked != "" && r.asked != m.Name:
		r.note("model: %s", m.Name)
	}
	r.asked = m.Name
	return nil
}

// torn says what was going on when the log broke off, and offers to go on.
func (r *REPL) torn(ctx context.Context, s *session.Session) {
	t, ok := runner.InterruptedIn(s)
	if !ok {
		return
	}
	release, err := r.Store.Lock(ctx, s.ID, "")
	var held *session.HeldError
	if errors.As(err, &held) {
		r.note("this session is being answered by %s (pid %d): what you say waits for that", held.Who, held.PID)
		return
	}
	if err == nil {
		release()
	}
	said := transcript.OneLine(transcript.Printable(t.Prompt), 80)
	switch {
	case len(t.Calls) > 0:
		var names []string
		for _, c := range t.Calls {
			names = append(names, transcript.OneLine(transcript.Printable(c.Name), 40))
		}
		r.note("The last turn (%q) was interrupted while it ran %s. That may have had effects, and is not run again by itself.", said, strings.Join(names, ", "))
	default:
		r.note("The last turn was interrupted: %q has no answer yet.", said)
	}
	if !r.Interactive {
		r.note("/continue goes on with it.")
		return
	}
	if r.yes(ctx, "Go on with it? [Y/n] ") {
		r.turn(ctx, llm.Message{})
		return
	}
	r.note("/continue goes on with it later.")
}

// yes asks until the answer is yes, which is also what Enter means, or no. The
// end of the input and Ctrl-C mean no.
func (r *REPL) yes(ctx context.Context, prompt string) bool {
	for {
		answer, err := r.read(ctx, true, prompt)
		if err != nil {
			return false
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "", "y", "yes":
			return true
		case "n", "no":
			return false
		}
		r.note("Please answer y or n first.")
	}
}

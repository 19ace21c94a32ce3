package repl

import (
	"context"
	"errors"

	"goclaw/runner"
	"goclaw/session"
)

// current is the session that the chat is in.
type current struct {
	store  session.Store
	runner *runner.Runner
	clock  session.Clock
	cwd    string // for a new session

	session.Info // its ID is empty until the session has a record
}

// begin writes the session's first record if there is none yet.
func (c *current) begin(ctx context.Context) error {
	if c.ID != "" {
		return nil
	}
	s, err := c.runner.Begin(ctx, c.header())
	if err == nil {
		c.Info = s.Info
	}
	return err
}

func (c *current) header() session.Header { return session.Header{Key: c.Key, CWD: c.cwd} }

// open reads the session as far as its context needs it.
func (c *current) open(ctx context.Context) (*session.Session, error) {
	if c.ID == "" {
		return session.Draft(c.header(), c.clock), nil
	}
	return session.Open(ctx, c.store, c.ID)
}

// whole replays the session from its first record.
func (c *current) whole(ctx context.Context) (*session.Session, error) {
	if c.ID == "" {
		return c.open(ctx)
	}
	return session.Replay(c.ID, c.store.Read(ctx, c.ID, 0))
}

// record appends body to the session.
func (c *current) record(ctx context.Context, body session.Body) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	rec, err := c.runner.Record(ctx, c.ID, body)
	if err == nil {
		c.Info = rec.Info
	}
	return err
}

// restart goes back to before the first message.
func (c *current) restart(ctx context.Context) error {
	rec, err := c.runner.Restart(ctx, c.ID)
	if err == nil {
		c.Info = rec.Info
	}
	return err
}

// refresh looks at the store, and returns how many records another program has
// added.
func (c *current) refresh(ctx context.Context) (foreign int, err error) {
	if c.ID == "" {
		return 0, nil
	}
	in, err := session.Stat(ctx, c.store, c.ID)
	if err != nil {
		return 0, err
	}
	if !in.Trashed.IsZero() {
		return 0, errors.New("this session was deleted by another program: /new starts a new one, goclaw sessions restore " + string(in.ID) + " brings it back")
	}
	if in.Last > c.Last {
		foreign = c.foreign(ctx)
	}
	c.Info = in
	return foreign, nil
}

// foreign counts the new records that do not come from our own background work,
// and say something.
func (c *current) foreign(ctx context.Context) (n int) {
	for rec, err := range c.store.Read(ctx, c.ID, c.Last) {
		if err != nil {
			continue
		}
		switch rec.Body.(type) {
		case session.Checkpoint, session.Compaction, session.Custom, session.Title:
		default:
			n++
		}
	}
	return n
}

// Package stores opens the store that is configured, finds sessions in it, and keeps
// other agents' sessions in it up to date: the first import, what they wrote since,
// and what they write meanwhile. A folder or a database of another program is
// imported from and never written to.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"goclaw/internal/config"
	"goclaw/internal/naming"
	"goclaw/internal/progress"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/jsonl"
	"goclaw/store/postgres"
	"goclaw/store/sqlite"
)

// Stores opens the store that is configured and finds sessions in it.
type Stores struct {
	o        Options
	Store    Store // nil until Open has opened it
	ReadOnly bool  // not even projections are written
	Looked   bool  // what other programs wrote since the last import was imported
	NoImport bool  // other programs' sessions were imported already, or must not be
	// Agree asks whether n sessions of other programs may be imported. nil: nobody
	// is there to be asked, and the configuration decides.
	Agree func(ctx context.Context, n int) bool
}

// Options are what a store is opened, and imported into, with.
type Options struct {
	// Config loads the configuration, once.
	Config     func() (*config.Loaded, error)
	Getenv     func(string) string
	Note, Warn func(format string, args ...any) // tell the user
	Err        func() io.Writer                 // where imports are reported
	Placed     func() Placed
	Last       func() naming.Listed // the list that numbers stand for
}

// New returns what opens the store that o configures.
func New(o Options) *Stores { return &Stores{o: o} }

// conf is the configuration, once it was loaded.
func (ss *Stores) conf() *config.Loaded {
	c, _ := ss.o.Config()
	return c
}

// bar returns what shows progress.
func (ss *Stores) bar() *progress.Bar {
	return progress.New(ss.o.Err(), ss.o.Getenv("TERM") == "dumb")
}

// Store is what all stores can do beyond session.Store.
type Store interface {
	session.Store
	storekit.Checker
	Check(ctx context.Context, report func(session.ID, error)) error
	Rebuild(ctx context.Context) (changed int, err error)
}

var Layouts = map[string]jsonl.Layout{"openclaw": jsonl.OpenClaw, "claw0": jsonl.Claw0New, "claw0-old": jsonl.Claw0Old}

// Open opens the store once.
func (ss *Stores) Open() (Store, error) {
	if ss.Store != nil {
		return ss.Store, nil
	}
	c, err := ss.o.Config()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.Session.Path); err != nil && ss.o.Placed().Why != "" {
		ss.o.Warn("%s", ss.o.Placed().Why)
	}
	var st Store
	switch c.Session.Store {
	case "jsonl":
		st, err = jsonl.Open(c.Session.Path, jsonl.Options{Layout: Layouts[c.Session.Layout], ReadOnlyProjections: ss.ReadOnly})
	case "postgres":
		st, err = postgres.Open(context.Background(), c.Session.Path, postgres.Options{ReadOnly: ss.ReadOnly && ss.NoImport})
	default:
		if err = CheckOwner(c.Session.Path); err != nil {
			break
		}
		st, err = sqlite.Open(c.Session.Path, sqlite.OnCopy(func(path string) {
			ss.o.Warn("%s-wal is damaged, and records after the damage may be missing: goclaw doctor %s --repair-to NEW.db reads them from a copy", c.Session.Path, path)
		}), sqlite.OnDamage(func(error) {
			ss.o.Warn("%s is damaged, and what is shown may not be all: goclaw doctor %[1]s --repair-to NEW.db makes a new database from every record that is left", c.Session.Path)
		}))
	}
	var damaged *sqlite.DamagedError
	if errors.As(err, &damaged) {
		return nil, &ToldError{fmt.Errorf("%w: %s", err, Rescue(damaged))}
	}
	if err != nil {
		return nil, err
	}
	ss.Store = redactedStore{st, storekit.Redacted(st)}
	return ss.Store, nil
}

// redactedStore is a store as it is read by everything that shows a log, sends it or
// searches it: without what redactions took out.
type redactedStore struct {
	Store
	view session.Store
}

func (s redactedStore) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return s.view.Read(ctx, id, after)
}

func (s redactedStore) Purge(ctx context.Context, id session.ID) error { return s.view.Purge(ctx, id) }

// Wait implements session.Waiter.
func (s redactedStore) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	return s.view.(session.Waiter).Wait(ctx, id, after)
}

// Changes implements storekit.Feed.
func (s redactedStore) Changes(ctx context.Context, since string) (storekit.Changes, error) {
	return s.view.(storekit.Feed).Changes(ctx, since)
}

// Redacted returns st as a session.Store without what redactions took out. It
// finds them as fast as the store does.
func Redacted(st Store) session.Store {
	if s, ok := st.(redactedStore); ok {
		return s.view
	}
	return storekit.Redacted(st)
}

// Whole returns st with the bytes of its logs, for copies, imports and checks.
func Whole(st Store) Store {
	if s, ok := st.(redactedStore); ok {
		return s.Store
	}
	return st
}

// Imported opens the store and imports other programs' sessions if that was
// never done.
func (ss *Stores) Imported(ctx context.Context) (Store, error) {
	st, err := ss.Open()
	if err == nil {
		ss.firstImport(ctx, st)
	}
	return st, err
}

// Find resolves what the user typed for a session.
func (ss *Stores) Find(ctx context.Context, ref string) (Store, session.Info, error) {
	st, err := ss.Imported(ctx)
	if err != nil {
		return nil, session.Info{}, err
	}
	find := func() (session.Info, error) { return naming.Find(ctx, st, ref, false, ss.o.Last()) }
	in, err := find()
	if Foreign(in, err) && ss.Look(ctx) {
		in, err = find()
	}
	return st, in, err
}

// Replay reads the whole log of a session. A ref such as search cites, ID#12,
// is session ID, and record is then "12" if it was empty.
func (ss *Stores) Replay(ctx context.Context, ref string, record *string) (Store, *session.Session, error) {
	st, in, err := ss.Find(ctx, ref)
	if id, seq, ok := recall.Cited(ref); ok && *record == "" && errors.Is(err, session.ErrNotFound) {
		*record = seq
		st, in, err = ss.Find(ctx, id)
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
	return st, s, err
}

// ToldError is an error that says itself what to do.
type ToldError struct{ error }

// Unwrap returns the error.
func (t *ToldError) Unwrap() error { return t.error }

// Rescue says what to do about a damaged database.
func Rescue(d *sqlite.DamagedError) string {
	return fmt.Sprintf("goclaw doctor %s --repair-to NEW.db makes a new database from every record that is left", d.Path)
}

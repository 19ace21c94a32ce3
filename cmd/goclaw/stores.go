package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"goclaw/internal/naming"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/jsonl"
	"goclaw/store/postgres"
	"goclaw/store/sqlite"
)

// stores opens the store that is configured and finds sessions in it.
type stores struct {
	*env
	st       store // nil until open has opened it
	readOnly bool  // not even projections are written
	looked   bool  // what other programs wrote since the last import was imported
	noImport bool  // other programs' sessions were imported already, or must not be
	// agree asks whether n sessions of other programs may be imported. nil: nobody
	// is there to be asked, and the configuration decides.
	agree func(ctx context.Context, n int) bool
}

// store is what all stores can do beyond session.Store.
type store interface {
	session.Store
	storekit.Checker
	Check(ctx context.Context, report func(session.ID, error)) error
	Rebuild(ctx context.Context) (changed int, err error)
}

var layouts = map[string]jsonl.Layout{"openclaw": jsonl.OpenClaw, "claw0": jsonl.Claw0New, "claw0-old": jsonl.Claw0Old}

// open opens the store once.
func (ss *stores) open() (store, error) {
	if ss.st != nil {
		return ss.st, nil
	}
	c, err := ss.config()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.Session.Path); err != nil && ss.placed != "" {
		ss.warn("%s", ss.placed)
	}
	var st store
	switch c.Session.Store {
	case "jsonl":
		st, err = jsonl.Open(c.Session.Path, jsonl.Options{Layout: layouts[c.Session.Layout], ReadOnlyProjections: ss.readOnly})
	case "postgres":
		st, err = postgres.Open(context.Background(), c.Session.Path, postgres.Options{ReadOnly: ss.readOnly && ss.noImport})
	default:
		if err = notForeign(c.Session.Path); err != nil {
			break
		}
		st, err = sqlite.Open(c.Session.Path, sqlite.OnCopy(func(path string) {
			ss.warn("%s-wal is damaged, and records after the damage may be missing: goclaw doctor %s --repair-to NEW.db reads them from a copy", c.Session.Path, path)
		}), sqlite.OnDamage(func(error) {
			ss.warn("%s is damaged, and what is shown may not be all: goclaw doctor %[1]s --repair-to NEW.db makes a new database from every record that is left", c.Session.Path)
		}))
	}
	var damaged *sqlite.DamagedError
	if errors.As(err, &damaged) {
		return nil, &told{fmt.Errorf("%w: %s", err, rescueHint(damaged))}
	}
	if err != nil {
		return nil, err
	}
	ss.st = redactedStore{st, storekit.Redacted(st)}
	return ss.st, nil
}

// redactedStore is a store as it is read by everything that shows a log, sends it or
// searches it: without what redactions took out.
type redactedStore struct {
	store
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

// redacted returns st as a session.Store without what redactions took out. It
// finds them as fast as the store does.
func redacted(st store) session.Store {
	if s, ok := st.(redactedStore); ok {
		return s.view
	}
	return storekit.Redacted(st)
}

// whole returns st with the bytes of its logs, for copies, imports and checks.
func whole(st store) store {
	if s, ok := st.(redactedStore); ok {
		return s.store
	}
	return st
}

// imported opens the store and imports other programs' sessions if that was
// never done.
func (ss *stores) imported(ctx context.Context) (store, error) {
	st, err := ss.open()
	if err == nil {
		ss.firstImport(ctx, st)
	}
	return st, err
}

// find resolves what the user typed for a session.
func (ss *stores) find(ctx context.Context, ref string) (store, session.Info, error) {
	st, err := ss.imported(ctx)
	if err != nil {
		return nil, session.Info{}, err
	}
	find := func() (session.Info, error) { return naming.Find(ctx, st, ref, false, lists{ss.env}.Last()) }
	in, err := find()
	if foreign(in, err) && ss.look(ctx) {
		in, err = find()
	}
	return st, in, err
}

// findAll resolves refs, or lists all sessions if there are none: those in the
// trash last, if trash.
func (l lists) findAll(ctx context.Context, st session.Store, refs []string, trash bool) (infos []session.Info, err error) {
	for _, ref := range refs {
		in, err := naming.Find(ctx, st, ref, false, l.Last())
		if err != nil {
			return nil, err
		}
		infos = append(infos, in)
	}
	for _, q := range []session.Query{{}, {Trash: true}} {
		if len(refs) > 0 || q.Trash && !trash {
			break
		}
		for in, err := range st.List(ctx, q) {
			if err != nil {
				return nil, err
			}
			infos = append(infos, in)
		}
	}
	return infos, nil
}

// replay reads the whole log of a session. A ref such as search cites, ID#12,
// is session ID, and record is then "12" if it was empty.
func (ss *stores) replay(ctx context.Context, ref string, record *string) (store, *session.Session, error) {
	st, in, err := ss.find(ctx, ref)
	if id, seq, ok := recall.Cited(ref); ok && *record == "" && errors.Is(err, session.ErrNotFound) {
		*record = seq
		st, in, err = ss.find(ctx, id)
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
	return st, s, err
}

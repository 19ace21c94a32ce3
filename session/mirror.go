package session

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Mirror reports whether in is the log of another program's session, taken
// from a file that the program may go on writing. It is for reading only: what
// is said in it is said in the session that Continue returns.
func (in Info) Mirror() bool { return in.Origin.Path != "" }

// OwnKey is the key under which the mirror of key is continued:
// "goclaw:main:main" for "agent:main:main".
func OwnKey(key Key) Key {
	return "goclaw:" + Key(strings.TrimPrefix(string(key), "agent:"))
}

// Own returns the session in which the mirror in is continued: one of our own
// with its key, else the one that Continue began, under whatever key the mirror
// had then. ErrNotFound if there is none.
func Own(ctx context.Context, st Store, in Info) (Info, error) {
	keys := []Key{in.Key, OwnKey(in.Key)}
	if in.Key != in.Origin.Key {
		keys = append(keys, "")
	}
	for i, key := range keys {
		var best Info
		any := i == 2
		for own, err := range st.List(ctx, Query{Key: key}) {
			switch {
			case err != nil:
				return Info{}, err
			case own.Mirror() || own.Key != key && !any || i > 0 && own.Origin.ID != in.ID:
			case any && own.Key != OwnKey(own.Origin.Key): // a fork
			case best.ID == "" || own.Newer(best):
				best = own
			}
		}
		if best.ID != "" {
			return best, nil
		}
	}
	return Info{}, ErrNotFound
}

// Continue returns the session in which the mirror in is continued. If there
// is none it begins one, whose past is the mirror's live branch, and whose
// Origin says so.
func Continue(ctx context.Context, st Store, in Info, c Clock) (Info, error) {
	// Two must not begin the same continuation.
	release, err := lockSoon(ctx, st, in.ID, "goclaw, continuing it")
	if err != nil {
		return Info{}, err
	}
	defer release()
	own, err := Own(ctx, st, in)
	if !errors.Is(err, ErrNotFound) {
		return own, err
	}
	s, err := Replay(in.ID, st.Read(ctx, in.ID, 0))
	if err != nil {
		return Info{}, err
	}
	f, err := Fork(ctx, st, s, OwnKey(in.Key), "", c)
	if err != nil {
		return Info{}, err
	}
	if s.Title != "" && f.Title == "" {
		if _, err := Keep(ctx, st, f, f.Next(Title{Title: s.Title}, c), c); err != nil {
			return Info{}, err
		}
	}
	return f.Info, nil
}

// Behind returns the mirror that own continues, and how many messages were said
// in it since, later than after: own has none of them.
func Behind(ctx context.Context, st Store, own Info, after time.Time) (mirror Info, n int, err error) {
	if own.Mirror() || own.Origin.ID == "" || own.Key != OwnKey(own.Origin.Key) {
		return Info{}, 0, nil
	}
	mirror, err = Stat(ctx, st, own.Origin.ID)
	if errors.Is(err, ErrNotFound) {
		return Info{}, 0, nil
	}
	if err != nil || !mirror.Mirror() || mirror.Last <= own.Origin.Seq || !mirror.Updated.After(after) {
		return mirror, 0, err
	}
	for r, err := range st.Read(ctx, mirror.ID, own.Origin.Seq) {
		var d *Damage
		if err != nil && !errors.As(err, &d) {
			return mirror, n, err
		}
		if m, ok := r.Body.(Message); ok && err == nil && !r.Side && len(m.Results()) == 0 && r.Time.After(after) {
			n++
		}
	}
	return mirror, n, nil
}

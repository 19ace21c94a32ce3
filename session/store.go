package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Errors that callers of a Store branch on.
var (
	ErrNotFound = errors.New("session: not found")
	ErrConflict = errors.New("session: conflict, the log has other records")
	ErrClosed   = errors.New("session: store is closed")
	ErrTooLarge = errors.New("session: record is too large")
	ErrHeld     = errors.New("session: held by another")
	ErrFull     = errors.New("session: no space left on the disk")
	ErrStale    = errors.New("session: index and log differ")
	ErrPartial  = errors.New("session: the past is not loaded")
	ErrMoved    = errors.New("session: the store's file was removed or replaced")
)

// Store keeps logs. Every method may be called from many goroutines.
//
// A record is a promise: when Append has returned nil, no crash of the
// process or the machine takes it back. Nothing but Purge removes a record,
// and nothing changes one.
type Store interface {
	// Append adds recs to the end of the log id, all or none. They must
	// follow its last record without a gap (the first record of a log is a
	// Header with Seq 1), else the error wraps ErrConflict: read the log again,
	// and decide again. A log in the trash is not found.
	Append(ctx context.Context, id ID, recs ...Record) error

	// Read yields the records that follow the record after, in order. A line
	// that cannot be read yields a *Damage, and reading continues. A log in
	// the trash can be read; one that does not exist yields ErrNotFound.
	Read(ctx context.Context, id ID, after Seq) iter.Seq2[Record, error]

	// List yields the Infos that q asks for, latest Updated first, ties by
	// ID. Infos equal what Replay computes.
	List(ctx context.Context, q Query) iter.Seq2[Info, error]

	// Delete moves a log to the trash; Restore brings it back; Purge removes
	// a log in the trash for good. The error is ErrNotFound if the log is not
	// there, or not in the trash as it must be.
	Delete(ctx context.Context, id ID) error
	Restore(ctx context.Context, id ID) error
	Purge(ctx context.Context, id ID) error

	// Lock gives the caller the lock called name, across processes, until
	// release is called or the process ends. If another has it, the error is a
	// *HeldError at once. Whoever runs turns on a session has the lock
	// called by its ID; other locks have a NUL in their names, as no ID has.
	Lock(ctx context.Context, name, who string) (release func(), err error)

	// Close releases resources. Records are durable without it.
	Close() error
}

// Waiter is an optional power of a Store: Wait returns when the log id may
// have records that follow after, or ctx is done.
type Waiter interface {
	Wait(ctx context.Context, id ID, after Seq) error
}

// Query selects sessions. The zero value selects all that are not in the
// trash.
type Query struct {
	ID      ID
	Key     Key    // exactly
	Agent   string // Key.Parts().Agent
	Channel string // Key.Parts().Channel
	Text    string // part of key, id or title; case does not matter
	Trash   bool   // those in the trash instead
	Limit   int    // 0: no limit
}

// Match reports whether q selects in, Limit aside.
func (q Query) Match(in Info) bool {
	switch {
	case q.Trash == in.Trashed.IsZero(),
		q.ID != "" && q.ID != in.ID,
		q.Key != "" && q.Key != in.Key:
		return false
	}
	if q.Agent != "" || q.Channel != "" {
		p := in.Key.Parts()
		if q.Agent != "" && q.Agent != p.Agent || q.Channel != "" && q.Channel != p.Channel {
			return false
		}
	}
	if q.Text != "" {
		t := strings.ToLower(q.Text)
		return strings.Contains(strings.ToLower(string(in.Key)), t) || strings.Contains(strings.ToLower(string(in.ID)), t) ||
			strings.Contains(strings.ToLower(in.Title), t)
	}
	return true
}

// Damage is a place in a log that cannot be read, or is not what was written.
// As an error it does not end the reading.
type Damage struct {
	File   string // or the table, if there is no file
	Line   int    // 1 is the first; 0 if there are no lines
	After  Seq    // the last good record before it
	Size   int64  // bytes lost
	Reason string
	// Unfinished: it is the last line of a file and has no line end. Its writer
	// may be about to complete it, or was interrupted.
	Unfinished bool
	// Mended: the line was read nevertheless, with U+FFFD in the place of bytes
	// that are no text.
	Mended bool
	// Changed is the number of a record that differs from its checksum, else 0.
	// The record can be read.
	Changed Seq
}

func (d *Damage) Error() string {
	at := d.File
	if d.Line > 0 {
		at += fmt.Sprint(":", d.Line)
	}
	switch {
	case d.Changed > 0:
		return fmt.Sprintf("%s: %s", at, d.Reason)
	case d.Size == 0: // not known
		return fmt.Sprintf("%s: %s (after record %d)", at, d.Reason, d.After)
	}
	return fmt.Sprintf("%s: %s (%d bytes, after record %d)", at, d.Reason, d.Size, d.After)
}

// Undamaged passes on the records of a log and hands what is damaged to report.
func Undamaged(log iter.Seq2[Record, error], report func(*Damage)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range log {
			var d *Damage
			if errors.As(err, &d) {
				report(d)
			} else if !yield(r, err) {
				return
			}
		}
	}
}

// HeldError is an ErrHeld that says who has the lock.
type HeldError struct {
	Name  string // of the lock: an ID, or another name
	Who   string // as given to Lock
	PID   int
	Since time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("session: %s is held by %s (pid %d) since %s", e.Name, e.Who, e.PID, e.Since.Format(time.TimeOnly))
}

func (e *HeldError) Unwrap() error { return ErrHeld }

// MovedError is an ErrMoved that says which file of a store cannot be reached.
type MovedError struct{ Path string }

func (e *MovedError) Error() string {
	return e.Path + " was removed or replaced while goclaw had it open: nothing more is saved to it, and what was saved before is where it was moved; " +
		"move it back, or restart goclaw"
}

func (e *MovedError) Unwrap() error { return ErrMoved }

// NotFound returns an ErrNotFound whose text says what is missing.
func NotFound(format string, args ...any) error { return &missing{fmt.Sprintf(format, args...)} }

type missing struct{ text string }

func (e *missing) Error() string { return e.text }
func (e *missing) Unwrap() error { return ErrNotFound }

// Stat returns the Info of one log, in the trash or not.
func Stat(ctx context.Context, st Store, id ID) (Info, error) {
	for _, trash := range []bool{false, true} {
		for in, err := range st.List(ctx, Query{ID: id, Trash: trash, Limit: 1}) {
			return in, err
		}
	}
	return Info{}, NotFound("there is no session %q", id)
}

// Current returns the Info of the newest log of key: the one begun last. If
// several began at the same time, as copies did, it is the one written last.
func Current(ctx context.Context, st Store, key Key) (Info, error) {
	var best Info
	for in, err := range st.List(ctx, Query{Key: key}) {
		if err != nil {
			return Info{}, err
		}
		if in.Key != key { // "" is a key as well, but in a Query it selects all
			continue
		}
		if best.ID == "" || in.Newer(best) {
			best = in
		}
	}
	if best.ID == "" {
		return Info{}, NotFound("there is no session with the key %q", key)
	}
	return best, nil
}

// Open reads the log id as far as its context needs it.
func Open(ctx context.Context, st Store, id ID) (*Session, error) {
	for try := 0; ; try++ {
		in, err := Stat(ctx, st, id)
		if err != nil {
			return nil, err
		}
		s, err := resume(in, st.Read(ctx, id, in.KeepFrom-1))
		if !errors.Is(err, ErrStale) {
			return s, err
		}
		if try == 3 { // a busy log, or a wrong Info: read all of it
			return Replay(id, st.Read(ctx, id, 0))
		}
	}
}

// Load returns the newest session of key, and begins one if there is none.
// Callers that load the same new key at the same time, in whatever process, get
// the same session.
func Load(ctx context.Context, st Store, key Key, c Clock) (*Session, error) {
	in, err := Current(ctx, st, key)
	if errors.Is(err, ErrNotFound) {
		return Renew(ctx, st, Header{Key: key}, "", c)
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, st, in.ID)
}

// Renew begins a session with h if old is still the current session of its key;
// "" means none. If another caller has begun one since, Renew returns
// that.
func Renew(ctx context.Context, st Store, h Header, old ID, c Clock) (*Session, error) {
	release, err := claim(ctx, st, h.Key)
	if err != nil {
		return nil, err
	}
	defer release()
	switch in, err := Current(ctx, st, h.Key); {
	case err == nil && in.ID != old:
		return Open(ctx, st, in.ID)
	case err != nil && !errors.Is(err, ErrNotFound):
		return nil, err
	}
	return begin(ctx, st, h, c)
}

// Begin appends h as the first record of a new log and returns its session.
// The log is newer than every other log of its key.
func Begin(ctx context.Context, st Store, h Header, c Clock) (*Session, error) {
	release, err := claim(ctx, st, h.Key)
	if err != nil {
		return nil, err
	}
	defer release()
	return begin(ctx, st, h, c)
}

func begin(ctx context.Context, st Store, h Header, c Clock) (*Session, error) {
	if h.ID == "" {
		h.ID = newID(c)
	}
	if h.Version == 0 {
		h.Version = Version
	}
	s := newSession(h.ID)
	at, err := birth(ctx, st, h.Key, c)
	if err != nil {
		return nil, err
	}
	r := Record{Seq: 1, Time: at, Body: h}
	if err := st.Append(ctx, h.ID, r); err != nil {
		return nil, err
	}
	return s, s.Apply(r)
}

// Draft returns the session that h would begin. It has no ID and no log until
// something is said in it.
func Draft(h Header, c Clock) *Session {
	h.ID = ""
	s := newSession("")
	if err := s.Apply(Record{Seq: 1, Time: c.Now().UTC().Truncate(time.Millisecond), Body: h}); err != nil {
		panic(err) // a header can always be the first record
	}
	return s
}

// claim gives the caller the sole right, across processes, to begin sessions of
// key until release is called.
func claim(ctx context.Context, st Store, key Key) (release func(), err error) {
	return LockSoon(ctx, st, KeyLock(key), fmt.Sprintf("goclaw, beginning a session of %q", key))
}

// KeyLock is the name of the lock under which a session of key begins. A Store
// whose locks can be lost must not append a Header of key under a lost one.
func KeyLock(key Key) string { return "key\x00" + string(key) }

// LockSoon is st.Lock for a lock that others have for moments only: it waits up
// to ten seconds.
func LockSoon(ctx context.Context, st Store, name, who string) (release func(), err error) {
	wait := time.Millisecond
	for begin := time.Now(); ; wait = min(2*wait, 20*time.Millisecond) {
		release, err = st.Lock(ctx, name, who)
		if !errors.Is(err, ErrHeld) || time.Since(begin) > 10*time.Second {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// birth returns the time of a header that makes its log the newest of key,
// whatever the clock says. Logs in the trash count: they may be restored.
func birth(ctx context.Context, st Store, key Key, c Clock) (time.Time, error) {
	at := c.Now().UTC().Truncate(time.Millisecond)
	for _, trash := range []bool{false, true} {
		for in, err := range st.List(ctx, Query{Key: key, Trash: trash}) {
			if err != nil {
				return at, err
			}
			if in.Key == key && !at.After(in.Created) {
				at = in.Created.Add(time.Millisecond)
			}
		}
	}
	return at, nil
}

// Keep appends rec, which follows s, and applies it. If another process wrote
// to the log meanwhile, s becomes what the log says now, and the body of rec is
// appended after that. Keep returns the record that was appended.
func Keep(ctx context.Context, st Store, s *Session, rec Record, c Clock) (Record, error) {
	for try := 1; ; try++ {
		err := st.Append(ctx, s.ID, rec)
		if err == nil {
			return rec, s.Apply(rec)
		}
		if !errors.Is(err, ErrConflict) || try == 9 {
			return rec, err
		}
		now, err := Open(ctx, st, s.ID)
		if err != nil {
			return rec, err
		}
		*s = *now
		rec = s.Next(rec.Body, c)
	}
}

// Version is the version in the headers of our own logs: that of the line format
// that other programs know.
const Version = 3

// Newer reports whether to continue with in rather than with than, of two logs of
// one key. Ids do not decide: if nothing else does, the order of List holds.
func (in Info) Newer(than Info) bool {
	switch {
	case !in.Created.Equal(than.Created):
		return in.Created.After(than.Created)
	case !in.Updated.Equal(than.Updated):
		return in.Updated.After(than.Updated)
	case in.Records != than.Records:
		return in.Records > than.Records
	}
	original := func(in Info) bool { return in.Origin.ID == "" || in.Origin.ID == in.ID }
	return original(in) && !original(than)
}

// Follow yields the records of the log id that follow after, and then those to
// come, until ctx is done.
func Follow(ctx context.Context, st Store, id ID, after Seq) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		told := map[Damage]bool{} // damage at the end of a log is found at every reading
		for {
			for r, err := range st.Read(ctx, id, after) {
				var d *Damage
				if err != nil && ctx.Err() != nil {
					return
				}
				if errors.As(err, &d) {
					if told[*d] {
						continue
					}
					told[*d] = true
				}
				if !yield(r, err) || err != nil && !errors.As(err, &d) {
					return
				}
				if err == nil {
					after = r.Seq
				}
			}
			if err := wait(ctx, st, id, after); err != nil {
				if ctx.Err() == nil && !errors.Is(err, ErrClosed) {
					yield(Record{}, err)
				}
				return
			}
		}
	}
}

// wait returns nil when there may be new records.
func wait(ctx context.Context, st Store, id ID, after Seq) error {
	if w, ok := st.(Waiter); ok {
		return w.Wait(ctx, id, after)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

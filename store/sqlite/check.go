package sqlite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Check reads everything there is and reports what is wrong: damage of the
// file, records that cannot be read or are missing, and rows of sessions that
// do not say what their logs add up to. What is of no session has no id. An
// error says that the checking could not go on.
func (s *Store) Check(ctx context.Context, report func(session.ID, error)) error {
	var found []string
	err := s.with(ctx, "", func(c *conn) (err error) { found, err = wounds(c, ""); return err })
	if err != nil {
		return err
	}
	for i, t := range found {
		if i == maxWounds {
			report("", fmt.Errorf("sqlite: %s: and %d more of this kind", s.path, len(found)-i))
			break
		}
		report("", fmt.Errorf("sqlite: %s: %s", s.path, t))
	}
	if err := s.checkInbox(ctx, report); err != nil {
		return err
	}
	logs, whole, err := s.logs(ctx)
	if err != nil {
		return err
	}
	if !whole {
		report("", fmt.Errorf("sqlite: %s: the table of sessions is damaged: %w", s.path, session.ErrStale))
	}
	for _, l := range logs {
		if l.row == nil {
			report("", fmt.Errorf("sqlite: %s: the records of session %d have no row: %w", s.path, l.n, session.ErrStale))
			continue
		}
		in, damage, err := s.replay(ctx, l)
		if err != nil {
			if err = damaged(err, l.row.ID, report); err != nil {
				return err
			}
			continue
		}
		for _, d := range damage {
			report(l.row.ID, d)
		}
		if beheaded(l.row, &in) {
			report(l.row.ID, fmt.Errorf("its header cannot be read: the key %q is known from its row only", l.row.Key))
		}
		if d := differences(*l.row, in); d != "" {
			report(l.row.ID, fmt.Errorf("its row differs from its log: %s: %w", d, session.ErrStale))
		}
		wrong, err := s.misfiled(ctx, l.n)
		if err = damaged(err, l.row.ID, report); err != nil {
			return err
		}
		if len(wrong) > 0 {
			report(l.row.ID, fmt.Errorf("%d of its records are filed under another id, parent, type or time than their lines say, the first is record %d: %w",
				len(wrong), wrong[0].Seq, session.ErrStale))
		}
	}
	return nil
}

// checkInbox reports what is in the inbox and can never be sorted in.
func (s *Store) checkInbox(ctx context.Context, report func(session.ID, error)) error {
	full := false
	err := s.lend(ctx, func(c *conn) (err error) { full, err = inboxed(c); return err })
	if err == nil && full && !s.readOnly {
		err = s.settle(ctx, s.writer.settleUpTo)
	}
	if unreadable(err) {
		report("", fmt.Errorf("what was appended last cannot be put in its place: %w", err))
		err = nil
	}
	if err != nil {
		return err
	}
	n, err := s.unread(ctx)
	if err == nil && n > 0 {
		report("", fmt.Errorf("sqlite: %s: %d bytes of what was appended last cannot be read, to whatever session: %w", s.path, n, session.ErrStale))
	}
	return err
}

// maxWounds is how many of SQLite's own findings are told: one page that is
// bad can be the cause of hundreds.
const maxWounds = 4

// misfiled returns the records of session n whose columns do not say what
// their lines say.
func (s *Store) misfiled(ctx context.Context, n int64) (wrong []sqlstore.Line, err error) {
	err = s.with(ctx, "", func(c *conn) error {
		wrong = nil
		end, err := last(c, n)
		if err != nil {
			return err
		}
		for at := session.Seq(0); at < end; {
			err := c.each(func(r row) error {
				at = session.Seq(r.Int(0))
				rec, damage := sqlstore.Decode(s.path, at, r.bytes(5), func() (string, string, string) { return "", "", "" })
				if damage != nil {
					return nil // said elsewhere; its columns are all there is
				}
				l := sqlstore.NewLine(rec, r.bytes(5))
				if r.Text(1) != l.ID || r.Text(2) != l.Parent || r.Text(3) != l.Type || r.Text(4) != l.Time {
					l.Data = nil
					wrong = append(wrong, l)
				}
				return nil
			}, "SELECT pos & 4294967295, id, parent, type, time, data FROM records WHERE pos >= $1 AND pos <= $2 ORDER BY pos", pos(n, int64(at)+1), pos(n, int64(end)))
			if err == nil {
				return nil
			}
			if !unreadable(err) {
				return err
			}
			to, err := next(c, n, at+1, end) // said elsewhere
			if err != nil || to == 0 {
				return err
			}
			at = to - 1
		}
		return nil
	})
	return wrong, err
}

// damaged reports err if it is about the file, and returns it if not.
func damaged(err error, id session.ID, report func(session.ID, error)) error {
	if unreadable(err) || errors.Is(err, sqlite3.IOERR) {
		report(id, err)
		return nil
	}
	return err
}

// Rebuild computes the rows of all sessions from their logs, and returns how
// many had to be changed; columns beside the lines are made right as well. It
// writes no line.
func (s *Store) Rebuild(ctx context.Context) (changed int, err error) {
	if err := s.writable(); err != nil {
		return 0, err
	}
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	defer s.writer.mending.Store(false)
	if changed, err = s.mend(ctx); err != nil {
		return 0, err
	}
	logs, _, err := s.logs(ctx)
	if err != nil {
		return changed, err
	}
	for _, l := range logs {
		if err := s.refile(ctx, l.n); err != nil && !unreadable(err) {
			return changed, s.wrap(err)
		}
		in, _, err := s.replay(ctx, l)
		if unreadable(err) { // nothing of it is left; Check says so
			continue
		}
		if err != nil {
			return changed, err
		}
		if l.row != nil {
			beheaded(l.row, &in)
			if differences(*l.row, in) == "" {
				continue
			}
		}
		// Once more, now that nobody can write.
		w := &s.writer
		err = s.queue.Put(ctx, &sqlstore.Request{Do: func() error {
			return w.alone(func() error { return w.rebuild(l) })
		}})
		if err != nil {
			return changed, s.wrap(err)
		}
		changed++
	}
	return changed, nil
}

// refile makes the columns beside the lines of session n say what the lines
// say. The lines stay as they are.
func (s *Store) refile(ctx context.Context, n int64) error {
	wrong, err := s.misfiled(ctx, n)
	if err != nil || len(wrong) == 0 {
		return err
	}
	w := &s.writer
	return s.queue.Put(ctx, &sqlstore.Request{Do: func() error {
		return w.alone(func() error {
			for _, l := range wrong {
				if err := w.c.exec("UPDATE records SET id = $1, parent = $2, type = $3, time = $4 WHERE pos = $5",
					l.ID, l.Parent, l.Type, l.Time, pos(n, int64(l.Seq))); err != nil {
					return err
				}
			}
			return nil
		})
	}})
}

// rebuild writes the row of l.
func (w *writer) rebuild(l log) error {
	c, done, err := w.aside()
	if err != nil {
		return err
	}
	defer done()
	s, err := session.Replay(l.id(), records(c, w.s.path, l.n))
	if err != nil {
		return err
	}
	if l.row != nil {
		beheaded(l.row, &s.Info)
		return w.c.exec(sqlstore.RewriteSession, append(sqlstore.Values(s.Info), l.n)...)
	}
	if s.Info.ID == "" {
		return fmt.Errorf("the log of session %d does not say whose it is", l.n)
	}
	if err := w.c.exec(sqlstore.InsertSession, sqlstore.Values(s.Info)...); err != nil {
		return err
	}
	return w.c.exec("UPDATE sessions SET n = $1 WHERE n = $2", l.n, w.c.LastInsertRowID())
}

// beheaded reports whether the header of a log cannot be read, and then gives
// log what only its row still knows: whose conversation it is.
func beheaded(row, log *session.Info) bool {
	if log.Key != "" || row.Key == "" {
		return false
	}
	log.Key, log.Origin, log.Parent, log.CWD, log.Created = row.Key, row.Origin, row.Parent, row.CWD, row.Created
	return true
}

// log is a session by its number, with its row if it has one.
type log struct {
	n   int64
	row *session.Info
}

// id is "" for a log without a row: then its header says it.
func (l log) id() session.ID {
	if l.row == nil {
		return ""
	}
	return l.row.ID
}

// logs returns what there is, by rows and by records. whole is false if rows
// could not be read.
func (s *Store) logs(ctx context.Context) (logs []log, whole bool, err error) {
	err = s.with(ctx, "", func(c *conn) (err error) {
		logs, whole, err = allLogs(c)
		return err
	})
	return logs, whole, err
}

func allLogs(c *conn) (logs []log, whole bool, err error) {
	have := map[int64]bool{}
	for _, trash := range []bool{false, true} {
		sql, args := sqlstore.SelectSessions(session.Query{Trash: trash})
		err := c.each(func(r row) error {
			n, in := sqlstore.Scan(r)
			logs = append(logs, log{n, &in})
			have[n] = true
			return nil
		}, sql, args...)
		if unreadable(err) {
			logs, err = salvage(c)
			return logs, false, err
		}
		if err != nil {
			return nil, false, err
		}
	}
	for n := int64(0); ; {
		next, err := c.int("SELECT min(pos) FROM records WHERE pos > $1", pos(n, maxSeq))
		if unreadable(err) {
			logs, err = salvage(c)
			return logs, true, err
		}
		if err != nil || next == 0 {
			return logs, true, err
		}
		if n = next >> 32; !have[n] {
			logs = append(logs, log{n: n})
		}
	}
}

// replay returns what l adds up to, and what of it could not be read.
func (s *Store) replay(ctx context.Context, l log) (session.Info, []*session.Damage, error) {
	p := piece{file: s.path, n: l.n}
	o := session.NewOutline(l.id())
	var damage []*session.Damage
	for !p.done {
		err := s.with(ctx, "", func(c *conn) (err error) {
			if p.last == 0 {
				if p.last, err = last(c, l.n); err != nil {
					return err
				}
			}
			return p.read(c)
		})
		if err != nil {
			return session.Info{}, nil, err
		}
		for _, e := range p.entries {
			var d *session.Damage
			if errors.As(e.err, &d) {
				damage = append(damage, d)
			} else if err := o.Apply(e.rec); err != nil {
				return session.Info{}, nil, err
			}
		}
	}
	return o.Info, damage, nil
}

// differences says in which fields a row does not say what its log does.
func differences(row, log session.Info) string {
	log.Trashed = row.Trashed
	var out []string
	a, b := reflect.ValueOf(row), reflect.ValueOf(log)
	for i := range a.NumField() {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if t, ok := x.(time.Time); ok && t.Equal(y.(time.Time)) || x == y {
			continue
		}
		out = append(out, fmt.Sprintf("%s is %v, should be %v", a.Type().Field(i).Name, x, y))
	}
	return strings.Join(out, "; ")
}

package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Check reads the whole database and reports what is wrong: damage of the file,
// records that cannot be read, are missing or differ from their checksums, and
// rows of sessions that differ from what their logs add up to. The id is empty
// for problems of no session. An error means that the check could not continue.
func (s *Store) Check(ctx context.Context, report func(session.ID, error)) error {
	if s.cut {
		report("", fmt.Errorf("sqlite: %s can be read only in part: %w", s.path, s.denied))
	}
	found, err := lent(ctx, &s.readers, findings)
	if err != nil {
		return err
	}
	for i, t := range found {
		if i == maxFindings {
			report("", fmt.Errorf("sqlite: %s: and %d more of this kind", s.path, len(found)-i))
			break
		}
		report("", fmt.Errorf("sqlite: %s: %s", s.path, t))
	}
	err = s.lend(ctx, func(c *sqlx.Conn) error {
		return cmp.Or(s.checkEnd(c, report), checkInbox(c, s.path, report))
	})
	if err != nil {
		return err
	}
	logs, whole, err := s.logs(ctx)
	if err != nil {
		return err
	}
	if !whole {
		report("", fmt.Errorf("sqlite: %s: the table of sessions is damaged", s.path))
	}
	for _, l := range logs {
		if l.lost && whole {
			report("", fmt.Errorf("sqlite: %s: the records of session %d have no row: %w", s.path, l.n, session.ErrStale))
			continue
		}
		if err := damaged(s.check(ctx, l, report), l.info.ID, report); err != nil {
			return err
		}
	}
	return nil
}

// checkEnd reports a last page that is not whole. SQLite reads zeros there.
func (d *database) checkEnd(c *sqlx.Conn, report func(session.ID, error)) error {
	size, err := c.Int("PRAGMA page_size")
	if err != nil {
		return err
	}
	st, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	// A crash may leave part of a page that the write-ahead log has whole.
	if part := st.Size() % max(size, 1); part != 0 && d.settled() {
		report("", fmt.Errorf("sqlite: %s: the file is cut off: its last page has %d of %d bytes", d.path, part, size))
	}
	return nil
}

// check reports what is wrong with one session.
func (s *Store) check(ctx context.Context, l log, report func(session.ID, error)) error {
	id := l.info.ID
	in, damage, err := s.replay(ctx, l)
	if err != nil {
		return err
	}
	for _, d := range damage {
		report(id, d)
	}
	if l.lost {
		report(id, errors.New("its row cannot be read: what is said of it is computed from its records"))
		return nil
	}
	if d := differences(l.info, in); d != "" && s.late == nil {
		report(id, fmt.Errorf("its row differs from its log: %s: %w", d, session.ErrStale))
	}
	wrong, err := lent(ctx, &s.readers, func(c *sqlx.Conn) ([]sqlstore.Line, error) { return misfiled(c, s.checked(l.n)) })
	if len(wrong) > 0 {
		report(id, fmt.Errorf("%d of its records are filed under another id, parent, type or time than their lines say, the first is record %d: %w",
			len(wrong), wrong[0].Seq, session.ErrStale))
	}
	return err
}

// maxFindings limits how many of SQLite's own findings are reported: one bad
// page can cause hundreds.
const maxFindings = 4

// misfiled returns the records of the session p.n whose columns differ from their
// lines. If a line has changed since it was written, its columns are not wrong.
func misfiled(c *sqlx.Conn, p piece) (wrong []sqlstore.Line, err error) {
	n, sum := p.n, "NULL"
	if p.summed {
		sum = "crc32c"
	}
	end, err := last(c, n)
	if err != nil {
		return nil, err
	}
	for at := session.Seq(0); at < end; {
		err := c.Each(func(r sqlx.Row) error {
			at = session.Seq(r.Int(0))
			rec, damage := sqlstore.Decode(p.file, at, r.Bytes(4), func() (string, string, string) { return "", "", "" })
			if damage != nil || p.changed(at, r) != nil {
				return nil // replay reports it; there is no line to compare with
			}
			l := sqlstore.NewLine(rec, r.Bytes(4))
			if r.Text(1) != l.ID || r.Text(2) != l.Parent || r.Text(3) != l.Type || r.Text(6) != l.Time {
				l.Data = nil
				wrong = append(wrong, l)
			}
			return nil
		}, "SELECT pos & 4294967295, id, parent, type, data, "+sum+", time"+inRange, pos(n, int64(at)+1), pos(n, int64(end)))
		if !unreadable(err) {
			return wrong, err
		}
		to, err := readable(c, n, at+1, end) // replay reports the others
		if err != nil || to == 0 {
			return wrong, err
		}
		at = to - 1
	}
	return wrong, nil
}

// damaged reports err if it is damage of the file and returns any other error.
func damaged(err error, id session.ID, report func(session.ID, error)) error {
	if unreadable(err) || errors.Is(err, sqlite3.IOERR) {
		report(id, err)
		return nil
	}
	return err
}

// Rebuild computes the rows of all sessions, and the columns beside the lines,
// from the logs, and returns how many rows it changed. It never changes a line.
// It leaves what cannot be written because the file is damaged, and returns an
// error then.
func (s *Store) Rebuild(ctx context.Context) (changed int, err error) {
	if err := s.writable(); err != nil {
		return 0, err
	}
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	w := &s.writer
	do := func(f func() error) error {
		return s.wrap(s.queue.put(ctx, &request{do: func() error { return w.alone(f) }}))
	}
	// Opening has put in place all that could be read of an inbox.
	if err := do(func() error { return w.c.Exec("DROP TABLE IF EXISTS inbox") }); err != nil && !unreadable(err) {
		return 0, err
	}
	logs, whole, err := s.logs(ctx)
	if err != nil {
		return 0, err
	}
	if !whole {
		return 0, fmt.Errorf("sqlite: %s: the table of sessions is damaged: copy what can be read into a new store: %w", s.path, sqlite3.CORRUPT)
	}
	var failed error
	for _, l := range logs {
		did, err := s.rebuild(ctx, l, do)
		if did {
			changed++
		}
		if unreadable(err) {
			failed = cmp.Or(failed, err)
		} else if err != nil {
			return changed, err
		}
	}
	return changed, failed
}

// rebuild computes the row of l and the columns beside its lines. It reports
// whether the row was changed.
func (s *Store) rebuild(ctx context.Context, l log, do func(func() error) error) (changed bool, err error) {
	wrong, err := lent(ctx, &s.readers, func(c *sqlx.Conn) ([]sqlstore.Line, error) { return misfiled(c, s.checked(l.n)) })
	if err == nil && len(wrong) > 0 {
		err = do(func() error { return s.writer.refile(l.n, wrong) })
	}
	if err != nil && !unreadable(err) {
		return false, err
	}
	in, _, err := s.replay(ctx, l)
	if unreadable(err) { // nothing of it is left; Check reports it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !l.lost && differences(l.info, in) == "" {
		return false, nil
	}
	// Compute it again where no other process can write.
	err = do(func() error { return s.writer.rewrite(l) })
	return err == nil, err
}

// refile writes the columns of session n's records that differ from their lines.
func (w *writer) refile(n int64, wrong []sqlstore.Line) error {
	for _, l := range wrong {
		if err := w.c.Run("UPDATE records SET id = $1, parent = $2, type = $3, time = $4 WHERE pos = $5",
			l.ID, l.Parent, l.Type, l.Time, pos(n, int64(l.Seq))); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes the row of l.
func (w *writer) rewrite(l log) error {
	// SQLite refuses to write in a transaction that has met a damaged page, so
	// another connection reads.
	c, err := w.s.reader()
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := session.Replay(l.id(), records(c, w.s.path, l.n))
	if err != nil {
		return err
	}
	w.book.drop(s.Info.ID)
	if !l.lost {
		return w.c.Run(sqlstore.RewriteSession, append(sqlstore.Values(s.Info), l.n)...)
	}
	if s.Info.ID == "" {
		return fmt.Errorf("the log of session %d does not say whose it is", l.n)
	}
	n, err := insertSession(w.c, s.Info)
	if err != nil {
		return err
	}
	return w.c.Run("UPDATE sessions SET n = $1 WHERE n = $2", l.n, n)
}

// log is a session by its number, with the Info from its row or, if the row is
// lost, from its records.
type log struct {
	n    int64
	info session.Info
	lost bool
}

// id is empty if the row is lost: then the header of the log names it.
func (l log) id() session.ID {
	if l.lost {
		return ""
	}
	return l.info.ID
}

// logs returns all sessions that have a row or records. whole is false if rows
// could not be read.
func (s *Store) logs(ctx context.Context) (logs []log, whole bool, err error) {
	err = s.lend(ctx, func(c *sqlx.Conn) (err error) {
		logs, whole, err = allLogs(c, s.path)
		return err
	})
	return logs, whole, err
}

func allLogs(c *sqlx.Conn, path string) (logs []log, whole bool, err error) {
	have := map[int64]bool{}
	for _, trash := range []bool{false, true} {
		sql, args := sqlstore.SelectSessions(session.Query{Trash: trash})
		err := c.Each(func(r sqlx.Row) error {
			n, in := sqlstore.Scan(r)
			logs = append(logs, log{n: n, info: in})
			have[n] = true
			return nil
		}, sql, args...)
		if unreadable(err) {
			logs, err = salvage(c, path)
			return logs, false, err
		}
		if err != nil {
			return nil, false, err
		}
	}
	for n := int64(0); ; {
		next, err := c.Int("SELECT min(pos) FROM records WHERE pos > $1", pos(n, maxSeq))
		if unreadable(err) {
			logs, err = salvage(c, path)
			return logs, true, err
		}
		if err != nil || next == 0 {
			return logs, true, err
		}
		if n = next >> 32; !have[n] {
			logs = append(logs, log{n: n, lost: true})
		}
	}
}

// replay returns what l adds up to, and its damage.
func (s *Store) replay(ctx context.Context, l log) (in session.Info, damage []*session.Damage, err error) {
	o := session.NewOutline(l.id())
	err = s.lend(ctx, func(c *sqlx.Conn) error {
		for r, err := range s.checked(l.n).all(c) {
			var d *session.Damage
			if errors.As(err, &d) {
				damage = append(damage, d)
				continue
			}
			if err == nil {
				err = o.Apply(r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return o.Info, damage, err
}

// differences lists the fields in which a row differs from its log.
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

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

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
	"goclaw/store/sqlite/internal/files"
	"goclaw/store/sqlite/internal/rescue"
)

// Check reads the whole database and reports what is wrong: damage of the file,
// records that cannot be read, are missing or differ from their checksums, and
// rows of sessions that differ from what their logs add up to. The id is empty
// for problems of no session. An error means that the check could not continue.
func (s *Store) Check(ctx context.Context, report func(session.ID, error)) error {
	if err := s.checkFile(ctx, report); err != nil {
		return err
	}
	var logs []log
	var paged problems
	err := s.query(ctx, func(c *sqlx.Conn) (err error) {
		logs, err = allLogs(c)
		return err
	}, func(d *rescue.Database) error {
		paged = nil
		return checkPages(ctx, s.path, d, paged.add)
	})
	paged.report(report)
	for i := 0; i < len(logs) && err == nil; i++ {
		if l := logs[i]; l.lost {
			report("", fmt.Errorf("sqlite: %s: the records of session %d have no row: %w", s.path, l.n, session.ErrStale))
		} else {
			err = s.check(ctx, l, report)
		}
	}
	return err
}

// maxFindings limits how many of SQLite's own findings are reported: one bad
// page can cause hundreds.
const maxFindings = 4

// checkFile reports what is wrong with the file.
func (s *Store) checkFile(ctx context.Context, report func(session.ID, error)) error {
	if s.cut {
		report("", fmt.Errorf("sqlite: %s can be read only in part: %w", s.path, s.denied))
	} else {
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
		err = s.lend(ctx, func(c *sqlx.Conn) error { return checkInbox(c, s.path, report) })
		if err != nil && !unreadable(err) {
			return err
		}
	}
	return s.checkEnd(ctx, report)
}

// checkEnd reports a last page that is not whole. SQLite reads zeros there.
func (s *Store) checkEnd(ctx context.Context, report func(session.ID, error)) error {
	page := int64(0)
	err := s.query(ctx, func(c *sqlx.Conn) (err error) {
		page, err = c.Int("PRAGMA page_size")
		return err
	}, func(d *rescue.Database) error {
		page = d.PageSize()
		return nil
	})
	if err != nil {
		return err
	}
	st, err := os.Stat(s.path)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	// A crash may leave part of a page that the write-ahead log has whole.
	if part := st.Size() % max(page, 1); part != 0 && files.LogSize(s.path) == 0 {
		report("", fmt.Errorf("sqlite: %s: the file is cut off: its last page has %d of %d bytes", s.path, part, page))
	}
	return nil
}

// findings returns what SQLite finds wrong with the file, except unused pages,
// which are harmless.
func findings(c *sqlx.Conn) (found []string, err error) {
	err = c.Each(func(r sqlx.Row) error {
		for t := range strings.Lines(r.Text(0)) {
			if t = strings.TrimSpace(t); t != "ok" && t != "" && !strings.Contains(t, "never used") && !strings.HasPrefix(t, "***") {
				found = append(found, t)
			}
		}
		return nil
	}, "PRAGMA integrity_check")
	if unreadable(err) {
		found, err = append(found, err.Error()), nil
	}
	return found, err
}

// checkPages checks a database that SQL cannot read.
func checkPages(ctx context.Context, path string, d *rescue.Database, report func(session.ID, error)) error {
	if d.Late > 0 {
		report("", fmt.Errorf("sqlite: %s: an older version left records of %d sessions to be moved to their places: open it once where it can be written", path, d.Late))
	}
	for _, p := range d.Problems {
		report(p.ID, p.Err)
	}
	for _, l := range d.Sessions {
		if err := checkPage(ctx, d, l, report); err != nil {
			return err
		}
	}
	return nil
}

// checkPage reports what is wrong with a session that SQL cannot read.
func checkPage(ctx context.Context, d *rescue.Database, l *rescue.Session, report func(session.ID, error)) error {
	o := session.NewOutline(l.ID)
	for e := range d.Read(l, 0, true) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Err != nil {
			report(l.ID, e.Err)
		} else if err := o.Apply(e.Record); err != nil {
			return err
		}
	}
	if !l.Known {
		report(l.ID, errors.New("its row cannot be read: what is said of it is computed from its records"))
	} else if diff := differences(d.Info(l), o.Info); diff != "" {
		report(l.ID, fmt.Errorf("its row differs from its log: %s: %w", diff, session.ErrStale))
	}
	return nil
}

// check reports what is wrong with one session.
func (s *Store) check(ctx context.Context, l log, report func(session.ID, error)) error {
	id := l.info.ID
	var paged problems
	err := s.query(ctx, func(c *sqlx.Conn) error {
		r, err := replay(c, s.path, l)
		if err != nil {
			return err
		}
		for _, d := range r.damage {
			report(id, d)
		}
		if d := differences(l.info, r.info); d != "" {
			report(id, fmt.Errorf("its row differs from its log: %s: %w", d, session.ErrStale))
		}
		if n := len(r.misfiled); n > 0 {
			report(id, fmt.Errorf("%d of its records are filed under another id, parent, type or time than their lines say, the first is record %d: %w",
				n, r.misfiled[0].Seq, session.ErrStale))
		}
		return nil
	}, func(d *rescue.Database) error {
		paged = nil
		if found := d.Find(id); found != nil {
			return checkPage(ctx, d, found, paged.add)
		}
		paged.add(id, errors.New("nothing of it can be read but its row"))
		return nil
	})
	paged.report(report)
	return err
}

// problems are reported once it is known that the pages were not overwritten
// while they were read.
type problems []rescue.Problem

func (p *problems) add(id session.ID, err error) { *p = append(*p, rescue.Problem{ID: id, Err: err}) }

func (p problems) report(report func(session.ID, error)) {
	for _, f := range p {
		report(f.ID, f.Err)
	}
}

// Rebuild computes the rows of all sessions, and the columns beside the lines,
// from the logs, and returns how many rows it changed. It never changes a line.
// It leaves sessions whose pages are damaged, and returns an error then.
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
	logs, err := lent(ctx, &s.readers, allLogs)
	if unreadable(err) {
		err = fmt.Errorf("sqlite: %s is damaged: copy what can be read into a new store: %w", s.path, err)
	}
	if err != nil {
		return 0, err
	}
	var failed error
	for _, l := range logs {
		r, err := lent(ctx, &s.readers, func(c *sqlx.Conn) (replayed, error) { return replay(c, s.path, l) })
		stale := err == nil && (l.lost || differences(l.info, r.info) != "")
		if err == nil && (stale || len(r.misfiled) > 0) {
			// Compute it again where no other process can write.
			err = do(func() error { return w.rebuild(l) })
		}
		switch {
		case unreadable(err):
			failed = cmp.Or(failed, err)
		case err != nil:
			return changed, err
		case stale:
			changed++
		}
	}
	return changed, failed
}

// rebuild writes the row of l and the columns of its records that differ from
// their lines.
func (w *writer) rebuild(l log) error {
	r, err := replay(w.c, w.s.path, l)
	if err != nil {
		return err
	}
	for _, m := range r.misfiled {
		if err := w.c.Run("UPDATE records SET id = $1, parent = $2, type = $3, time = $4 WHERE pos = $5",
			m.ID, m.Parent, m.Type, m.Time, pos(l.n, int64(m.Seq))); err != nil {
			return err
		}
	}
	w.book.drop(r.info.ID)
	if !l.lost {
		return w.c.Run(sqlstore.RewriteSession, append(sqlstore.Values(r.info), l.n)...)
	}
	if r.info.ID == "" {
		return fmt.Errorf("the log of session %d does not say whose it is", l.n)
	}
	n, err := insertSession(w.c, r.info)
	if err != nil {
		return err
	}
	return w.c.Run("UPDATE sessions SET n = $1 WHERE n = $2", l.n, n)
}

// log is a session by its number, with the Info from its row.
type log struct {
	n    int64
	info session.Info
	lost bool // there is no row: the header of the log names it
}

// allLogs returns all sessions that have a row or records.
func allLogs(c *sqlx.Conn) (logs []log, err error) {
	have := map[int64]bool{}
	for _, trash := range []bool{false, true} {
		sql, args := sqlstore.SelectSessions(session.Query{Trash: trash})
		err := c.Each(func(r sqlx.Row) error {
			n, in := sqlstore.Scan(r)
			logs = append(logs, log{n: n, info: in})
			have[n] = true
			return nil
		}, sql, args...)
		if err != nil {
			return nil, err
		}
	}
	for n := int64(0); ; {
		next, err := c.Int("SELECT min(pos) FROM records WHERE pos > $1", pos(n, maxSeq))
		if err != nil || next == 0 {
			return logs, err
		}
		if n = next >> 32; !have[n] {
			logs = append(logs, log{n: n, lost: true})
		}
	}
}

// replayed is what a log adds up to, its damage and the records whose columns
// differ from their lines.
type replayed struct {
	info     session.Info
	damage   []*session.Damage
	misfiled []sqlstore.Line
}

// replay reads the log l.
func replay(c *sqlx.Conn, path string, l log) (r replayed, err error) {
	o := session.NewOutline(l.info.ID)
	p := piece{file: path, n: l.n, check: true}
	for rec, err := range p.records(c) {
		var d *session.Damage
		if errors.As(err, &d) {
			r.damage = append(r.damage, d)
			continue
		}
		if err == nil {
			err = o.Apply(rec)
		}
		if err != nil {
			return r, err
		}
	}
	r.info, r.misfiled = o.Info, p.misfiled
	return r, nil
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

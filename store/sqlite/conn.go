package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// conn is one connection with its prepared statements. One goroutine at a
// time may use it.
type conn struct {
	*sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
	large bool // a large value went through it, and its memory never shrinks
}

// maxWait is how long a connection waits for another process.
const maxWait = 30 * time.Second

// largeValue is what makes a connection large.
const largeValue = 2 << 20

func dial(path string, flags sqlite3.OpenFlag, pragmas string) (*conn, error) {
	c, err := sqlite3.OpenFlags(path, flags)
	if err != nil {
		return nil, err
	}
	err = c.BusyHandler(patience())
	if err == nil {
		// The WAL stays when the last connection closes: it keeps its mode, and
		// is not made anew each time.
		_, err = c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true)
	}
	if err == nil {
		err = c.Exec(pragmas)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &conn{Conn: c, stmts: map[string]*sqlite3.Stmt{}}, nil
}

// patience returns a busy handler. It asks again after a wait that grows from
// some microseconds, which is how long another's transaction takes, to some
// milliseconds.
func patience() func(context.Context, int) bool {
	var begin time.Time
	return func(ctx context.Context, count int) bool {
		if count == 0 {
			begin = time.Now()
		} else if time.Since(begin) > maxWait {
			return false
		}
		wait := 20 * time.Microsecond << min(count/2, 7)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
			return true
		}
	}
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.Close()
	}
	return c.Close()
}

// query prepares sql, or takes it as prepared before, and binds args: int64,
// string, []byte or nil. The caller must Reset what it returns.
func (c *conn) query(sql string, args ...any) (*sqlite3.Stmt, error) {
	s := c.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		c.stmts[sql] = s
	}
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case int64:
			err = s.BindInt64(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			err = s.BindBlob(i+1, a)
			if len(a) > largeValue {
				c.large = true
			}
		case nil:
			err = s.BindNull(i + 1)
		default:
			err = fmt.Errorf("a %T cannot be bound", a)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// exec runs sql.
func (c *conn) exec(sql string, args ...any) error {
	s, err := c.query(sql, args...)
	if err != nil {
		return err
	}
	err = s.Exec()
	if c.large { // let go of the value
		s.ClearBindings()
	}
	return err
}

// each calls f for every row.
func (c *conn) each(f func(r row) error, sql string, args ...any) error {
	s, err := c.query(sql, args...)
	if err != nil {
		return err
	}
	for s.Step() {
		if err := f(row{s}); err != nil {
			s.Reset()
			return err
		}
	}
	return s.Reset()
}

// int returns the first column of the first row, 0 if there is none.
func (c *conn) int(sql string, args ...any) (n int64, err error) {
	err = c.each(func(r row) error { n = r.Int(0); return errStop }, sql, args...)
	return n, stopped(err)
}

// text is int for a text.
func (c *conn) text(sql string, args ...any) (t string, err error) {
	err = c.each(func(r row) error { t = r.Text(0); return errStop }, sql, args...)
	return t, stopped(err)
}

// errStop ends a query that has said enough.
var errStop = errors.New("enough")

func stopped(err error) error {
	if err == errStop {
		return nil
	}
	return err
}

// row implements sqlstore.Row.
type row struct{ s *sqlite3.Stmt }

func (r row) Int(col int) int64   { return r.s.ColumnInt64(col) }
func (r row) Text(col int) string { return string(r.s.ColumnRawText(col)) }

// bytes is valid until the next row.
func (r row) bytes(col int) []byte { return r.s.ColumnRawBlob(col) }

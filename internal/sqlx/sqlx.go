// Package sqlx is a connection to an SQLite database with its prepared
// statements.
package sqlx

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Conn is one connection. One goroutine at a time may use it.
type Conn struct {
	*sqlite3.Conn
	// Large says that a value of more than LargeValue went through the
	// connection. Its memory never shrinks: close it soon.
	Large bool
	stmts map[string]*sqlite3.Stmt
}

// LargeValue is the size in bytes above which a value makes a connection Large.
const LargeValue = 2 << 20

// Open opens a database and calls ready with the connection.
func Open(name string, flags sqlite3.OpenFlag, ready func(*Conn) error) (*Conn, error) {
	db, err := sqlite3.OpenFlags(name, flags)
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: db, stmts: map[string]*sqlite3.Stmt{}}
	if err := ready(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the statements and the connection.
func (c *Conn) Close() error {
	for _, s := range c.stmts {
		s.Close()
	}
	return c.Conn.Close()
}

// query prepares sql, once for each connection, and binds args: int, int64,
// string, []byte or nil. The caller must Reset the statement.
func (c *Conn) query(sql string, args ...any) (*sqlite3.Stmt, error) {
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
		case int:
			err = s.BindInt64(i+1, int64(a))
		case int64:
			err = s.BindInt64(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			err = s.BindBlob(i+1, a)
			c.Large = c.Large || len(a) > LargeValue
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

// Run runs one statement.
func (c *Conn) Run(sql string, args ...any) error {
	s, err := c.query(sql, args...)
	if err != nil {
		return err
	}
	err = s.Exec()
	if c.Large { // release the value
		s.ClearBindings()
	}
	return err
}

// ErrStop ends a query early.
var ErrStop = errors.New("enough")

// Each calls f for every row. It stops at an error of f and returns it, ErrStop
// included.
func (c *Conn) Each(f func(Row) error, sql string, args ...any) error {
	s, err := c.query(sql, args...)
	if err != nil {
		return err
	}
	for s.Step() {
		if err := f(Row{s}); err != nil {
			s.Reset()
			return err
		}
	}
	return s.Reset()
}

// first calls f for the first row, if there is one.
func (c *Conn) first(f func(Row), sql string, args ...any) error {
	err := c.Each(func(r Row) error { f(r); return ErrStop }, sql, args...)
	if err == ErrStop {
		return nil
	}
	return err
}

// Int returns the first column of the first row, 0 if there is none.
func (c *Conn) Int(sql string, args ...any) (n int64, err error) {
	err = c.first(func(r Row) { n = r.Int(0) }, sql, args...)
	return n, err
}

// Text returns the first column of the first row, "" if there is none.
func (c *Conn) Text(sql string, args ...any) (t string, err error) {
	err = c.first(func(r Row) { t = r.Text(0) }, sql, args...)
	return t, err
}

// Blob returns a copy of the first column of the first row, nil if there is
// none.
func (c *Conn) Blob(sql string, args ...any) (b []byte, err error) {
	err = c.first(func(r Row) { b = append([]byte{}, r.Bytes(0)...) }, sql, args...)
	return b, err
}

// Within calls f in a transaction that writes.
func (c *Conn) Within(f func() error) error {
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.Exec("COMMIT")
	}
	if err != nil && !c.GetAutocommit() {
		ctx := c.SetInterrupt(context.Background()) // it would interrupt the rollback as well
		err = errors.Join(err, c.Exec("ROLLBACK"))
		c.SetInterrupt(ctx)
	}
	return err
}

// Row is the current row of a query. The first column is 0; NULL reads as 0 and
// "".
type Row struct{ *sqlite3.Stmt }

// Int returns a number.
func (r Row) Int(col int) int64 { return r.ColumnInt64(col) }

// Text returns a text. It reads the bytes because SQLite would copy a text to
// terminate it.
func (r Row) Text(col int) string { return string(r.ColumnRawBlob(col)) }

// Bytes returns a blob that is valid until the next row.
func (r Row) Bytes(col int) []byte { return r.ColumnRawBlob(col) }

package sqlx

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

func TestConn(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.db")
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE
	c, err := Open(path, flags, func(c *Conn) error { return c.Exec("CREATE TABLE t (n, s, b)") })
	must(err)
	defer c.Close()
	no := errors.New("no")
	if err := c.Within(func() error { must(c.Run("INSERT INTO t VALUES (9, NULL, NULL)")); return no }); !errors.Is(err, no) {
		t.Errorf("within: %v, want %v", err, no)
	}
	must(c.Within(func() error {
		for i, s := range []string{"a", "b", "c"} {
			if err := c.Run("INSERT INTO t VALUES ($1, $2, $3)", i+1, s, []byte(s)); err != nil {
				return err
			}
		}
		return c.Run("INSERT INTO t VALUES ($1, $2, NULL)", int64(4), nil)
	}))
	if n, err := c.Int("SELECT count(*) FROM t"); n != 4 || err != nil {
		t.Errorf("%d rows (%v), want 4", n, err)
	}
	if s, err := c.Text("SELECT s FROM t WHERE n > $1 ORDER BY n", 1); s != "b" || err != nil {
		t.Errorf("text is %q (%v), want b", s, err)
	}
	if b, err := c.Blob("SELECT b FROM t WHERE n = 3"); string(b) != "c" || err != nil {
		t.Errorf("blob is %q (%v), want c", b, err)
	}
	if b, err := c.Blob("SELECT b FROM t WHERE n = 7"); b != nil || err != nil {
		t.Errorf("no row is %q (%v)", b, err)
	}
	rows := 0
	if err := c.Each(func(r Row) error { rows++; return ErrStop }, "SELECT n FROM t"); err != ErrStop || rows != 1 {
		t.Errorf("each: %v after %d rows", err, rows)
	}
	if err := c.Run("INSERT INTO t VALUES ($1, 0, 0)", 1.5); err == nil {
		t.Error("a float is bound")
	}
	if c.Large {
		t.Error("it is large already")
	}
	must(c.Run("INSERT INTO t VALUES (5, '', $1)", make([]byte, LargeValue+1)))
	if !c.Large {
		t.Error("it is not large")
	}
	if _, err := Open(path, flags, func(*Conn) error { return no }); !errors.Is(err, no) {
		t.Errorf("open: %v, want %v", err, no)
	}
}

// What interrupts a transaction does not interrupt its rollback.
func TestInterrupted(t *testing.T) {
	c, err := Open(":memory:", sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE, func(c *Conn) error { return c.Exec("CREATE TABLE t (n)") })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	c.SetInterrupt(ctx)
	err = c.Within(func() error {
		if err := c.Run("INSERT INTO t VALUES (1)"); err != nil {
			return err
		}
		cancel()
		return c.Run("INSERT INTO t VALUES (2)")
	})
	if !errors.Is(err, sqlite3.INTERRUPT) {
		t.Errorf("within: %v, want %v", err, sqlite3.INTERRUPT)
	}
	if got := c.SetInterrupt(context.Background()); got != ctx {
		t.Error("the connection has lost its context")
	}
	if n, err := c.Int("SELECT count(*) FROM t"); n != 0 || err != nil || !c.GetAutocommit() {
		t.Errorf("%d rows (%v), and autocommit is %v: want no row and no transaction", n, err, c.GetAutocommit())
	}
}

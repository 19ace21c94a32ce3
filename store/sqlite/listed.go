package sqlite

import (
	"github.com/ncruces/go-sqlite3"

	"goclaw/store/internal/sqlstore"
)

// listed is a table that exists in memory only, with the records that are to be
// written. One statement that takes them from there costs less than one for
// each of them.
type listed struct {
	n     int64
	lines []sqlstore.Line
}

const (
	insertOne   = "INSERT INTO records (pos, id, parent, type, time, data) VALUES ($1, $2, $3, $4, $5, $6)"
	insertMany  = "INSERT INTO records (pos, id, parent, type, time, data) SELECT pos, id, parent, type, time, data FROM goclaw_listed"
	listedTable = "CREATE TABLE goclaw_listed (pos INTEGER, id TEXT, parent TEXT, type TEXT, time TEXT, data BLOB)"
)

// register makes b a table of c.
func (b *listed) register(c *conn) error {
	return sqlite3.CreateModule(c.Conn, "goclaw_listed", nil, func(db *sqlite3.Conn, _, _, _ string, _ ...string) (*listed, error) {
		return b, db.DeclareVTab(listedTable)
	})
}

// insert writes lines of session n.
func (b *listed) insert(c *conn, n int64, lines []sqlstore.Line) error {
	if len(lines) > 1 {
		b.n, b.lines = n, lines
		defer func() { b.lines = nil }()
		for _, l := range lines {
			c.large = c.large || len(l.Data) > largeValue
		}
		return c.exec(insertMany)
	}
	for _, l := range lines {
		if err := c.exec(insertOne, pos(n, int64(l.Seq)), l.ID, l.Parent, l.Type, l.Time, l.Data); err != nil {
			return err
		}
	}
	return nil
}

// BestIndex implements sqlite3.VTab.
func (b *listed) BestIndex(*sqlite3.IndexInfo) error { return nil }

// Open implements sqlite3.VTab.
func (b *listed) Open() (sqlite3.VTabCursor, error) { return &listedCursor{b: b}, nil }

type listedCursor struct {
	b  *listed
	at int
}

// Filter implements sqlite3.VTabCursor.
func (c *listedCursor) Filter(int, string, ...sqlite3.Value) error { c.at = 0; return nil }

// Next implements sqlite3.VTabCursor.
func (c *listedCursor) Next() error { c.at++; return nil }

// EOF implements sqlite3.VTabCursor.
func (c *listedCursor) EOF() bool { return c.at >= len(c.b.lines) }

// RowID implements sqlite3.VTabCursor.
func (c *listedCursor) RowID() (int64, error) { return int64(c.at), nil }

// Column implements sqlite3.VTabCursor.
func (c *listedCursor) Column(ctx sqlite3.Context, col int) error {
	l := &c.b.lines[c.at]
	switch col {
	case 0:
		ctx.ResultInt64(pos(c.b.n, int64(l.Seq)))
	case 1:
		ctx.ResultText(l.ID)
	case 2:
		ctx.ResultText(l.Parent)
	case 3:
		ctx.ResultText(l.Type)
	case 4:
		ctx.ResultText(l.Time)
	case 5:
		ctx.ResultBlob(l.Data)
	}
	return nil
}

package rescue

import (
	"slices"
	"strings"

	"goclaw/internal/pages"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// table is how the rows of a table are stored. Older versions lack columns at
// the end, later ones have more.
type table struct {
	columns []string
	kinds   []kind
}

// kind is what the values of a column can be.
type kind struct {
	is       func(pages.Type) bool
	optional bool // it may be NULL
}

// newTable returns the table name as schema creates it. Generated columns are
// not stored, and the number of a row is not among its values.
func newTable(schema, name string) (t table) {
	_, text, _ := strings.Cut(schema, "CREATE TABLE "+name+" (\n")
	text, _, _ = strings.Cut(text, "\n)")
	for line := range strings.Lines(text) {
		column, def, _ := strings.Cut(strings.TrimSpace(line), " ")
		k := kind{optional: !strings.Contains(def, "NOT NULL")}
		switch def = strings.TrimSpace(def); {
		case strings.Contains(def, "GENERATED"):
			continue
		case strings.Contains(def, "PRIMARY KEY"):
			k.is = pages.Type.Null
		case strings.HasPrefix(def, "INTEGER"):
			k.is = pages.Type.Int
		case strings.HasPrefix(def, "TEXT"):
			k.is = pages.Type.Text
		default:
			k.is = func(t pages.Type) bool { return t.Blob() || t.Text() }
		}
		t.columns, t.kinds = append(t.columns, column), append(t.kinds, k)
	}
	return t
}

// fits reports whether r can be a row of t.
func (t table) fits(r pages.Row) bool {
	if r.ID <= 0 || len(r.Types) > len(t.columns)+8 {
		return false
	}
	for i, k := range t.kinds {
		if i >= len(r.Types) {
			if !k.optional {
				return false
			}
		} else if v := r.Types[i]; !k.is(v) && !(k.optional && v.Null()) {
			return false
		}
	}
	return true
}

// value returns the value of a column, NULL if there is none.
func (t table) value(v []pages.Value, column string) pages.Value {
	if i := slices.Index(t.columns, column); i >= 0 && i < len(v) {
		return v[i]
	}
	return pages.Value{Null: true}
}

// infoRow is a row of the table sessions as sqlstore.Scan reads it.
type infoRow struct {
	table  table
	n      int64
	values []pages.Value
}

var scanColumns = sqlstore.ScanColumns()

func (r infoRow) Int(col int) int64 {
	if col == 0 {
		return r.n
	}
	return r.table.value(r.values, scanColumns[col]).Int
}

func (r infoRow) Text(col int) string {
	return string(r.table.value(r.values, scanColumns[col]).Bytes)
}

// info returns what the row of session n says.
func (t table) info(n int64, v []pages.Value) session.Info {
	_, in := sqlstore.Scan(infoRow{t, n, v})
	return in
}

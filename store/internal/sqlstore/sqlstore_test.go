package sqlstore

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

func TestStamp(t *testing.T) {
	// In the order of time.
	times := []time.Time{
		time.Date(-271821, 4, 20, 0, 0, 0, 0, time.UTC), // the first date of JavaScript
		time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(0, 2, 29, 0, 0, 0, 0, time.UTC),
		{},
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(2026, 11, 15, 1, 32, 0, 134e6, time.FixedZone("", 3600)),
		time.Date(2026, 11, 15, 0, 32, 0, 134e6+1, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(275760, 9, 13, 0, 0, 0, 0, time.UTC), // the last one
	}
	var stamps []string
	for _, at := range times {
		s := Stamp(at)
		if got := parseStamp(s); !got.Equal(at) {
			t.Errorf("%v became %q and then %v", at, s, got)
		}
		stamps = append(stamps, s)
	}
	if !slices.IsSorted(stamps) {
		t.Errorf("the stamps are out of order: %q", stamps)
	}
	for _, s := range []string{"", "never", "~", "-", "2026-11-15", "~~~~~~~~~~", "2026-11-15T00:32:00Z", "x\x00"} {
		if got := parseStamp(s); !got.IsZero() {
			t.Errorf("%q is %v, want the zero time", s, got)
		}
	}
}

// line is a row whose columns are the given values.
type line []any

func (l line) Int(col int) int64   { n, _ := l[col].(int64); return n }
func (l line) Text(col int) string { s, _ := l[col].(string); return s }

func TestScanValues(t *testing.T) {
	in := session.Info{
		ID: "id", Key: "k\x00ey", Title: "title", Parent: "parent", CWD: "/cwd",
		Origin:  session.Origin{Program: "pi", Path: "/p", Key: "ok", ID: "oid", Seq: 7},
		Created: sessiontest.Start, Updated: sessiontest.Start.Add(time.Nanosecond), Trashed: sessiontest.Start.Add(time.Hour),
		Records: 1, Last: 2, Compactions: 3, Spent: llm.Usage{Input: 4, Output: 5, CacheRead: 6, CacheWrite: 8},
		Turns: 9, Provider: "anthropic", Model: "m", Thinking: "high", Used: 10, Leaf: "leaf", KeepFrom: 11, LastBend: 12,
	}
	n, got := Scan(append(line{int64(42), Stamp(in.Trashed)}, Values(in)...))
	if d := cmp.Diff(in, got); d != "" || n != 42 {
		t.Errorf("session %d (-want +got):\n%s", n, d)
	}
	old := in
	old.Updated = in.Created.Add(-time.Hour) // of the records that a fork began with
	if _, got := Scan(append(line{int64(42), ""}, Values(old)...)); !got.Updated.Equal(in.Created) {
		t.Errorf("a session of %s was updated at %s", got.Created, got.Updated)
	}
	if len(Values(in)) != len(Columns()) || len(Usual(in)) != len(usual) {
		t.Errorf("%d values for %d columns, %d for %d usual ones", len(Values(in)), len(Columns()), len(Usual(in)), len(usual))
	}
}

func TestTypeOf(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"message","id":"1"}`:   "message",
		`{"id":"1", "type": "leaf"}`:    "leaf",
		`{"type":"a\u0062c"}`:           "abc",
		`{"type":7}`:                    "",
		`{"type":"torn`:                 "",
		`[1]`:                           "",
		``:                              "",
		`{"type":"","x":"{\"type\":1"}`: "",
	} {
		if got := typeOf([]byte(line)); got != want {
			t.Errorf("%s is of type %q, want %q", line, got, want)
		}
	}
}

// TestUsual: a change of any column is either among what Usual returns or unusual.
func TestUsual(t *testing.T) {
	in := session.Info{ID: "id", Created: sessiontest.Start, Updated: sessiontest.Start.Add(time.Hour)}
	for i, col := range columns {
		row := append(line{int64(1), ""}, Values(in)...)
		switch v := row[i+2].(type) {
		case int64:
			row[i+2] = v + 1
		case string:
			row[i+2] = v + "x"
			if !parseStamp(v).IsZero() {
				row[i+2] = Stamp(parseStamp(v).Add(time.Minute))
			}
		}
		_, changed := Scan(row)
		at := slices.Index(usual, col)
		if got := unusual(changed) != unusual(in); got != (at < 0) {
			t.Errorf("%s: unusual is %v", col, got)
		}
		if at >= 0 && Usual(changed)[at] != row[i+2] {
			t.Errorf("%s: Usual has %v, want %v", col, Usual(changed)[at], row[i+2])
		}
	}
}

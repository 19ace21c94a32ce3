package doctor

import (
	"fmt"
	"testing"

	"goclaw/session"
)

// Where parents lead is found out in as many steps as there are records, however
// many of them come before their parents.
func TestCircleTakesOneWalk(t *testing.T) {
	const n = 100_000
	id := func(i int) string { return fmt.Sprint("r", i) }
	tests := []struct {
		name   string
		parent func(i int) string
		want   bool // of every record
	}{
		{"reversed", func(i int) string { return id(i + 1) }, false},
		{"one circle", func(i int) string { return id((i + 1) % n) }, true},
		{"into a circle of two", func(i int) string {
			if i == n-1 {
				return id(n - 2)
			}
			return id(i + 1)
		}, true},
		{"each its own parent", id, true},
		{"far ahead", func(i int) string { return id(n - 1 + i/(n-1)) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := examiner{at: map[string]int{}}
			recs := make([]session.Record, n)
			for i := range recs {
				recs[i] = session.Record{ID: id(i), Parent: tt.parent(i)}
				x.at[id(i)] = i
			}
			for i := range recs {
				if got := x.circle(recs, i); got != tt.want {
					t.Fatalf("record %d: got %v, want %v", i, got, tt.want)
				}
			}
			if x.steps > n {
				t.Errorf("%d steps for %d records", x.steps, n)
			}
		})
	}
}

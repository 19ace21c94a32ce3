package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/storetest"
)

func TestTableJudges(t *testing.T) {
	stores := []named{{name: "sqlite"}, {name: "jsonl"}}
	rows := []row{
		{what: "at most", unit: "x", limit: 2.5, got: []float64{2.5, 2.6}},
		{what: "at least", unit: "x", limit: 10, least: true, only: "sqlite", got: []float64{11, 1}},
		{what: "no limit", unit: "ms", got: []float64{1, 1e6}, peers: "floor 49"},
	}
	var out bytes.Buffer
	ok, err := show(&out, rows, stores)
	if err != nil || ok {
		t.Errorf("a table with a figure beyond its limit is judged %v, %v", ok, err)
	}
	for _, want := range []string{"<= 2.5x ", "2.5x ok", "2.6x FAIL", ">= 10x (sqlite)", "11x ok", " 1x ", "floor 49"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	rows[0].got[1] = 1
	if ok, err := show(&out, rows, stores); err != nil || !ok {
		t.Errorf("a table within its limits is judged %v, %v", ok, err)
	}
	for n, want := range map[int]string{100: "100", 10_000: "10k", 1_000_000: "1M"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

// The measures measure what they say: small, on a folder.
func TestMeasures(t *testing.T) {
	one, raw, err := benchAppend(inFolder, t.TempDir(), 25)
	if err != nil || len(one) != 40 || len(raw) != 40 {
		t.Errorf("benchAppend took %d and %d times, %v", len(one), len(raw), err)
	}
	single, many, err := benchGroup(inFolder, t.TempDir(), 64, true)
	if err != nil || single <= 0 || many <= 0 || math.IsInf(many, 0) {
		t.Errorf("benchGroup = %v, %v, %v", single, many, err)
	}
	took, err := benchLength(inFolder, t.TempDir(), []int{100, 200}, 5)
	if err != nil || len(took) != 2 || took[0] <= 0 {
		t.Errorf("benchLength = %v, %v", took, err)
	}
	took, list, cold, err := benchSessions(inFolder, t.TempDir(), []int{1, 20}, 5)
	if err != nil || len(took) != 2 || median(list) <= 0 || median(cold) <= 0 { // which is longer is up to the machine
		t.Errorf("benchSessions = %v, %v, %v, %v", took, list, cold, err)
	}
	took, err = benchRestore(inFolder, t.TempDir(), []int{200, 400})
	if err != nil || len(took) != 2 {
		t.Errorf("benchRestore = %v, %v", took, err)
	}
	broken := func(dir string) (session.Store, error) {
		st, err := inFolder(dir)
		if err != nil {
			return nil, err
		}
		return st, st.Close()
	}
	if _, err := table(&bytes.Buffer{}, t.TempDir(), false, named{name: "broken", open: broken}); err == nil {
		t.Error("a store that fails is measured")
	}
}

func TestCompacted(t *testing.T) {
	for _, n := range []int{1000, 6000} {
		recs := slices.Collect(compacted(1, n))
		s, err := session.Replay(storetest.ConversationID(1), sessiontest.Yield(recs...))
		if err != nil || len(recs) != n || s.LastBend != 0 {
			t.Fatalf("compacted(%d) has %d records, its last bend at %d, %v", n, len(recs), s.LastBend, err)
		}
		if kept := n - int(s.KeepFrom); kept < 60 || kept > 85 {
			t.Errorf("compacted(%d) keeps %d records", n, kept)
		}
	}
}

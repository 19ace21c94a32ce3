package postgres

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// The table of records can be partitioned as docs/scale.md says, while goclaw runs:
// everything works as before.
func TestPartitioned(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	want := map[session.ID]int{}
	for i := range 40 {
		id := session.ID(fmt.Sprint("s", i))
		talk(t, s, id, 3)
		want[id] = 4
	}
	must(t, s.Delete(bg, "s7"))
	ch, err := s.Changes(bg, "")
	must(t, err)

	page, err := os.ReadFile("../../docs/scale.md")
	must(t, err)
	_, script, _ := strings.Cut(string(page), "```sql\n")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("docs/scale.md has no script")
	}
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	defer c.Close(bg)
	_, err = c.Exec(bg, script, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	var parts, full int32
	must(t, c.QueryRow(bg, "SELECT count(*)::int4, count(*) FILTER (WHERE pg_relation_size(inhrelid) > 0)::int4 FROM pg_inherits WHERE inhparent = 'goclaw_records'::regclass").Scan(&parts, &full))
	if parts != 16 || full < 8 {
		t.Errorf("%d partitions, %d of them with records", parts, full)
	}

	for i := range 40 {
		id := session.ID(fmt.Sprint("s", i))
		if id != "s7" {
			must(t, s.Append(bg, id, session.Record{Seq: 5, ID: "more", Parent: "e003", Time: sessiontest.Start, Body: sessiontest.User("more")}))
			want[id]++
		}
	}
	talk(t, s, "new", 2)
	want["new"] = 3
	if ch, err = s.Changes(bg, ch.Now); err != nil || len(ch.Logs) != 40 || ch.All {
		t.Errorf("the feed has %d logs (%v), want 40", len(ch.Logs), err)
	}
	must(t, s.Purge(bg, "s7"))
	delete(want, "s7")
	for id, n := range want {
		if got, err := sessiontest.Collect(s.Read(bg, id, 0)); err != nil || len(got) != n {
			t.Errorf("%s has %d records (%v), want %d", id, len(got), err, n)
		}
	}
	if err := s.Append(bg, "s1", session.Record{Seq: 5, ID: "x", Parent: "e003", Body: sessiontest.User("x")}); err == nil {
		t.Error("a record was written twice")
	}
	must(t, s.Check(bg, func(id session.ID, err error) { t.Errorf("%s: %v", id, err) }))
	b := at(t, dir, Options{}) // a process that starts now
	if in, err := session.Stat(bg, b, "s3"); err != nil || in.Last != 5 {
		t.Errorf("s3 ends with record %d (%v)", in.Last, err)
	}
}

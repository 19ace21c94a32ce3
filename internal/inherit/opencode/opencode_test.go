package opencode

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit/source"
)

// TestCutOff: an answer that is never finished is waited for, and then read. The
// session is then another than it was, although no row has changed.
func TestCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.db")
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := time.UnixMilli(1794749583552)
	if err := c.Exec(fmt.Sprintf(`CREATE TABLE session (id, parent_id, directory, title, revert, time_created, time_updated, time_archived);
		CREATE TABLE message (id, session_id, time_created, time_updated, data); CREATE TABLE part (id, message_id, session_id, time_updated, data);
		INSERT INTO session VALUES ('s', NULL, '/p', 't', NULL, 1, %[1]d, NULL);
		INSERT INTO message VALUES ('m1', 's', 1, %[1]d, '{"role":"user","time":{}}'), ('m2', 's', 2, %[1]d, '{"role":"assistant","time":{}}');
		INSERT INTO part VALUES ('p1', 'm1', 's', %[1]d, '{"type":"text","text":"q"}'), ('p2', 'm2', 's', %[1]d, '{"type":"text","text":"half an ans"}')`, at.UnixMilli())); err != nil {
		t.Fatal(err)
	}
	seen := map[source.Stat]bool{}
	for after, want := range map[time.Duration]int{time.Minute: 2, time.Hour: 3} {
		d, err := source.OpenDatabase(path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		p := program{func() time.Time { return at.Add(after) }}
		found, err := p.Open(&source.File{Path: path, DB: d})
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		n := 0
		for _, err := range found[0].Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("%v later: %d records, want %d", after, n, want)
		}
		seen[found[0].Stat] = true
	}
	if len(seen) != 2 {
		t.Error("it looks as if nothing has changed")
	}
}

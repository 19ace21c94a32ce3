package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// A damaged database that is still written to is read as it is then: whoever
// reads page by page finds every record that was acknowledged before.
func TestDamagedWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 200)
	file := closeFile(t, s)
	page := strings.Index(string(file), `say 100"`) / pageSize
	must(t, os.WriteFile(path, junk(file, page+1), 0o600))
	s = at(t, path)
	last := func() (last session.Seq, damage int) {
		for r, err := range s.Read(bg, "s1", 0) {
			var d *session.Damage
			switch {
			case errors.As(err, &d):
				damage++
			case err != nil:
				t.Error(err)
			case r.Seq != last+1:
				t.Errorf("record %d follows %d", r.Seq, last)
			}
			last = max(last, r.Seq)
		}
		return last, damage
	}
	if n, damage := last(); n != 201 || damage != 1 {
		t.Fatalf("the log ends at %d with %d damages, want 201 and 1", n, damage)
	}
	for n := session.Seq(202); n < 222; n++ {
		must(t, s.Append(bg, "s1", session.Record{Seq: n, ID: fmt.Sprintf("e%03d", n-1), Parent: fmt.Sprintf("e%03d", n-2), Time: sessiontest.Start, Body: sessiontest.User("more")}))
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				if got, damage := last(); got != n || damage != 1 {
					t.Errorf("the log ends at %d with %d damages, want %d and 1", got, damage, n)
				}
			})
		}
		readers.Wait()
	}
	must(t, s.Wait(bg, "s1", 200))
	must(t, s.Close())
	if _, err := sessiontest.Collect(s.Read(bg, "s1", 0)); !errors.Is(err, session.ErrClosed) {
		t.Errorf("read after close: %v, want %v", err, session.ErrClosed)
	}
}

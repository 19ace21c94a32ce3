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

// A record that was never committed is not read, page by page neither; Recover
// brings it back.
func TestDamagedNotCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 200)
	file := closeFile(t, s)
	s = at(t, path)
	must(t, s.Append(bg, "s1",
		session.Record{Seq: 202, ID: "e201", Parent: "e200", Time: sessiontest.Start, Body: sessiontest.User("never committed")},
		session.Record{Seq: 203, ID: "e202", Parent: "e201", Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("many pages ", 2000))}))
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	wal = wal[:len(wal)-24-pageSize] // its last frame commits
	if !strings.Contains(string(wal), "never committed") {
		t.Fatal("the record is in the frame that commits")
	}
	path = filepath.Join(t.TempDir(), "sessions.db")
	page := strings.Index(string(file), `say 100"`) / pageSize
	must(t, os.WriteFile(path, junk(file, page+1), 0o600))
	must(t, os.WriteFile(path+"-wal", wal, 0o600))
	into := at(t, filepath.Join(t.TempDir(), "new.db"))
	_, err = Recover(bg, path, into, func(session.ID, error) {})
	must(t, err)
	if in, err := session.Stat(bg, into, "s1"); err != nil || in.Last != 202 {
		t.Errorf("recovered, the log ends at %d (%v), want 202", in.Last, err)
	}
	s = at(t, path)
	last := session.Seq(0)
	for r, err := range s.Read(bg, "s1", 0) {
		if err == nil {
			last = r.Seq
		}
	}
	if last != 201 {
		t.Errorf("the log ends at %d, want 201", last)
	}
}

// While a damaged session is read, others write so much that the write-ahead log
// starts again from its beginning: no record is lost by that, and none is taken for another.
func TestDamagedWhileLogRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 200)
	file := closeFile(t, s)
	page := strings.Index(string(file), `say 50"`) / pageSize
	must(t, os.WriteFile(path, junk(file, page+1), 0o600))
	s = at(t, path)
	more := func(n session.Seq) session.Record {
		return session.Record{Seq: n, ID: fmt.Sprintf("e%03d", n-1), Parent: fmt.Sprintf("e%03d", n-2), Time: sessiontest.Start, Body: sessiontest.User(fmt.Sprintf("more %d", n))}
	}
	for n := session.Seq(202); n < 400; n++ {
		must(t, s.Append(bg, "s1", more(n)))
	}
	damage, last := 0, session.Seq(0)
	for r, err := range s.Read(bg, "s1", 0) {
		var d *session.Damage
		if errors.As(err, &d) {
			damage++
			continue
		}
		must(t, err)
		if r.Seq != last+1 {
			t.Errorf("record %d follows %d", r.Seq, last)
		}
		last = r.Seq
		if r.Seq > 201 && !strings.Contains(string(r.Raw), fmt.Sprintf(`more %d"`, r.Seq)) {
			t.Errorf("record %d is %.200s", r.Seq, r.Raw)
		}
		if r.Seq == 100 {
			must(t, s.Append(bg, "s1", more(400)))
			for i := range 5 {
				talk(t, s, session.ID(fmt.Sprint("t", i)), 10000)
			}
		}
	}
	if damage != 1 || last != 399 {
		t.Errorf("the log ends at %d with %d damages, want 399 and 1", last, damage)
	}
}

// A process that writes all the time does not keep another from reading a
// damaged database.
func TestDamagedWhileAnotherWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 200)
	talk(t, s, "s2", 1)
	file := closeFile(t, s)
	page := strings.Index(string(file), `say 100"`) / pageSize
	must(t, os.WriteFile(path, junk(file, page+1), 0o600))
	other, s := at(t, path), at(t, path)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	defer writing.Wait()
	defer close(stop)
	writing.Go(func() {
		for n := session.Seq(3); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := other.Append(bg, "s2", session.Record{Seq: n, ID: fmt.Sprintf("e%09d", n), Time: sessiontest.Start, Body: sessiontest.User("more")}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		last := session.Seq(0)
		for r, err := range s.Read(bg, "s1", 0) {
			var d *session.Damage
			if err != nil && !errors.As(err, &d) {
				t.Fatal(err)
			}
			last = max(last, r.Seq)
		}
		if last != 201 {
			t.Errorf("the log ends at %d, want 201", last)
		}
	}
}

// A record whose number is damaged does not make up millions of lost ones.
func TestDamagedNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 200)
	must(t, s.Close())
	sql(t, path, "UPDATE records SET pos = pos + (2 << 20) WHERE id = 'e150'")
	s = at(t, path)
	lost, last := 0, session.Seq(0)
	for r, err := range s.Read(bg, "s1", 0) {
		var d *session.Damage
		if err != nil && !errors.As(err, &d) {
			t.Fatal(err)
		}
		if string(r.Raw) == "null" {
			lost++
		}
		last = max(last, r.Seq)
	}
	if last != 201 || lost != 1 {
		t.Errorf("the log ends at %d with %d lost, want 201 and 1", last, lost)
	}
	if got := reports(t, s); len(got) == 0 {
		t.Error("check reports nothing")
	}
}

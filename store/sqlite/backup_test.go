package sqlite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// A backup that is made while many write is one moment of the database: each log
// has at least what was acknowledged before it began.
func TestBackupWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := at(t, filepath.Join(dir, "sessions.db"))
	ctx, stop := context.WithCancel(bg)
	var acked [4]atomic.Int64
	var writers sync.WaitGroup
	for i := range acked {
		id := session.ID(fmt.Sprint("s", i))
		talk(t, s, id, 1)
		acked[i].Store(2)
		writers.Go(func() {
			for n := int64(3); ctx.Err() == nil; n++ {
				r := session.Record{Seq: session.Seq(n), ID: fmt.Sprintf("e%03d", n-1), Parent: fmt.Sprintf("e%03d", n-2), Time: sessiontest.Start, Body: sessiontest.User("more")}
				must(t, s.Append(bg, id, r))
				acked[i].Store(n)
			}
		})
	}
	talk(t, s, "old", 3)
	must(t, s.Delete(bg, "old"))
	for n := range 5 {
		var before [len(acked)]int64
		for i := range acked {
			before[i] = acked[i].Load()
		}
		path := filepath.Join(dir, fmt.Sprint("copy", n, ".db"))
		sum, err := s.Backup(bg, path)
		must(t, err)
		if sum.Sessions != 5 || sum.Trashed != 1 {
			t.Errorf("the copy has %+v", sum)
		}
		if left, _ := filepath.Glob(path + "-*"); len(left) > 0 {
			t.Errorf("beside the copy there are %q", left)
		}
		b := at(t, path)
		for i, least := range before {
			got, err := sessiontest.Collect(b.Read(bg, session.ID(fmt.Sprint("s", i)), 0))
			if err != nil || int64(len(got)) < least {
				t.Errorf("copy %d: s%d has %d records (%v), %d were acknowledged before", n, i, len(got), err, least)
			}
		}
		if got := reports(t, b); len(got) > 0 {
			t.Errorf("copy %d: check reports %q", n, got)
		}
		talk(t, b, "more", 3) // it is a store like any other
	}
	stop()
	writers.Wait()
}

// Replace moves a database aside, with its write-ahead log, and refuses if
// another has it open.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, copied, aside := filepath.Join(dir, "sessions.db"), filepath.Join(dir, "copy.db"), filepath.Join(dir, "aside.db")
	s := at(t, path)
	talk(t, s, "s1", 5)
	sum, err := s.Backup(bg, copied)
	must(t, err)
	talk(t, s, "s2", 5)
	if was, err := Replace(path, copied, aside); !errors.Is(err, session.ErrHeld) || was != "" {
		t.Fatalf("a database that is open: %q, %v, want %v", was, err, session.ErrHeld)
	}
	talk(t, s, "s3", 5)
	must(t, s.Close())
	if was, err := Replace(path, copied, aside); err != nil || was != aside {
		t.Fatalf("replaced: %q, %v", was, err)
	}
	if got, err := Summarise(bg, path); got != sum || err != nil {
		t.Errorf("in its place is %+v (%v), want %+v", got, err, sum)
	}
	if _, err := os.Stat(copied); err == nil {
		t.Error("the copy is still there")
	}
	old := at(t, aside)
	for _, id := range []session.ID{"s1", "s2", "s3"} {
		if got, err := sessiontest.Collect(old.Read(bg, id, 0)); len(got) != 6 || err != nil {
			t.Errorf("the one that was replaced has %d records of %s (%v), want 6", len(got), id, err)
		}
	}
	talk(t, at(t, path), "s4", 2)
}

// What cp makes of a database that is written to: -v prints how many records
// that were acknowledged before are missing in the copies, and how many copies
// are damaged. Backup loses none. With -soak there are more copies.
func TestCopyOfALiveDatabase(t *testing.T) {
	dir := t.TempDir()
	s := at(t, filepath.Join(dir, "sessions.db"))
	for i := range 6 { // more than stays in the write-ahead log
		id := session.ID(fmt.Sprint("old", i))
		must(t, s.Append(bg, id, header(id), said(2, "", strings.Repeat("x", 1<<20))))
	}
	talk(t, s, "s1", 1)
	var acked atomic.Int64
	acked.Store(2)
	ctx, stop := context.WithCancel(bg)
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := int64(3); ctx.Err() == nil; n++ {
			r := session.Record{Seq: session.Seq(n), ID: fmt.Sprintf("e%03d", n-1), Parent: fmt.Sprintf("e%03d", n-2), Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("more ", 400))}
			must(t, s.Append(bg, "s1", r))
			acked.Store(n)
		}
	})
	copies := 1
	if flag.Lookup("soak").Value.String() != "0s" {
		copies = 12
	}
	for name, make := range map[string]func(to string) error{
		"cp sessions.db":                 func(to string) error { return cp(s.path, to) },
		"cp sessions.db sessions.db-wal": func(to string) error { return errors.Join(cp(s.path, to), cp(s.path+"-wal", to+"-wal")) },
		"goclaw backup":                  func(to string) error { _, err := s.Backup(bg, to); return err },
	} {
		missing, most, damaged := 0, int64(0), 0
		for i := range copies {
			to := filepath.Join(t.TempDir(), "copy.db")
			before := acked.Load()
			must(t, make(to))
			c, err := Open(to)
			if err != nil {
				damaged++
				continue
			}
			got, err := sessiontest.Collect(c.Read(bg, "s1", 0))
			if err != nil && !errors.Is(err, session.ErrNotFound) || len(reports(t, c)) > 0 {
				damaged++
			}
			if lost := before - int64(len(got)); lost > 0 {
				missing++
				most = max(most, lost)
			}
			c.Close()
			if name == "goclaw backup" && (missing > 0 || damaged > 0) {
				t.Errorf("backup %d: %d records of %d (%v)", i, len(got), before, err)
			}
		}
		t.Logf("%-30s %d of %d copies lack acknowledged records, up to %d; %d are damaged", name+":", missing, copies, most, damaged)
	}
	stop()
	writer.Wait()
	t.Logf("%d records were acknowledged meanwhile", acked.Load())
}

func cp(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// BenchmarkAppend measures an append of one record.
func BenchmarkAppend(b *testing.B) {
	s := at(b, filepath.Join(b.TempDir(), "sessions.db"))
	talk(b, s, "s1", 1)
	for n := 3; b.Loop(); n++ {
		must(b, s.Append(bg, "s1", session.Record{Seq: session.Seq(n), ID: fmt.Sprintf("e%03d", n-1), Parent: fmt.Sprintf("e%03d", n-2), Time: sessiontest.Start, Body: sessiontest.User("more")}))
	}
}

// BenchmarkPlaces measures what it costs to see whether the files are where they
// were. An append does so twice.
func BenchmarkPlaces(b *testing.B) {
	s := at(b, filepath.Join(b.TempDir(), "sessions.db"))
	for b.Loop() {
		must(b, s.places.Check())
	}
}

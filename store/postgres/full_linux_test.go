package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// The disk of the server is full: an append says so, and nothing is lost. When
// there is space again, the same handle goes on.
func TestFullDisk(t *testing.T) {
	dir, err := os.MkdirTemp("", "goclaw-full") // the server's user must be able to look into its parents
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=120m"); err != nil {
		if os.Getenv("GOCLAW_NO_SKIP") == "" {
			t.Skip("a small file system is mounted, which only root may do: ", err)
		}
		t.Fatal(err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	full, err := pgtest.Options{Folder: dir, Settings: []string{"fsync=off", "max_wal_size=32MB"}}.Start()
	must(t, err)
	defer full.Stop()
	s, err := Open(bg, full.DSN("postgres"), Options{})
	must(t, err)
	defer s.Close()
	recs := talk(t, s, "s1", 3)
	leaf := recs[3].ID

	fill(t, filepath.Join(dir, "ballast"))
	random := rand.NewChaCha8([32]byte{1})
	next := func() session.Record {
		b := make([]byte, 20_000)
		random.Read(b)
		return session.Record{Seq: session.Seq(len(recs) + 1), ID: fmt.Sprintf("r%05d", len(recs)), Parent: leaf, Time: sessiontest.Start, Body: sessiontest.User(fmt.Sprintf("%x", b))}
	}
	var refused session.Record
	for range 1000 {
		refused = next()
		if err = s.Append(bg, "s1", refused); err != nil {
			break
		}
		recs, leaf = append(recs, refused), refused.ID
	}
	const want = "the disk of the server is full: nothing was written"
	if !errors.Is(err, session.ErrFull) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("after %d records: error is %v, want %q", len(recs), err, want)
	}
	for range 3 { // it stays so, and all can be read
		if err := s.Append(bg, "s1", refused); !errors.Is(err, session.ErrFull) {
			t.Errorf("the disk is still full: %v", err)
		}
	}
	same := func() {
		t.Helper()
		got, err := sessiontest.Collect(s.Read(bg, "s1", 0))
		must(t, err)
		if len(got) != len(recs) || got[len(got)-1].ID != leaf {
			t.Fatalf("%d records of %d", len(got), len(recs))
		}
	}
	same()
	must(t, os.Remove(filepath.Join(dir, "ballast")))
	must(t, s.Append(bg, "s1", refused))
	recs, leaf = append(recs, refused), refused.ID
	same()
	must(t, s.Check(bg, func(id session.ID, err error) { t.Errorf("%s: %v", id, err) }))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		for err = nil; err == nil; {
			_, err = f.Write(bytes.Repeat([]byte("x"), size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

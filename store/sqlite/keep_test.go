package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"goclaw/session"
)

// A write-ahead log that is damaged in the middle is copied before SQLite drops
// what follows the damage, and every record can be recovered from the copy.
func TestDamagedLogIsKept(t *testing.T) {
	for name, off := range map[string]int64{"a frame": 60_000, "the header": 20} {
		t.Run(name, func(t *testing.T) {
			s := at(t, filepath.Join(t.TempDir(), "s.db"))
			want := talk(t, s, "s1", 1)
			for i := range 60 {
				r := session.Record{Seq: want[len(want)-1].Seq + 1, ID: string(rune('A' + i)), Parent: want[len(want)-1].ID, Time: want[0].Time, Body: want[1].Body}
				must(t, s.Append(bg, "s1", r))
				want = append(want, r)
			}
			// As a killed process leaves it.
			path := filepath.Join(t.TempDir(), "s.db")
			for _, end := range []string{"", "-wal"} {
				data, err := os.ReadFile(s.path + end)
				must(t, err)
				if end != "" {
					data[off] ^= 0xff
				}
				must(t, os.WriteFile(path+end, data, 0o600))
			}
			var kept string
			damaged, err := Open(path, OnCopy(func(p string) { kept = p }))
			must(t, err)
			must(t, damaged.Close())
			if kept == "" {
				t.Fatal("no copy was made")
			}
			into := at(t, filepath.Join(t.TempDir(), "new.db"))
			_, err = Recover(bg, kept, into, nil)
			must(t, err)
			n := 0
			for _, err := range into.Read(bg, "s1", 0) {
				must(t, err)
				n++
			}
			if n != len(want) {
				t.Errorf("%d records of %d are in the copy", n, len(want))
			}
		})
	}
}

// A log that is whole is not copied, also while another process writes to it.
func TestWholeLogIsNotCopied(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "s.db"))
	talk(t, s, "s1", 50)
	again, err := Open(s.path, OnCopy(func(p string) { t.Errorf("a copy was made: %s", p) }))
	must(t, err)
	must(t, again.Close())
}

// A database of which most is missing is opened for reading, and whoever opens
// it is told that it is damaged; so is Check.
func TestDamageIsTold(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "s.db"))
	talk(t, s, "s1", 50)
	must(t, s.Close())
	must(t, os.Truncate(s.path, 4096))
	var told error
	cut, err := Open(s.path, OnDamage(func(err error) { told = err }))
	must(t, err)
	defer cut.Close()
	if told == nil {
		t.Error("nobody was told")
	}
	found := 0
	must(t, cut.Check(bg, func(session.ID, error) { found++ }))
	if found == 0 {
		t.Error("Check reports nothing")
	}
}

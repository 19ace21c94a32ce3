package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// fullDisk is a disk that can be full.
type fullDisk struct {
	disk
	why error // of every write; nil: there is space
}

func (d *fullDisk) open(name string, flag int) (file, error) {
	f, err := d.disk.open(name, flag)
	if err != nil {
		return nil, err
	}
	return &fullFile{f, d, name}, nil
}

type fullFile struct {
	file
	d    *fullDisk
	name string
}

func (f *fullFile) Write(b []byte) (int, error) {
	if f.d.why != nil {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: f.d.why}
	}
	return f.file.Write(b)
}

// An append to a full disk names the folder and leaves the log as it was. With
// space again, it succeeds.
func TestFullDisk(t *testing.T) {
	for _, why := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		t.Run(fmt.Sprint(why), func(t *testing.T) {
			d := &fullDisk{disk: osDisk{}}
			dir := t.TempDir()
			s, err := open(dir, Options{}, d)
			must(t, err)
			defer s.Close()
			recs := sessiontest.Log(session.Header{Version: session.Version, ID: "s1", Key: "k"}, sessiontest.User("one"), sessiontest.User("two"))
			must(t, s.Append(t.Context(), "s1", recs[:2]...))
			d.why = why
			err = s.Append(t.Context(), "s1", recs[2])
			if !errors.Is(err, session.ErrFull) || !errors.Is(err, why) {
				t.Errorf("append: %v, want one that wraps %v and %v", err, session.ErrFull, why)
			}
			if want := "no space left on the disk of " + dir + ": free some and try again"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("append: %v, want %q", err, want)
			}
			d.why = nil
			must(t, s.Append(t.Context(), "s1", recs[2]))
			if got, _ := readAll(t, s, "s1"); len(got) != 3 {
				t.Errorf("%d records, want 3", len(got))
			}
		})
	}
}

package storetest

import (
	"bufio"
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"goclaw/internal/codec"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

func TestMain(m *testing.M) {
	open := openDiary
	if len(os.Args) > 3 && strings.HasSuffix(os.Args[3], "hasty") {
		open = func(dir string) (session.Store, error) { return newDiary(dir, true) }
	}
	Main(m, open)
}

// diary is a store in memory that also writes a file, for one process: the least
// that survives a kill. If hasty, Append returns before it writes.
type diary struct {
	*memory.Store
	mu    sync.Mutex
	file  *os.File
	hasty bool
	late  []byte
}

func openDiary(dir string) (session.Store, error) { return newDiary(dir, false) }

func newDiary(dir string, hasty bool) (*diary, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "diary"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	d := &diary{Store: memory.New(), file: f, hasty: hasty}
	// An entry is a line: the id, a space, and lines joined by \x00.
	in, good := bufio.NewReader(f), int64(0)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		good += int64(len(line))
		id, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		last := session.Seq(0)
		if in, err := session.Stat(context.Background(), d.Store, session.ID(id)); err == nil {
			last = in.Last
		}
		var batch []session.Record
		for _, l := range bytes.Split(rest, []byte{0}) {
			recs, err := codec.Native.Decode(l)
			if err != nil {
				return nil, err
			}
			for _, r := range recs {
				last++
				r.Seq = last
				batch = append(batch, r)
			}
		}
		if err := d.Store.Append(context.Background(), session.ID(id), batch...); err != nil {
			return nil, err
		}
	}
	if err := f.Truncate(good); err != nil {
		return nil, err
	}
	_, err = f.Seek(good, 0)
	return d, err
}

func (d *diary) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.Store.Append(ctx, id, recs...); err != nil {
		return err
	}
	var lines [][]byte
	for _, r := range recs {
		l, err := codec.Native.Encode(r)
		if err != nil {
			return err
		}
		lines = append(lines, l)
	}
	entry := append(append([]byte(string(id)+" "), bytes.Join(lines, []byte{0})...), '\n')
	if d.hasty {
		entry, d.late = d.late, entry
	}
	_, err := d.file.Write(entry)
	return err
}

func (d *diary) Close() error { d.file.Close(); return d.Store.Close() }

func TestKillingIsSurvived(t *testing.T) {
	k := newKilling(openDiary, t.TempDir())
	for range 5 {
		if err := k.once(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.settle(); err != nil {
		t.Fatal(err)
	}
	if k.records == 0 {
		t.Error("nothing was written")
	}
}

func TestKillingFindsWhatIsLost(t *testing.T) {
	k := newKilling(func(dir string) (session.Store, error) { return newDiary(dir, true) }, filepath.Join(t.TempDir(), "hasty"))
	var err error
	for range 5 {
		if err = k.once(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "durable records are lost") {
		t.Errorf("a store that returns before it writes gives %v", err)
	}
}

func newKilling(open Opener, dir string) *killing {
	return &killing{open: open, dir: dir, rng: rand.New(rand.NewPCG(1, 2)), acked: map[session.ID][]string{}}
}

// A record shows by its text whether it is whole.
func TestWholeSeesTornText(t *testing.T) {
	r := session.Record{Seq: 2, ID: "a"}
	for text, ok := range map[string]bool{"a 3 xxx": true, "a 0 ": true, "a 3 xx": false, "b 3 xxx": false, "a 3 xyx": false, "": false, "a 3": false} {
		r.Body = session.Message{Message: llm.UserText(text)}
		if got := whole(r) == nil; got != ok {
			t.Errorf("whole(%q) = %v, want %v", text, got, ok)
		}
	}
}

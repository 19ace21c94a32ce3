package storetest

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// soak is how long the tests with processes run.
var soak = flag.Duration("soak", 0, "how long each test with processes runs; 0: a short time")

// Main runs the tests of a store, in place of m.Run:
//
//	func TestMain(m *testing.M) { storetest.Main(m, open) }
//
// Processes starts the test binary again, as a child that Main recognises.
func Main(m *testing.M, open Opener) { os.Exit(Code(m, open)) }

// Code is Main for a TestMain that has something to do at the end. It returns the
// exit code, also that of a child.
func Code(m *testing.M, open Opener) int {
	if len(os.Args) > 3 && os.Args[1] == childArg {
		if err := child(open, os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	return m.Run()
}

const childArg = "storetest-child"

// Processes tests with real processes: appended records survive SIGKILL, 200
// times in all (40 on a server); two processes can append to one log; two that
// load a key at once load one session; a lock ends with its process. With -soak
// each test runs for that long.
func Processes(t *testing.T, open Opener) {
	t.Run("killed", func(t *testing.T) {
		// Several stores at once: most of the time is waiting.
		const stores = 4
		kills, end := 200, time.Now().Add(*soak)
		if st, err := open(t.TempDir()); err != nil {
			t.Fatal(err)
		} else {
			if _, ok := st.(Settler); ok { // what is written is the server's, which is not killed
				kills = 40
			}
			must(t, st.Close())
		}
		if testing.Short() {
			kills /= 5
		}
		var left, done atomic.Int64
		left.Store(int64(kills))
		var wg sync.WaitGroup
		for i := range stores {
			k := &killing{open: open, dir: t.TempDir(), rng: rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano()))), acked: map[session.ID][]string{}}
			wg.Go(func() {
				for left.Add(-1) >= 0 || time.Now().Before(end) {
					if err := k.once(); err != nil {
						t.Errorf("store %d, kill %d: %v", i, k.runs, err)
						return
					}
					done.Add(1)
				}
				sum, err := k.settle()
				if err != nil {
					t.Errorf("store %d: %v", i, err)
				}
				t.Logf("store %d, %d kills: %s", i, k.runs, sum)
			})
		}
		wg.Wait()
		if n := done.Load(); n < int64(kills) {
			t.Errorf("%d kills, want %d", n, kills)
		}
	})
	t.Run("together", func(t *testing.T) {
		long := 1500 * time.Millisecond
		if testing.Short() {
			long /= 3
		}
		sum, err := together(open, t.TempDir(), max(long, *soak))
		if err != nil {
			t.Fatal(err)
		}
		t.Log(sum)
	})
	t.Run("one session of a key", func(t *testing.T) { must(t, met(open, t.TempDir())) })
	t.Run("lock", func(t *testing.T) { must(t, held(open, t.TempDir())) })
}

// child is what the test binary does when Processes starts it.
func child(open Opener, what, dir string, args []string) error {
	st, err := open(dir)
	if err != nil {
		return err
	}
	switch what {
	case "write":
		return write(st, args[0])
	case "contend":
		var over atomic.Bool
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			over.Store(true)
		}()
		w := &writer{st: st, id: "shared", name: args[0]}
		for !over.Load() {
			id, err := w.append()
			if err != nil {
				return err
			}
			fmt.Println("ack shared", id)
			if _, ok := st.(Settler); ok {
				// Between the look at a log and an append to it lies a way to the
				// server and back: who never pauses would always be faster than the other.
				time.Sleep(rand.N(2 * time.Millisecond))
			}
		}
		return st.Close()
	case "load":
		at, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return err
		}
		for i := range meetings {
			key := session.Key(fmt.Sprint("x:y:", i))
			time.Sleep(time.Until(time.UnixMilli(at).Add(time.Duration(i) * 10 * time.Millisecond)))
			s, err := session.Load(bg, st, key, session.System{})
			if err != nil {
				return err
			}
			fmt.Println("loaded", key, s.ID)
		}
		return st.Close()
	case "hold":
		if _, err := st.Lock(bg, "s1", "the child"); err != nil {
			return err
		}
		fmt.Println("held")
		time.Sleep(time.Hour) // not select {}, which panics if nothing else runs
	}
	return fmt.Errorf("storetest: a child cannot %q", what)
}

// writers is how many sessions a child writes to at once.
const writers = 4

// write appends to several sessions as fast as it can, until it is killed, and
// prints the id of each record that is durable.
func write(st session.Store, run string) error {
	errs := make(chan error)
	for w := range writers {
		go func() {
			id := session.ID(fmt.Sprintf("w%d", w))
			rng := rand.New(rand.NewPCG(uint64(w), uint64(len(run))<<32+uint64(time.Now().UnixNano())))
			in, err := session.Stat(bg, st, id)
			if errors.Is(err, session.ErrNotFound) {
				err = st.Append(bg, id, header(id, session.Key(id)))
				in.Last = 1
			}
			for n := 0; err == nil; {
				var batch []session.Record
				var acks strings.Builder
				for range 1 + rng.IntN(3)*rng.IntN(3) {
					rid := fmt.Sprintf("%s-%d-%d", run, w, n)
					n++
					batch = append(batch, session.Record{Seq: in.Last + 1, ID: rid, Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User(speech(rid, rng))})
					in.Last, in.Leaf = in.Last+1, rid
					fmt.Fprintf(&acks, "ack %s %s\n", id, rid)
				}
				if err = st.Append(bg, id, batch...); err == nil {
					_, err = os.Stdout.WriteString(acks.String())
				}
			}
			errs <- fmt.Errorf("%s, which has no other writer: %w", id, err)
		}()
	}
	return <-errs
}

// speech returns a text that shows whether it is whole: the id, a length, and
// that many letters.
func speech(id string, rng *rand.Rand) string {
	n := rng.IntN(2000)
	if rng.IntN(16) == 0 {
		n = rng.IntN(100_000)
	}
	return fmt.Sprintf("%s %d %s", id, n, strings.Repeat("x", n))
}

func whole(r session.Record) error {
	m, _ := r.Body.(session.Message)
	part := strings.SplitN(m.Text(), " ", 3)
	if len(part) != 3 || part[0] != r.ID || part[1] != strconv.Itoa(len(part[2])) || strings.Trim(part[2], "x") != "" {
		return fmt.Errorf("record %d, %q, is torn: %.60q", r.Seq, r.ID, m.Text())
	}
	return nil
}

// start runs the test binary as a child and calls each with its lines until it
// ends.
func start(each func(line string), args ...string) (cmd *exec.Cmd, done <-chan error, err error) {
	return startWith(nil, each, args...)
}

// startWith is start with an input for the child.
func startWith(stdin *os.File, each func(line string), args ...string) (cmd *exec.Cmd, done <-chan error, err error) {
	cmd = exec.Command(os.Args[0], append([]string{childArg}, args...)...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			each(lines.Text())
		}
		_, _ = io.Copy(io.Discard, out)
		err := cmd.Wait()
		if stderr.Len() > 0 {
			err = fmt.Errorf("the child failed: %s", strings.TrimSpace(stderr.String()))
		}
		end <- err
	}()
	return cmd, end, nil
}

// killing is a store whose writers are killed.
type killing struct {
	open  Opener
	dir   string
	rng   *rand.Rand
	runs  int
	acked map[session.ID][]string // the ids that are durable, in order
	seen  map[session.ID]session.Seq
	// for the report
	records, unacked, damage int
}

// once lets a child write, kills it at a random moment, and looks for its
// durable records.
func (k *killing) once() error {
	k.runs++
	first := make(chan struct{})
	var once sync.Once
	cmd, done, err := start(func(line string) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "ack" {
			k.acked[session.ID(f[1])] = append(k.acked[session.ID(f[1])], f[2])
			once.Do(func() { close(first) })
		}
	}, "write", k.dir, fmt.Sprintf("r%d", k.runs))
	if err != nil {
		return err
	}
	select {
	case <-first:
	case err := <-done:
		return fmt.Errorf("the child ended before its first record: %v", err)
	case <-time.After(soon):
		_ = cmd.Process.Kill()
		<-done
		return errors.New("the child wrote nothing")
	}
	// Some are killed at once, in an empty store or during recovery.
	time.Sleep(time.Duration(k.rng.Int64N(int64(35 * time.Millisecond))))
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("the child ended by itself: %v", <-done)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "signal: killed") {
		return fmt.Errorf("the child was not killed: %v", err)
	}
	return k.look()
}

// Settler is a store on a server: Settle waits until the server has finished what
// processes that were killed had sent to it.
type Settler interface {
	Settle() error
}

// look opens the store and checks the records since the last look.
func (k *killing) look() error {
	st, err := k.open(k.dir)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer st.Close()
	if st, ok := st.(Settler); ok {
		if err := st.Settle(); err != nil {
			return err
		}
	}
	if k.seen == nil {
		k.seen = map[session.ID]session.Seq{}
	}
	listed := map[session.ID]session.Seq{} // before a read could repair anything
	for in, err := range st.List(bg, session.Query{}) {
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		listed[in.ID] = in.Last
	}
	for id, want := range k.acked {
		leaf, last := "", k.seen[id]
		for r, err := range st.Read(bg, id, last) {
			var d *session.Damage
			if errors.As(err, &d) {
				continue // a torn end, which was not acknowledged
			}
			if err != nil {
				return fmt.Errorf("read of %s: %w", id, err)
			}
			if r.Seq != last+1 {
				return fmt.Errorf("%s: record %d follows record %d", id, r.Seq, last)
			}
			last = r.Seq
			if r.Seq == 1 {
				continue
			}
			if err := whole(r); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			if leaf != "" && r.Parent != leaf {
				return fmt.Errorf("%s: record %d continues %q, not %q", id, r.Seq, r.Parent, leaf)
			}
			leaf = r.ID
			if len(want) > 0 && want[0] == r.ID {
				want = want[1:]
			} else {
				k.unacked++ // written, but killed before it was printed
			}
			k.records++
		}
		if len(want) > 0 {
			return fmt.Errorf("%s: %d durable records are lost or out of order, the first is %s", id, len(want), want[0])
		}
		if listed[id] != last {
			return fmt.Errorf("%s: the log has %d records, the list says %d", id, last, listed[id])
		}
		k.acked[id], k.seen[id] = nil, last
	}
	return st.Close()
}

// settle reads everything once more.
func (k *killing) settle() (string, error) {
	st, err := k.open(k.dir)
	if err != nil {
		return "", err
	}
	defer st.Close()
	for id, last := range k.seen {
		s, err := session.Replay(id, st.Read(bg, id, 0))
		if err != nil {
			return "", err
		}
		if s.Last != last || int64(len(s.Branch)) != int64(last)-1 {
			return "", fmt.Errorf("%s: %d records were there, now %d, of which %d are on the branch", id, last, s.Last, len(s.Branch))
		}
		k.damage += len(s.Damage)
		if err := sameAsReplay(st, id); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d records are there, %d of them unacknowledged; %d torn lines", k.records, k.unacked, k.damage), nil
}

// together lets two processes append to one log for d, while this one follows.
func together(open Opener, dir string, d time.Duration) (string, error) {
	st, err := open(dir)
	if err != nil {
		return "", err
	}
	defer st.Close()
	if err := st.Append(bg, "shared", header("shared", "k")); err != nil {
		return "", err
	}
	// Both go on until this is closed.
	goOn, over, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer goOn.Close()
	defer over.Close()
	acks := make([][]string, 2)
	ends := make([]<-chan error, 2)
	var wrote [2]atomic.Int64
	for i := range acks {
		_, ends[i], err = startWith(goOn, func(line string) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "ack" {
				acks[i] = append(acks[i], f[2])
				wrote[i].Add(1)
			}
		}, "contend", dir, fmt.Sprintf("p%d", i))
		if err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	followed := make(chan error, 1)
	seen := session.Seq(0)
	go func() {
		for r, err := range session.Follow(ctx, st, "shared", 0) {
			if err != nil || r.Seq != seen+1 {
				followed <- fmt.Errorf("a follower sees record %d after record %d: %v", r.Seq, seen, err)
				return
			}
			seen = r.Seq
		}
		followed <- nil
	}()
	// For d, and for longer where one was slow to start, or the machine has paused
	// it: one that starves does not get its share in the end either.
	for start, both := time.Now(), time.Now(); time.Since(start) < d+soon; time.Sleep(10 * time.Millisecond) {
		a, b := wrote[0].Load(), wrote[1].Load()
		if min(a, b) == 0 {
			both = time.Now()
		}
		if time.Since(both) > d && min(a, b)*25 >= a+b {
			break
		}
		if len(ends[0])+len(ends[1]) > 0 {
			break // one has failed
		}
	}
	if err := over.Close(); err != nil {
		return "", err
	}
	for i, end := range ends {
		if err := <-end; err != nil {
			return "", fmt.Errorf("process %d: %w", i, err)
		}
	}
	cancel()
	if err := <-followed; err != nil {
		return "", err
	}
	durable := map[string]bool{}
	for i, ids := range acks {
		if len(ids)*50 < len(acks[0])+len(acks[1]) {
			return "", fmt.Errorf("process %d wrote %d records of %d: it starves", i, len(ids), len(acks[0])+len(acks[1]))
		}
		for _, id := range ids {
			durable[id] = true
		}
	}
	n, leaf := 0, ""
	for r, err := range st.Read(bg, "shared", 1) {
		if err != nil {
			return "", err
		}
		if !durable[r.ID] || r.Parent != leaf {
			return "", fmt.Errorf("record %d, %q after %q, is repeated, torn or unknown", r.Seq, r.ID, leaf)
		}
		delete(durable, r.ID)
		leaf = r.ID
		n++
	}
	if len(durable) > 0 {
		return "", fmt.Errorf("%d of %d durable records are lost", len(durable), n+len(durable))
	}
	if seen == 0 || seen > session.Seq(n)+1 {
		return "", fmt.Errorf("a follower saw %d of %d records", seen, n+1)
	}
	return fmt.Sprintf("%d and %d records in %v", len(acks[0]), len(acks[1]), d), sameAsReplay(st, "shared")
}

// meetings is how many keys two processes load at once.
const meetings = 25

// met lets two processes load keys that have no session at the same moment: both
// must get the same session.
func met(open Opener, dir string) error {
	st, err := open(dir)
	if err != nil {
		return err
	}
	defer st.Close()
	at := fmt.Sprint(time.Now().Add(300 * time.Millisecond).UnixMilli())
	loaded := make([]map[string]string, 2)
	ends := make([]<-chan error, 2)
	for i := range loaded {
		loaded[i] = map[string]string{}
		_, ends[i], err = start(func(line string) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "loaded" {
				loaded[i][f[1]] = f[2]
			}
		}, "load", dir, at)
		if err != nil {
			return err
		}
	}
	for i, end := range ends {
		if err := <-end; err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
	}
	for i := range meetings {
		key := fmt.Sprint("x:y:", i)
		n := 0
		for _, err := range st.List(bg, session.Query{Key: session.Key(key)}) {
			if err != nil {
				return err
			}
			n++
		}
		if a, b := loaded[0][key], loaded[1][key]; n != 1 || a != b || a == "" {
			return fmt.Errorf("two processes loaded %s as %q and %q; it has %d sessions", key, a, b, n)
		}
	}
	return nil
}

// held tests that the lock of another process is seen and ends with it.
func held(open Opener, dir string) error {
	st, err := open(dir)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Append(bg, "s1", header("s1", "k")); err != nil {
		return err
	}
	ready := make(chan struct{})
	cmd, done, err := start(func(line string) {
		if line == "held" {
			close(ready)
		}
	}, "hold", dir)
	if err != nil {
		return err
	}
	select {
	case <-ready:
	case err := <-done:
		return fmt.Errorf("the child did not get the lock: %v", err)
	}
	_, err = st.Lock(bg, "s1", "the parent")
	var h *session.HeldError
	if !errors.As(err, &h) || h.PID != cmd.Process.Pid || h.Who != "the child" || h.Name != "s1" {
		return fmt.Errorf("a lock held by process %d gives %v", cmd.Process.Pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	<-done
	release, err := st.Lock(bg, "s1", "the parent")
	if err != nil {
		return fmt.Errorf("the lock of a killed process is still held: %w", err)
	}
	release()
	return nil
}

package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goclaw/session"
)

// TestMain makes the test binary the other process.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCK_PATH"); path != "" {
		if _, err := Try(path, "the child"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		time.Sleep(time.Minute)
		return
	}
	os.Exit(m.Run())
}

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks", "a.lock")
	release, err := Try(path, "the repl")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Try(path, "another")
	var held *session.HeldError
	if !errors.As(err, &held) || held.Who != "the repl" || held.PID != os.Getpid() || time.Since(held.Since).Abs() > time.Minute {
		t.Fatalf("second try: %v (%+v), want held by the repl", err, held)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if st, err := os.Stat(p); err != nil || st.Mode() != want {
			t.Errorf("%s has mode %v (%v), want %v", p, st.Mode(), err, want)
		}
	}
	release()
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("%d files are left after release", len(left))
	}
	again, err := Try(path, "the next")
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	release() // must not release the lock of another
	if _, err := Try(path, "a third"); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a late release let a third in: %v", err)
	}
	again()
}

// A lock on a file that its holder has just removed locks nothing.
func TestTryIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	var in, wins atomic.Int32
	var wg sync.WaitGroup
	end := time.Now().Add(time.Minute) // for more tries, if the machine pauses whoever has the lock
	for w := range 8 {
		wg.Go(func() {
			for i := 0; i < 300 || wins.Load() < 100 && time.Now().Before(end); i++ {
				release, err := Try(path, fmt.Sprint("worker ", w))
				if errors.Is(err, session.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := in.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				wins.Add(1)
				in.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
	if wins.Load() < 100 {
		t.Errorf("only %d tries won", wins.Load())
	}
}

func TestKilledProcessReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "LOCK_PATH="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the child says %q", line)
	}
	_, err = Try(path, "the parent")
	var held *session.HeldError
	if !errors.As(err, &held) || held.Who != "the child" || held.PID != cmd.Process.Pid {
		t.Fatalf("while the child lives: %v (%+v)", err, held)
	}
	cmd.Process.Kill()
	cmd.Wait()
	release, err := Try(path, "the parent")
	if err != nil {
		t.Fatalf("after the child was killed: %v", err)
	}
	release()
}

// Wait and Try see each other, and a Wait ends with its context.
func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	if _, err := Wait(t.Context(), filepath.Join(path, "none", "a.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that does not exist: %v, want %v", err, fs.ErrNotExist)
	}
	unlock, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path, "another"); !errors.Is(err, session.ErrHeld) {
		t.Errorf("Try of a locked file: %v, want %v", err, session.ErrHeld)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Wait(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait for a locked file: %v, want %v", err, context.DeadlineExceeded)
	}
	// Whoever removes a locked file gives up the lock on its name.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if _, err := Try(path, "another"); !errors.Is(err, session.ErrHeld) {
		t.Errorf("unlocking the removed file unlocked the new one: %v", err)
	}
	again()
}

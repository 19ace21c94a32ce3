package hold

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goclaw/session"
)

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	if path := os.Getenv("HOLD_PATH"); path != "" {
		if _, err := Try(path, "the child"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
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
	release() // must not release what is another's now
	if _, err := Try(path, "a third"); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a late release let a third in: %v", err)
	}
	again()
}

// A lock taken on a file that its holder is just removing holds nothing.
func TestTryIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	var in, wins atomic.Int32
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for range 300 {
				release, err := Try(path, fmt.Sprint("hand ", w))
				if errors.Is(err, session.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := in.Add(1); n != 1 {
					t.Errorf("%d hands at once", n)
				}
				wins.Add(1)
				in.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
	if wins.Load() < 100 {
		t.Errorf("only %d of 2400 tries won", wins.Load())
	}
}

func TestKilledHolderLetsGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "HOLD_PATH="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
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

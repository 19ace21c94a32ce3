package wholefile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// All of them wait for each other, and a busy machine's disk is slow.
func init() { patience = time.Minute }

// TestUpdatesAreNotLost: several processes, each with several goroutines, add
// lines to one file.
func TestUpdatesAreNotLost(t *testing.T) {
	const processes, routines, updates = 3, 4, 10
	add := func(path, who string) {
		var wg sync.WaitGroup
		for i := range routines {
			wg.Go(func() {
				for k := range updates {
					err := Update(path, func(old []byte) ([]byte, error) { return fmt.Appendf(old, "%s.%d.%d\n", who, i, k), nil })
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	if path := os.Getenv("WHOLEFILE_UPDATE"); path != "" {
		add(path, fmt.Sprint(os.Getpid()))
		return
	}
	path := filepath.Join(t.TempDir(), "state", "file")
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestUpdatesAreNotLost$")
			cmd.Env = append(os.Environ(), "WHOLEFILE_UPDATE="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	if n := strings.Count(string(data), "\n"); err != nil || n != processes*routines*updates {
		t.Errorf("%d updates are there (%v), want %d", n, err, processes*routines*updates)
	}
	if fi, err := os.Stat(path + ".lock"); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the lock is %v (%v)", fi, err)
	}
}

func TestUpdateMayLeaveTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("wrong")
	for _, want := range []error{nil, wrong} {
		if err := Update(path, func([]byte) ([]byte, error) { return nil, want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "old" {
		t.Errorf("the file has %q (%v)", data, err)
	}
}

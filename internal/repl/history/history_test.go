package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines are forgotten in place: others add to the file at the same time, and
// none of theirs is lost.
func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if n, err := Forget(path, func(string) bool { return true }); n != 0 || err != nil {
		t.Fatalf("a missing file: %d, %v", n, err)
	}
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := h.Add(fmt.Sprintf("my secret %d", i)); err != nil {
			t.Fatal(err)
		}
		if err := h.Add(fmt.Sprintf("stays %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		other, err := Open(path)
		for i := range 300 {
			err = errors.Join(err, other.Add(fmt.Sprintf("added %d", i)))
		}
		done <- err
	}()
	n, err := Forget(path, func(s string) bool { return strings.HasPrefix(s, "my secret") })
	if n != 200 || err != nil {
		t.Errorf("Forget: %d, %v", n, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("secret")) {
		t.Errorf("the file still holds it: %v", err)
	}
	again, err := Open(path)
	if err != nil || len(again.Lines()) != 500 {
		t.Errorf("%d lines are left, %v; want 500", len(again.Lines()), err)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"one", "two\nlines \x1b", " secret", "", "two\nlines \x1b", "three", strings.Repeat("x", maxEntry+1)} {
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"one", "two\nlines \x1b", "three"}
	if d := cmp.Diff(want, h.Lines()); d != "" {
		t.Errorf("in memory (-want +got):\n%s", d)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, again.Lines()); d != "" {
		t.Errorf("from the file (-want +got):\n%s", d)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, want 0600", st.Mode().Perm())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	b.WriteString("not json\n")
	for i := range 2*maxHistory + 10 {
		b.WriteString(`"line ` + strings.Repeat("i", i%7+1) + "\"\n")
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Lines()) != maxHistory {
		t.Errorf("%d lines are remembered, want %d", len(h.Lines()), maxHistory)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != maxHistory {
		t.Errorf("the file has %d lines, want %d", got, maxHistory)
	}
}

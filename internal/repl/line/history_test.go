package line

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines are forgotten in place: others add to the file at the same time, and
// none of theirs is lost.
func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if n, err := Forget(path, func(string) bool { return true }); n != 0 || err != nil {
		t.Fatalf("a missing file: %d, %v", n, err)
	}
	h, err := OpenHistory(path)
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
		other, err := OpenHistory(path)
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
	again, err := OpenHistory(path)
	if err != nil || len(again.Lines()) != 500 {
		t.Errorf("%d lines are left, %v; want 500", len(again.Lines()), err)
	}
}

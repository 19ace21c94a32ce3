package inherit_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/session"
)

// TestTimes: a session began with the first line that has a time and was updated
// with the last one, whatever lines without a time come before and after them,
// and whenever the file was copied here.
func TestTimes(t *testing.T) {
	dir := realPrograms(t)
	st := openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, filepath.Join(dir, "claude-code"), filepath.Join(dir, "codex"))
	undated := 0
	for _, o := range rep.Outcomes {
		if o.Log != o.ID || len(o.Pieces) > 0 {
			continue // a copy, or of several files
		}
		data, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		var first, last time.Time
		for line := range strings.Lines(string(data)) {
			var l struct {
				Timestamp time.Time `json:"timestamp"`
			}
			if json.Unmarshal([]byte(line), &l) != nil || l.Timestamp.IsZero() {
				undated++
				continue
			}
			if last = l.Timestamp; first.IsZero() {
				first = last
			}
		}
		in, err := session.Stat(context.Background(), st, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		if !in.Created.Equal(first) || !in.Updated.Equal(last) {
			t.Errorf("%s: created %v, updated %v, want %v and %v", o.Path, in.Created, in.Updated, first, last)
		}
	}
	if undated < 20 {
		t.Errorf("%d lines without a time, want more of them", undated)
	}
}

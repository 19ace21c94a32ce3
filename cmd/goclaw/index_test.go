package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// TestPurgedFromEveryFile: what is removed for good is in no file any more,
// also while another process has the store open.
func TestPurgedFromEveryFile(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "jsonl"} {
		t.Run(kind, func(t *testing.T) {
			home := t.TempDir()
			put(t, home, "goclaw/config.json", `{"session": {"store": "`+kind+`"}, "inherit": {"enabled": false}}`)
			put(t, home, "secret.jsonl", strings.ReplaceAll(piSession("gone", 300, 64), "0123456789abcde", "secretword"))
			put(t, home, "other.jsonl", piSession("kept", 300, 64))
			typed(t, home, "import", filepath.Join(home, "secret.jsonl"), filepath.Join(home, "other.jsonl"))
			if kind == "sqlite" {
				st, err := sqlite.Open(filepath.Join(home, "goclaw", "sessions.db"))
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				if _, err := session.Stat(t.Context(), st, "kept"); err != nil {
					t.Fatal(err)
				}
			}
			if out := typed(t, home, "search", "secretword"); !strings.Contains(out, "secretword") {
				t.Fatalf("the word is not found:\n%s", out)
			}
			if got := holding(t, filepath.Join(home, "goclaw"), "secretword"); len(got) == 0 {
				t.Fatal("no file holds the word: the test tests nothing")
			}
			typed(t, home, "sessions", "delete", "--purge", "--yes", "gone")
			if got := holding(t, filepath.Join(home, "goclaw"), "secretword"); len(got) > 0 {
				t.Errorf("%q hold the word", got)
			}
			if out := typed(t, home, "search", "0123456789abcde"); !strings.Contains(out, "0123456789abcde") {
				t.Errorf("the other is gone as well:\n%s", out)
			}
		})
	}
}

// holding returns the files below dir that hold text.
func holding(t *testing.T, dir, text string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

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
			put(t, home, "goclaw/config.json", `{"session": {"store": "`+kind+`", "inherit": {"enabled": false}}}`)
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

// TestPurgedWithoutTheIndex: an index that cannot be opened is removed by a
// purge: it holds the words. Until then searches do without it, and making
// vectors fails.
func TestPurgedWithoutTheIndex(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	put(t, home, "goclaw/config.json", `{"session": {"inherit": {"enabled": false}}}`)
	put(t, home, "secret.jsonl", strings.ReplaceAll(piSession("gone", 300, 64), "0123456789abcde", "secretword"))
	typed(t, home, "import", filepath.Join(home, "secret.jsonl"))
	typed(t, home, "search", "secretword")
	index := filepath.Join(home, "goclaw", "index.db")
	if got := holding(t, filepath.Dir(index), "secretword"); !slices.Contains(got, index) {
		t.Fatalf("%q hold the word, not the index: the test tests nothing", got)
	}
	if err := os.Mkdir(index+"-wal", 0o700); err != nil {
		t.Fatal(err)
	}
	if out := typed(t, home, "search", "secretword"); !strings.Contains(out, "secretword") {
		t.Errorf("the word is not found:\n%s", out)
	}
	var out, errOut bytes.Buffer
	env := map[string]string{"HOME": home, "GOCLAW_HOME": filepath.Join(home, "goclaw"), "GOCLAW_NO_LOCAL": "1"}
	code := run([]string{"search", "--index"}, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] })
	if code != 1 || out.Len() > 0 || !strings.Contains(errOut.String(), index) {
		t.Errorf("search --index exits %d, says %q and %q", code, out.String(), errOut.String())
	}
	typed(t, home, "sessions", "delete", "--purge", "--yes", "gone")
	if got := holding(t, filepath.Dir(index), "secretword"); len(got) > 0 {
		t.Errorf("%q hold the word", got)
	}
}

// TestIndexOfAnOlderVersion: the index that v0.1 kept in the database of the
// sessions is removed, also if the first attempt fails. The database is v0.1's.
func TestIndexOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	put(t, home, "goclaw/config.json", `{"session": {"inherit": {"enabled": false}}}`)
	put(t, home, "goclaw/sessions.db", unzipped(t, "testdata/v0.1.db.gz"))
	db, err := sqlite3.Open(filepath.Join(home, "goclaw", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tables := func() int {
		t.Helper()
		s, _, err := db.Prepare("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'recall_*' OR sql LIKE '%recall_%'")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Step()
		return s.ColumnInt(0)
	}
	search := func() (warned bool) {
		t.Helper()
		env := map[string]string{"HOME": home, "GOCLAW_HOME": filepath.Join(home, "goclaw"), "GOCLAW_NO_LOCAL": "1"}
		var out, errOut bytes.Buffer
		code := run([]string{"search", "ferry"}, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] })
		if code != 0 || !strings.Contains(out.String(), "Norderney") {
			t.Errorf("search exits %d\n%s%s", code, &out, &errOut)
		}
		return strings.Contains(errOut.String(), "could not remove the old search index from the database")
	}
	typed(t, home, "sessions", "list")
	if tables() == 0 {
		t.Fatal("there is no index in the database: the test tests nothing")
	}
	if err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if !search() || tables() == 0 {
		t.Error("the index was removed, or nobody was told that it stays, while another process wrote")
	}
	if err := db.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if search() || tables() != 0 {
		t.Errorf("the second search leaves %d tables and triggers", tables())
	}
	typed(t, home, "sessions", "delete", "--purge", "--yes", "bread")
	if out := typed(t, home, "sessions", "list"); strings.Contains(out, "bread") || !strings.Contains(out, "ferry") {
		t.Errorf("after bread was removed:\n%s", out)
	}
}

func unzipped(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
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

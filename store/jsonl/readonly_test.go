package jsonl

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// contents returns every file below dir except locks.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	}))
	return out
}

// With read-only projections, Check reports what is wrong with them and they stay
// as they are; Rebuild repairs them.
func TestReadOnlyProjections(t *testing.T) {
	for _, y := range layouts {
		t.Run(y.String(), func(t *testing.T) {
			dir := t.TempDir()
			st := reopen(t, dir, y)
			for _, id := range []session.ID{"s1", "s2"} {
				must(t, st.Append(t.Context(), id, logOf(id, session.Key("main:cli:"+id), sessiontest.User("a"), sessiontest.Answer("b"))...))
			}
			must(t, st.Close())
			table := st.path(y.index(filepath.Dir(y.place("main:cli:s1", "s1"))))
			good, err := os.ReadFile(table)
			must(t, err)

			look := func() (said []string) {
				t.Helper()
				before := contents(t, dir)
				st, err := Open(dir, Options{Layout: y, ReadOnlyProjections: true})
				must(t, err)
				if n := len(list(t, st, session.Query{})); n != 2 {
					t.Errorf("%d sessions are listed, want 2", n)
				}
				must(t, st.Check(t.Context(), func(id session.ID, err error) { said = append(said, fmt.Sprintf("%s: %v", id, err)) }))
				must(t, st.Close())
				if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
					t.Errorf("looking has changed (-before +after)\n%s", diff)
				}
				return said
			}
			if said := look(); len(said) > 0 {
				t.Errorf("of good projections: %q", said)
			}
			is := ": " + table + " is not what the logs say: "
			rows, err := parseTable(good)
			must(t, err)
			one := "{" + string(quote(rows[0].name)) + ":" + string(rows[0].val) + "}"
			for _, c := range []struct{ what, table, want string }{
				{"gone", "", is + "2 of 2 rows missing: session: index and log differ"},
				{"a row is missing", one, is + "1 of 2 rows missing: session: index and log differ"},
				{"a row is wrong", strings.Replace(string(good), `"turns":1`, `"turns":7`, 1), is + "1 of 2 rows wrong: session: index and log differ"},
				{"a log is gone", strings.TrimSuffix(strings.TrimSpace(string(good)), "}") + `,"x":{"goclaw":{"turns":1}}}`, is + "1 of 2 rows of a log that is gone: session: index and log differ"},
			} {
				if must(t, os.Remove(table)); c.table != "" {
					must(t, os.WriteFile(table, []byte(c.table), 0o600))
				}
				if diff := cmp.Diff([]string{c.want}, look()); diff != "" {
					t.Errorf("%s (-want +got)\n%s", c.what, diff)
				}
				st, err := Open(dir, Options{Layout: y, ReadOnlyProjections: true})
				must(t, err)
				if n, err := st.Rebuild(t.Context()); n != 1 || err != nil {
					t.Errorf("%s: rebuild changed %d, %v, want 1", c.what, n, err)
				}
				must(t, st.Close())
				if said := look(); len(said) > 0 {
					t.Errorf("%s: after rebuild: %q", c.what, said)
				}
			}

			// The index of another version is ignored.
			index, err := os.ReadFile(st.proj.indexPath())
			must(t, err)
			must(t, os.WriteFile(st.proj.indexPath(), []byte("goclaw index 1\n"+string(index[20:])), 0o600))
			if said := look(); len(said) > 0 {
				t.Errorf("of an index of another version: %q", said)
			}
			must(t, os.WriteFile(st.proj.indexPath(), index, 0o600))

			// A store that has appended writes sessions.json when it is closed,
			// which may be much later.
			open := reopen(t, dir, y)
			more := sessiontest.Log(session.Header{}, sessiontest.User("a"), sessiontest.Answer("b"), sessiontest.User("c"))[3:]
			must(t, open.Append(t.Context(), "s1", more...))
			if said := look(); len(said) > 0 {
				t.Errorf("of a row that is behind: %q", said)
			}
		})
	}
}

package inherit_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/fixtures"
	"goclaw/internal/inherit"
	"goclaw/session"
	"goclaw/store/sqlite"
	"goclaw/window"
)

// unpacked returns a folder with what real programs wrote.
func unpacked(t testing.TB) string { return fixtures.Unpack(t, "testdata/fixtures.tar.zst") }

func openStore(t testing.TB, dir string) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// take finds and takes everything, also what was deleted there, and returns what
// became of each file or row.
func take(t testing.TB, st session.Store, memo *inherit.Memo, strict bool, paths ...string) (inherit.Report, *inherit.Catalogue) {
	t.Helper()
	cat, err := inherit.Find(context.Background(), paths, inherit.FindOptions{Memo: memo})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	rep, err := inherit.Import(context.Background(), st, cat, inherit.ImportOptions{Memo: memo, Strict: strict, Deleted: true})
	if err != nil {
		t.Fatal(err)
	}
	return rep, cat
}

// lines shows what a model would be sent of s.
func lines(s *session.Session, model string) []string {
	provider, name, _ := strings.Cut(model, "/")
	return fixtures.Lines(window.Build(s, window.Prompt{Provider: provider, Model: name}, window.Loose))
}

// TestContextsOfImportedFixtures takes every fixture and holds the context of
// the log that it became against what the real programs make of it: repaired
// against OpenClaw 2026.9.6, strict against pi.
func TestContextsOfImportedFixtures(t *testing.T) {
	ctx := context.Background()
	dir := unpacked(t)
	want := fixtures.Answers(t, "../../window/testdata/answers.json")
	compared := 0
	for _, strict := range []bool{false, true} {
		st := openStore(t, t.TempDir())
		rep, _ := take(t, st, nil, strict, dir)
		for _, o := range rep.Outcomes {
			if o.State != inherit.New && o.State != inherit.Copy {
				t.Errorf("%s %s: %s, %v", o.Path, o.ID, o.State, o.Err)
			}
			name := fixtures.Name(t, dir, o.Path, string(o.ID))
			for _, a := range want[name] {
				_, waived := a.Waived(name)
				if asked, held := a.Reading(name); a.Error != "" || waived || !held || strict != asked {
					continue
				}
				if strict && strings.Contains(name, "openclaw-2026.9.6") {
					continue // pi cannot read a database
				}
				compared++
				s, err := session.Open(ctx, st, o.Log)
				if err != nil {
					t.Errorf("%s: %v", o.Log, err)
					continue
				}
				got := fixtures.Acceptable(lines(s, a.Model))
				for i := range got { // the program was run from another home
					got[i] = strings.ReplaceAll(got[i], "/sb/home96import", "")
				}
				if diff := cmp.Diff(fixtures.Acceptable(a.Lines), got); diff != "" {
					t.Errorf("%s (strict %v): the context differs from %s's (-theirs +ours):\n%s", name, strict, a.Program, diff)
				}
			}
		}
	}
	t.Logf("%d contexts compared", compared)
	if compared < 150 {
		t.Errorf("%d contexts compared, want at least 150", compared)
	}
}

package inherit_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"goclaw/inherit"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/sqlite"
	"goclaw/window"
)

// fixtures unpacks what real programs wrote: their folders, files and
// databases. The large ones are added where they are at hand.
func fixtures(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open("testdata/fixtures.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
			if err == nil {
				err = os.Chtimes(path, h.ModTime, h.ModTime)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func openStore(t testing.TB, dir string) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// take finds and takes, and returns what became of each file or row.
func take(t testing.TB, st session.Store, memo *inherit.Memo, strict bool, paths ...string) (inherit.Report, *inherit.Catalogue) {
	t.Helper()
	cat, err := inherit.Find(context.Background(), paths, inherit.Options{Memo: memo})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	rep, err := inherit.Take(context.Background(), st, cat, inherit.Taking{Memo: memo, Strict: strict})
	if err != nil {
		t.Fatal(err)
	}
	return rep, cat
}

// answer is what a real program makes of a fixture; see package window.
type answer struct {
	Program, Model, Error string
	Lines                 []string
}

func answers(t *testing.T) map[string][]answer {
	t.Helper()
	data, err := os.ReadFile("../window/testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string][]answer
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// waived are the answers that package window waives, with its reasons: where
// the real program loses history, hangs or refuses, ours must not.
func waived(name, program string) bool {
	for _, w := range []string{
		"bad-timestamp-compaction openclaw", "malformed-line-in-middle openclaw", "malformed-parent-lost openclaw", "malformed-then-header openclaw",
		"nul-bytes-in-middle openclaw", "header-missing ", "header-not-first pi", "header-numeric-id pi", "header-without-id pi",
		"HANGS-PI pi", "7deb7dc9-67b2-4877-b32f-9a11ea5e468c pi", "null-line pi", "context-edit-system-usage ", "context-edit-then-compaction ",
	} {
		f, p, _ := strings.Cut(w, " ")
		base := strings.TrimSuffix(filepath.Base(name), ".jsonl")
		if strings.HasSuffix(base, f) && strings.HasPrefix(program, p) && program != "pi 1.5.0" {
			return true
		}
	}
	return false
}

// lines shows a request as answers do.
func lines(s *session.Session, model string) []string {
	provider, name, _ := strings.Cut(model, "/")
	req := window.Build(s, window.Prompt{Provider: provider, Model: name}, window.Loose)
	out := []string{}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case llm.Text:
				out = append(out, string(m.Role)+" "+b.Text)
			case llm.Image:
				out = append(out, string(m.Role)+" (image)")
			case llm.Thinking:
				out = append(out, "thinking "+b.Text)
			case llm.ToolCall:
				var args bytes.Buffer
				if json.Compact(&args, b.Args) != nil {
					args.WriteString("{}")
				}
				out = append(out, fmt.Sprintf("call %s %s %s", b.ID, b.Name, args.String()))
			case llm.ToolResult:
				text := ""
				for _, in := range b.Blocks {
					if t, ok := in.(llm.Text); ok {
						text += t.Text
					} else {
						text += "(image)"
					}
				}
				out = append(out, fmt.Sprintf("result %s %v %s", b.CallID, b.IsError, text))
			}
		}
	}
	return out
}

// renumber replaces the ids of calls by their order, and puts words before a
// context that begins with an answer.
func renumber(in []string) []string {
	ids := map[string]string{}
	out := []string{}
	if len(in) > 0 && !strings.HasPrefix(in[0], "user ") {
		out = append(out, "user (the beginning of this conversation is not shown)")
	}
	for _, l := range in {
		w := strings.SplitN(l, " ", 3)
		if w[0] == "call" && ids[w[1]] == "" {
			ids[w[1]] = fmt.Sprint("#", len(ids)+1)
		}
		if id := ids[w[1]]; id != "" && (w[0] == "call" || w[0] == "result") {
			l = w[0] + " " + id + " " + w[2]
		}
		out = append(out, l)
	}
	return out
}

// TestContextsOfImportedFixtures takes every fixture and holds the context of
// the log that it became against what the real programs make of it: healed
// against OpenClaw 2026.9.6, strict against pi.
func TestContextsOfImportedFixtures(t *testing.T) {
	ctx := context.Background()
	dir := fixtures(t)
	want := answers(t)
	compared := 0
	for _, strict := range []bool{false, true} {
		st := openStore(t, t.TempDir())
		rep, _ := take(t, st, nil, strict, dir)
		for _, o := range rep.Outcomes {
			if o.State != inherit.New && o.State != inherit.Copy {
				t.Errorf("%s %s: %s, %v", o.Path, o.ID, o.State, o.Err)
			}
			rel, _ := filepath.Rel(dir, o.Path)
			name := filepath.ToSlash(rel)
			switch filepath.ToSlash(name) {
			case "openclaw-2026.9.6/openclaw-agent.sqlite":
				name = "openclaw-2026.9.6/transcripts/" + string(o.ID) + ".jsonl"
			case "openclaw-2026.9.6-imported/openclaw-agent.sqlite":
				name = "openclaw-2026.2.1/dot-openclaw/agents/main/sessions/" + string(o.ID) + ".jsonl"
			}
			for _, a := range want[name] {
				pi := a.Program == "pi 0.73.1" || a.Program == "pi 1.5.0" && strings.HasPrefix(name, "pi-1.5.0/")
				if a.Error != "" || waived(name, a.Program) || strict != pi || !strict && a.Program != "openclaw 2026.9.6" {
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
				got := renumber(lines(s, a.Model))
				for i := range got { // the program was run from another home
					got[i] = strings.ReplaceAll(got[i], "/sb/home96import", "")
				}
				if diff := cmp.Diff(renumber(a.Lines), got); diff != "" {
					t.Errorf("%s (strict %v): the context differs from %s's (-theirs +ours):\n%s", rel, strict, a.Program, diff)
				}
			}
		}
	}
	t.Logf("%d contexts compared", compared)
	if compared < 150 {
		t.Errorf("%d contexts compared, want at least 150", compared)
	}
}

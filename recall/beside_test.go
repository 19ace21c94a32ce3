//go:build unix

package recall

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
)

// TestBeside: memory files of another program's workspace are found and read by
// the names that they have there, and nothing outside it.
func TestBeside(t *testing.T) {
	own, theirs, out := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, own+"/MEMORY.md", "Our giraffe eats acacia.\n")
	write(t, theirs+"/MEMORY.md", "Their giraffe sleeps standing.\n")
	write(t, theirs+"/memory/2026-08-01.md", "# Zoo\n\nThe giraffe moved to Basel.\n")
	write(t, theirs+"/notes/n.md", "A giraffe of the notes.\n")
	write(t, theirs+"/SOUL.md", "I am a giraffe.\n")
	write(t, theirs+"/memory/secret.md", "The giraffe's password.\n")
	write(t, out+"/far.md", "A giraffe far away.\n")
	link(t, out+"/far.md", theirs+"/memory/far.md")
	ix, err := Open(Options{
		Workspace: own, Beside: []Workspace{{Path: theirs, Name: "~/.openclaw/workspace", Memory: []string{"notes", out}}},
		Private: func(path string) bool { return strings.HasSuffix(path, "secret.md") },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	cites, missing := incomplete(t, ix, "giraffe")
	slices.Sort(cites)
	if d := cmp.Diff([]string{"MEMORY.md:1", "~/.openclaw/workspace/MEMORY.md:1", "~/.openclaw/workspace/memory/2026-08-01.md:3", "~/.openclaw/workspace/notes/n.md:1"}, cites); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
	for _, want := range []string{
		"~/.openclaw/workspace/memory/far.md was not read: it is a link that leads out of the workspace",
		"~/.openclaw/workspace/memory/secret.md cannot be read: it is private to the program",
	} {
		if !slices.Contains(missing, want) {
			t.Errorf("incomplete: %q lacks %q", missing, want)
		}
	}
	if got := run(t, ix, "memory_get", `{"file":"~/.openclaw/workspace/memory/2026-08-01.md:3"}`); got != "The giraffe moved to Basel." {
		t.Errorf("read %q", got)
	}
	if got := run(t, ix, "memory_get", `{"file":"MEMORY.md"}`); got != "Our giraffe eats acacia." {
		t.Errorf("read %q", got)
	}
	for _, name := range []string{"~/.openclaw/workspace/SOUL.md", "~/.openclaw/workspace/memory/far.md", "~/.openclaw/workspace/../x.md", theirs + "/MEMORY.md", "~/.openclaw/workspace/memory/secret.md"} {
		if got := run(t, ix, "memory_get", `{"file":"`+name+`"}`); !strings.HasPrefix(got, "failed: ") {
			t.Errorf("%s was read: %q", name, got)
		}
	}
	// A workspace that cannot be read, or is gone, costs no other one.
	if err := os.RemoveAll(theirs); err != nil {
		t.Fatal(err)
	}
	if cites, _ := incomplete(t, ix, "giraffe"); !slices.Equal(cites, []string{"MEMORY.md:1"}) {
		t.Errorf("found %q", cites)
	}
	write(t, theirs, "a file now\n")
	if cites, missing := incomplete(t, ix, "giraffe"); !slices.Equal(cites, []string{"MEMORY.md:1"}) || len(missing) != 1 {
		t.Errorf("found %q, incomplete %q", cites, missing)
	}
}

// run runs a tool of ix.
func run(t *testing.T, ix *Index, name, args string) string {
	t.Helper()
	for _, tool := range ix.Tools() {
		if tool.Spec().Name == name {
			res, err := tool.Run(context.Background(), llm.ToolCall{ID: "1", Name: name, Args: json.RawMessage(args)})
			if err != nil {
				t.Fatal(err)
			}
			if res.IsError {
				return "failed: " + res.Text()
			}
			return res.Text()
		}
	}
	return "failed: no such tool"
}

// TestMemorySearchSettings: the settings of memory_search do what OpenClaw's do.
func TestMemorySearchSettings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", strings.Join([]string{
		"The cat must not eat chicken or it gets a rash.",
		"A feline statue stands in the hall of the restriction office.",
		"Feline dietary restriction forms are in the blue folder.",
		"The boat leaves at nine.",
		"",
	}, "\n\n"))
	var set MemorySearch
	ix, err := Open(Options{Workspace: dir, Embedder: Local{}, MemorySearch: func(string) MemorySearch { return set }, Now: func() time.Time { return time.Unix(1.8e9, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if _, err := ix.Embed(context.Background()); err != nil {
		t.Fatal(err)
	}
	const args = `{"query":"feline dietary restriction"}`
	lines := func() []string { return strings.Split(run(t, ix, "memory_search", args), "\n") }
	all := lines()
	set.Limit = 1
	if got := lines(); len(all) < 2 || len(got) != 1 {
		t.Errorf("maxResults 1: %q of %q", got, all)
	}
	set = MemorySearch{MinScore: 0.6}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "blue folder") {
		t.Errorf("minScore 0.6: %q", got)
	}
	set = MemorySearch{MinScore: 1}
	if got := lines(); got[0] != "no note in the memory files fits" {
		t.Errorf("minScore 1: %q", got)
	}
	set = MemorySearch{Off: true}
	if got := run(t, ix, "memory_search", args); got != "failed: no such tool" {
		t.Errorf("off: %q", got)
	}

	// The weights move the order. Scores are from 0 to 1 and fall.
	order := func(vector, text float64) (out []int) {
		res, err := ix.Search(context.Background(), Query{Text: "feline statue restriction rash", VectorWeight: vector, TextWeight: text})
		if err != nil {
			t.Fatal(err)
		}
		last := 1.0
		for _, h := range res.Hits {
			if h.Score < 0 || h.Score > last {
				t.Errorf("weights %v and %v: the score of %s is %v, after %v", vector, text, h.Cite(), h.Score, last)
			}
			last = h.Score
			out = append(out, h.Line)
		}
		return out
	}
	words, meaning, own := order(0, 1), order(1, 0), order(0, 0)
	if slices.Equal(words, meaning) || words[0] == meaning[0] {
		t.Errorf("by words %v, by meaning %v", words, meaning)
	}
	if !slices.Equal(own, order(0.7, 0.3)) || !slices.Equal(own, order(0.35, 0.15)) {
		t.Errorf("OpenClaw's defaults give %v, ours %v", order(0.7, 0.3), own)
	}
}

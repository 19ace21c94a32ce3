package recall

import (
	"fmt"
	"strings"
	"testing"

	"goclaw/llm"
	"goclaw/session"
)

// TestSameOutput: the same error with other numbers is one hit, and so are parts
// of a file that was read again; output that says something else is not.
func TestSameOutput(t *testing.T) {
	var file []string
	for i := range 80 {
		file = append(file, fmt.Sprintf("%6d→\tfunc step%c%c() { return %q }", i+1, 'a'+i%26, 'a'+i/26, strings.Repeat(string(rune('a'+i%26)), 3+i/26)))
	}
	file[20] = "    21→\tfunc sailFerry(harbour string) error {"
	for name, c := range map[string]struct {
		query string
		texts []string
		hits  int
	}{
		"one error": {"ferry", []string{
			"tool: error: the ferry sank after 31 ms at 0xc0001 in worker 7",
			"tool: error: the ferry sank after 980 ms at 0xc0ffee1 in worker 12",
			"tool: error: the ferry sank after 4 ms at 0xc0003 in worker 9"}, 1},
		"two errors": {"ferry", []string{
			"tool: error: the ferry sank after 31 ms at 0xc0001 in worker 7",
			"tool: error: the ferry burned in the harbour of Oslo, worker 7"}, 2},
		"figures": {"ferry", []string{
			"tool: the ferry has room for 31 cars and sails at 10 daily",
			"tool: the ferry has room for 980 cars and sails at 12 daily"}, 2},
		"people's figures": {"ferry", []string{
			"user: error: the ferry sank after 31 ms at 0xc0001 in worker 7",
			"user: error: the ferry sank after 980 ms at 0xc0ffee1 in worker 12"}, 2},
		"a file read again": {"sailFerry", []string{
			"tool: " + strings.Join(file, "\n"),
			"tool: " + strings.Join(file[10:40], "\n")}, 1},
		"another file": {"sailFerry", []string{
			"tool: " + strings.Join(file, "\n"),
			"tool: " + strings.ReplaceAll(strings.Join(file[10:40], "\n"), "harbour string", "step string")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := worlds["memory"](t, Options{})
			for i, text := range c.texts {
				say(t, w, fmt.Sprintf("s%d", i), text)
			}
			res, err := w.ix.Search(t.Context(), Query{Text: c.query})
			if err != nil || len(res.Hits) != c.hits {
				t.Fatalf("%d hits, want %d: %+v, %v", len(res.Hits), c.hits, res.Hits, err)
			}
			if c.hits == 1 && len(res.Hits[0].Also) != len(c.texts)-1 {
				t.Errorf("also in %v", res.Hits[0].Also)
			}
		})
	}
}

// TestForkedOnce: what forks have copied is found once; what is said in them
// afterwards is found there.
func TestForkedOnce(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	say(t, w, "one", "user: what does the quokka eat", "assistant: the quokka eats grass and leaves, and sometimes bark too")
	s, err := session.Replay("one", w.Read(t.Context(), "one", 0))
	if err != nil {
		t.Fatal(err)
	}
	var forks []session.ID
	for i := range 3 {
		f, err := session.Fork(t.Context(), w, s, session.Key(fmt.Sprintf("main:cli:fork%d", i)), 0, session.System{})
		if err != nil {
			t.Fatal(err)
		}
		forks = append(forks, f.ID)
		rec := f.Next(session.Message{Message: llm.AssistantText(fmt.Sprintf("in this fork the quokka eats %s", []string{"apples", "carrots from the garden", "nothing at all, it sleeps"}[i]))}, session.System{})
		if err := w.Append(t.Context(), f.ID, rec); err != nil {
			t.Fatal(err)
		}
	}
	res, err := w.ix.Search(t.Context(), Query{Text: "quokka eats", Role: Assistant})
	if err != nil || len(res.Hits) != 4 {
		t.Fatalf("%d hits, %v: %+v", len(res.Hits), err, res.Hits)
	}
	if got := find(t, w.ix, Query{Text: "quokka eats grass", Session: forks[1], Role: Assistant}); len(got) != 2 {
		t.Errorf("in one fork: %v", got)
	}
}

package recall

import (
	"slices"
	"testing"

	"goclaw/llm"
	"goclaw/session"
)

// TestSourcesFirst: what a model repeats comes before its answer, a note as well
// as a message; the answers of the offline model are not found at all.
func TestSourcesFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- The locker code at the swimming pool is 4711.\n")
	w := worlds["sqlite"](t, Options{Workspace: dir})
	say(t, w, "a", "user: My sister Anna lives in Lisbon, in the Rua da Boavista.", "assistant: Nice!")
	say(t, w, "b",
		"user: where does Anna live?",
		"assistant: Anna lives: your sister Anna lives in Lisbon (a#2). Anna, Anna. Where Anna lives is where your sister Anna lives.",
		"user: and what is the code of the locker?",
		"assistant: The locker code, the code of the locker: the locker code at the swimming pool is 4711. That is the locker code.")
	before := func(query, source, answer string) {
		t.Helper()
		res, err := w.ix.Search(t.Context(), Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, h := range res.Hits {
			got = append(got, h.Cite())
			for _, later := range res.Hits[i:] {
				if (later.File == "") == (h.File == "") && later.Score > h.Score {
					t.Errorf("%q: %s scores more than %s before it", query, later.Cite(), h.Cite())
				}
			}
		}
		s, a := slices.Index(got, source), slices.Index(got, answer)
		if s < 0 || a >= 0 && a < s {
			t.Errorf("%q found %v, want %s before %s", query, got, source, answer)
		}
	}
	before("Anna lives", "a#2", "b#3")
	before("where does Anna live", "a#2", "b#3")
	before("locker code", "MEMORY.md:1", "b#5")

	answer := session.Message{Message: llm.AssistantText("In memory: the locker code is 4711"), Provider: "offline", Model: "offline"}
	if s, ok := speak(session.Record{Body: answer}); ok {
		t.Errorf("the offline model says %q", s.text)
	}
	answer.Blocks = append(answer.Blocks, llm.ToolCall{ID: "c", Name: "bash", Args: []byte(`{"command":"ls"}`)})
	if s, _ := speak(session.Record{Body: answer}); s.text != `bash {"command":"ls"}` {
		t.Errorf("of its call, %q is found", s.text)
	}
}

// What was said before an answer, and is in it, is its source; a question is none.
func TestRepeats(t *testing.T) {
	at := func(i int, role Role, text string) Hit {
		return Hit{Session: "s", Seq: session.Seq(i), Role: role, Time: start.AddDate(0, 0, i), Text: text}
	}
	for name, c := range map[string]struct {
		hits []Hit
		want []session.Seq
	}{
		"said before":       {[]Hit{at(9, Assistant, "You said that the boat is blue and old."), at(2, User, "the boat is blue and old")}, []session.Seq{2, 9}},
		"said later":        {[]Hit{at(2, Assistant, "You said that the boat is blue and old."), at(9, User, "the boat is blue and old")}, []session.Seq{2, 9}},
		"other words":       {[]Hit{at(9, Assistant, "You said that the boat is blue and old."), at(2, User, "the boat is blue and new")}, []session.Seq{9, 2}},
		"too short to tell": {[]Hit{at(9, Assistant, "You said that the boat is blue and old."), at(2, User, "is blue")}, []session.Seq{9, 2}},
		"a question":        {[]Hit{at(9, Assistant, "You asked: is the boat blue and old? Yes."), at(2, User, "is the boat blue and old?")}, []session.Seq{9, 2}},
		"a user repeats":    {[]Hit{at(9, User, "I said that the boat is blue and old."), at(2, User, "the boat is blue and old")}, []session.Seq{9, 2}},
		"cited":             {[]Hit{at(9, Assistant, "It is blue (s#2)."), at(5, User, "something else"), at(2, User, "the boat is blue")}, []session.Seq{2, 9, 5}},
		"another is cited":  {[]Hit{at(9, Assistant, "It is blue (s#22)."), at(2, User, "the boat is blue")}, []session.Seq{9, 2}},
		"twice":             {[]Hit{at(9, Assistant, "Blue (s#8)."), at(8, Assistant, "Blue (s#2)."), at(2, User, "the boat is blue")}, []session.Seq{2, 8, 9}},
	} {
		sourcesFirst(c.hits)
		var got []session.Seq
		for _, h := range c.hits {
			got = append(got, h.Seq)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

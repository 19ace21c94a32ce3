package recall

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// chatter is what is said besides, about this and that.
var chatter = []string{
	"user: The deploy failed because the disk of the build server was full.",
	"assistant: Sure, I will rename the function and update the tests.",
	"user: We moved the standup to 10:30 because Anna drops off her kids.",
	"assistant: The flight to Lisbon leaves at 7:15 from terminal 2.",
	"user: Rent goes up to 1200 euros from October.",
	"assistant: Noted. Use tabs, not spaces, in Go files.",
}

// TestByMeaning: a message and a note are found that share no word with the
// question, by the vectors of the model that is part of the program.
func TestByMeaning(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- The user likes tea.\n- Miso the cat must not eat chicken: the vet says she is allergic.\n- Grandma's apple pie needs a pinch of cardamom.\n")
	w := worlds["sqlite"](t, Options{Workspace: dir, Embedder: Local{}})
	say(t, w, "a", append(slices.Clone(chatter), "user: Our cat is allergic to poultry, so buy only the salmon food.")...)
	say(t, w, "b", chatter...)
	const question = "feline dietary restriction"
	if got := find(t, w.ix, Query{Text: question}); len(got) != 0 {
		t.Errorf("without vectors, %q finds %v", question, got)
	}
	if _, err := w.ix.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := func(when string, q Query, cites ...string) Result {
		t.Helper()
		q.Text = question
		res, err := w.ix.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range res.Hits {
			got = append(got, h.Cite())
			if !h.Near {
				t.Errorf("%s: %s is not marked as near", when, h.Cite())
			}
		}
		if !slices.Equal(got, cites) {
			t.Errorf("%s: found %v, want %v", when, got, cites)
		}
		return res
	}
	res := want("both", Query{}, "a#8", "MEMORY.md:2")
	if res.Near {
		t.Error("what says the same in other words is only near")
	}
	if res.Vectors != 1 || res.Words {
		t.Errorf("found by vectors alone, but %.0f of them were compared, by words only: %v", res.Vectors, res.Words)
	}
	// Filters hold for what is found by its vector.
	want("a session", Query{Session: "a"}, "a#8")
	want("another session", Query{Session: "b"})
	want("a role", Query{Role: Assistant, Sessions: true})
	want("earlier", Query{Until: start.Add(time.Minute), Sessions: true})
	want("memory", Query{Memory: true}, "MEMORY.md:2")
	want("the question itself", Query{Sessions: true, without: "a", seq: 8})
	// What is deleted is not found.
	write(t, dir+"/MEMORY.md", "- The user likes tea.\n")
	want("a note removed", Query{}, "a#8")
	if err := w.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want("in the trash", Query{})
}

// TestEmbedBefore: a search that nothing else answers makes vectors that are
// missing first, and says how many are missing then; one that words answer
// does not wait for them.
func TestEmbedBefore(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- Miso the cat must not eat chicken: the vet says she is allergic.\n")
	w := worlds["sqlite"](t, Options{Workspace: dir, Embedder: Local{}})
	w.ix.vectors.slack = time.Minute // for the one batch that there is time for
	var old []string
	for i := range 40 {
		old = append(old, fmt.Sprintf("user: The ferry number %d leaves the harbour of the island in the morning.", i))
	}
	say(t, w, "a", append(old, "user: Our cat is allergic to poultry.")...)
	search := func(q Query, missing int, cites ...string) {
		t.Helper()
		res, err := w.ix.Search(t.Context(), q)
		var got []string
		for _, h := range res.Hits {
			got = append(got, h.Cite())
		}
		if err != nil || res.Missing != missing || !slices.Equal(got, cites) {
			t.Errorf("%q finds %v with %d missing, want %v with %d: %v", q.Text, got, res.Missing, cites, missing, err)
		}
	}
	search(Query{Text: "what is the cat allergic to?", Sessions: true, Embed: 1}, 41, "a#42", "a#41")
	search(Query{Text: "feline dietary restriction"}, 0)
	search(Query{Text: "feline dietary restriction", Memory: true, Embed: 1}, 0, "MEMORY.md:1")
	missing(t, w.ix, 41)
	search(Query{Text: `"quantum"`, Sessions: true, Embed: 1}, 0) // it has no meaning to compare
	search(Query{Text: "feline dietary restriction", Sessions: true, Embed: 1}, 9, "a#42")
	search(Query{Text: "submarine insurance policy", Sessions: true, Embed: BeforeAnswer}, 0)
}

// TestCodesFollow: vectors that another process makes are compared too, and
// those that are gone are not.
func TestCodesFollow(t *testing.T) {
	w := worlds["sqlite"](t, Options{Embedder: Local{}})
	say(t, w, "a", chatter...)
	if _, err := w.ix.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	const question = "feline dietary restriction"
	if got := find(t, w.ix, Query{Text: question}); len(got) != 0 {
		t.Fatalf("found %v", got)
	}
	say(t, w, "a", "user: Our cat is allergic to poultry, so buy only the salmon food.")
	say(t, w, "b", "user: The vet forbids chicken for the cat, she gets a rash.")
	other := w.open()
	defer other.Close()
	if n, err := other.Embed(t.Context()); n != 2 || err != nil {
		t.Fatalf("made %d vectors, want 2: %v", n, err)
	}
	got := find(t, w.ix, Query{Text: question})
	slices.Sort(got)
	if !slices.Equal(got, []string{"a#8", "b#2"}) {
		t.Errorf("found %v, want what the other process made vectors of", got)
	}
	if err := w.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := other.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := find(t, w.ix, Query{Text: question}); !slices.Equal(got, []string{"a#8"}) {
		t.Errorf("found %v after one is in the trash", got)
	}
	if n := len(w.ix.codes.Sessions()); n != 1 {
		t.Errorf("vectors of %d sessions are in memory, want 1", n)
	}
}

// TestAbsent: a question about what was never said finds nothing, or the
// result says that all is only near; one about what was said does neither.
func TestAbsent(t *testing.T) {
	for name, e := range map[string]Embedder{"words": nil, "model": Local{}} {
		t.Run(name, func(t *testing.T) {
			w := worlds["memory"](t, Options{Embedder: e})
			say(t, w, "a", append(slices.Clone(chatter),
				"user: What did we decide about the logo? I like the blue one.",
				"assistant: You decided on the green logo, because the printer has no blue.",
				"user: I ran a half marathon on Sunday and my knee hurts.",
				"assistant: Rest it for a week, and see a doctor if it swells.")...)
			if _, err := w.ix.Embed(t.Context()); err != nil {
				t.Fatal(err)
			}
			ask := func(text string) Result {
				t.Helper()
				res, err := w.ix.Search(t.Context(), Query{Text: text})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			for _, text := range []string{
				"What did we decide about the submarine insurance policy?",
				"who won the football world cup?",
				"kubernetes ingress certificate renewal",
				"What is the name of my wife's brother?",
				"capital of Mongolia",
				"quantum entanglement experiments",
				"captain",
				"marathno holidays in 1998",
				"who won the football world cup in 1998?",
				"structor", // doctor has two other letters
			} {
				if res := ask(text); len(res.Hits) > 0 && !res.Near {
					t.Errorf("%q found %q, and does not say that it is only near", text, res.Hits[0].Text)
				}
			}
			for _, text := range []string{
				"What did we decide about the logo?",
				"why did the deploy fail?",
				"When does the flight to Lisbon leave?",
				"marathon",
				"marathno",
				"the kids on 2026-08-01",
				"how much is the rent in October?",
			} {
				if res := ask(text); len(res.Hits) == 0 || res.Near {
					t.Errorf("%q found %d, near: %v", text, len(res.Hits), res.Near)
				}
			}
		})
	}
}

// TestFewWords: whoever types one or two words that a message holds gets what
// holds them, and nothing that is only near. If no message holds them all, what
// is near may be what is meant.
func TestFewWords(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- The captain likes tea.\n- Of all who sail, the skipper goes last.\n")
	w := worlds["memory"](t, Options{Workspace: dir, Embedder: Local{}})
	say(t, w, "a", append(slices.Clone(chatter),
		"user: hello",
		"user: Who is the captain of the ship?",
		"assistant: edit",
		"user: The observer is stopped by agentObserverCancel in 1d4ed75a24b2df81.",
		"assistant: Our cat is allergic to poultry.")...)
	if _, err := w.ix.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"captain":             {"a#9", "MEMORY.md:1"},
		"captian":             {"a#9", "MEMORY.md:1"},
		"captain ship":        {"a#9", "MEMORY.md:1"},
		"agentObserverCancel": {"a#11"},
		"1d4ed75a":            {"a#11"},
		"likes tea":           {"MEMORY.md:1"},
	} {
		if got := find(t, w.ix, Query{Text: text}); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"feline allergies": "a#12", // only one of the words is there
		"who is captain?":  "a#10", // a question: what is said next may be the answer
	} {
		if got := find(t, w.ix, Query{Text: text}); !slices.Contains(got, want) {
			t.Errorf("%q finds %v, want %s among them", text, got, want)
		}
	}
}

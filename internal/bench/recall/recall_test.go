package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw/internal/parts"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/sqlite"
)

func TestRate(t *testing.T) {
	ten := strings.Fields("a b c d e f g h i j")
	for _, c := range []struct {
		gold, found []string
		want        score
	}{
		{[]string{"a"}, ten, score{1, 1, 1, 1}},
		{[]string{"f"}, ten, score{0, 1, 1 / math.Log2(7), 1.0 / 6}},
		{[]string{"a", "x"}, ten, score{0.5, 0.5, 1 / (1 + 1/math.Log2(3)), 1}},
		{[]string{"b"}, []string{"a", "a", "b"}, score{1, 1, 1 / math.Log2(3), 0.5}},
		{[]string{"x"}, ten, score{}},
	} {
		got := rate(c.gold, c.found)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%v in %v: %s is %v, want %v", c.gold, c.found, measures[i], got[i], c.want[i])
			}
		}
	}
}

func TestNoise(t *testing.T) {
	half := slices.Concat(slices.Repeat([]score{{1, 1}}, 50), slices.Repeat([]score{{}}, 50))
	if got := noise(half, nil); math.Abs(got-5) > 0.5 {
		t.Errorf("of 100 questions, half of them found, it is %.2f, want about 5", got)
	}
	if got := noise(half, half); got != 0 {
		t.Errorf("of equal scores it is %.2f", got)
	}
}

// write writes lines of JSON.
func write[T any](t *testing.T, path string, lines ...T) {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

var day = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// talk is a short conversation of a user and a model.
func talk() (docs []map[string]any) {
	for i, text := range []string{
		"Please rename the function parseTimelineHeader in internal/timeline/header.go.",
		"I renamed it, and the tests pass.",
		"error: cannot open file \"notes.txt\": permission denied (code 1372)",
		"The build runs with --with-provenance and FLY_DEPLOY_TOKEN now.",
		"We keep the boat in the harbour of Rostock during the winter.",
	} {
		docs = append(docs, map[string]any{"id": fmt.Sprint("m", i), "conversation": "c", "session": "s",
			"speaker": []string{"user", "assistant", "tool", "assistant", "user"}[i], "text": text, "ts": day})
	}
	return docs
}

// small writes a set with that conversation into a folder named code-dev.
func small(t *testing.T) (parent string) {
	parent = t.TempDir()
	dir := filepath.Join(parent, "code-dev")
	write(t, filepath.Join(dir, "docs.jsonl"), talk()...)
	ask := func(id, question, category, gold string) map[string]any {
		return map[string]any{"qid": id, "conversation": "c", "question": question, "category": category, "gold": []string{gold}, "asked_at": day}
	}
	write(t, filepath.Join(dir, "queries.jsonl"),
		ask("q1", "Where is the boat in winter?", "plain", "m4"),
		ask("q2", "provenance", "plain", "m3"),
		ask("q3", "zzgrmpf", "plain", "m1"), // nothing finds it
		ask("q4", "What was the order of events?", "event_ordering", "m0"))
	return parent
}

func TestSystems(t *testing.T) {
	ctx := context.Background()
	parent := small(t)
	o := options{hits: 10}
	sets, err := findSets([]string{parent}, o)
	if err != nil || len(sets) != 1 || sets[0].name != "code" || sets[0].goal == nil {
		t.Fatalf("sets %+v, %v", sets, err)
	}
	for _, y := range systems(o) {
		open, err := y.openAll(ctx, sets[0])
		if err != nil {
			t.Fatal(err)
		}
		found, scores, err := open.ask(sets[0].searches())
		open.close()
		if err != nil || len(scores) != 3 {
			t.Fatalf("%s: %v, %v", y.name, scores, err)
		}
		for i := range 2 {
			if scores[i][1] != 1 {
				t.Errorf("%s does not find %s: %v", y.name, sets[0].queries[i].QID, found[i])
			}
		}
		if scores[2][1] != 0 {
			t.Errorf("%s finds what nobody said: %v", y.name, found[2])
		}
	}
	var b strings.Builder
	err = quality(ctx, &b, sets, o)
	if err == nil || !strings.Contains(err.Error(), "code, goclaw: 66.7 of 85") {
		t.Errorf("below a goal, but got %v", err)
	}
	for _, want := range []string{"code (3)", "FTS5 porter", "FTS5 trigram", "| R1 ", "66.7 of 85", "below"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if _, err := findSets([]string{t.TempDir()}, o); err == nil {
		t.Error("an empty folder is taken for a set")
	}
}

func TestAblation(t *testing.T) {
	sets, err := findSets([]string{small(t)}, options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := ablation(context.Background(), &b, sets, options{hits: 10}); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts.All() {
		if !p.On() {
			t.Errorf("%s is still left out", p.Name)
		}
		if !strings.Contains(b.String(), "| "+p.Name+" ") {
			t.Errorf("%s is not in\n%s", p.Name, b.String())
		}
	}
	if err := ablation(context.Background(), io.Discard, sets, options{only: "no such part"}); err == nil {
		t.Error("a part that does not exist is left out")
	}
}

func TestGenerate(t *testing.T) {
	var docs []document
	for _, d := range talk() {
		docs = append(docs, document{ID: d["id"].(string), Speaker: d["speaker"].(string), Text: d["text"].(string), TS: day})
	}
	got := generate(docs, 1, 3)
	if again := generate(docs, 1, 3); fmt.Sprint(got) != fmt.Sprint(again) {
		t.Error("two runs make different questions")
	}
	gold := map[string]string{}
	for _, q := range got {
		gold[q.Category+": "+q.Question] = strings.Join(q.Gold, " ")
	}
	for question, want := range map[string]string{
		"identifier: parseTimelineHeader":            "m0",
		"identifier as words: parse timeline header": "m0",
		"path: internal/timeline/header.go":          "m0",
		"file name: header.go":                       "m0",
		"file name: notes.txt":                       "m2",
		"flag: --with-provenance":                    "m3",
		"env or snake: FLY_DEPLOY_TOKEN":             "m3",
		"error, other numbers and names: error: cannot open file : permission denied (code )": "m2",
	} {
		if gold[question] != want {
			t.Errorf("%s: %q, want %q; there are %v", question, gold[question], want, gold)
		}
	}
}

func TestOwnStore(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "sessions.db")
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	result := llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "1", Name: "bash", Blocks: []llm.Block{llm.Text{Text: "buildTimelineIndex failed"}}}}}
	err = st.Append(ctx, "one",
		session.Record{Seq: 1, Time: day, Body: session.Header{Version: session.Version, ID: "one", Key: "main:x:one"}},
		session.Record{Seq: 2, ID: "a", Time: day, Body: session.Message{Message: llm.UserText("Why is it slow?"), At: day}},
		session.Record{Seq: 3, ID: "b", Parent: "a", Time: day, Body: session.Message{Message: result, At: day}})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := ownSet(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	s.knownItems(1)
	for _, q := range s.queries {
		if q.Category == "identifier" && q.Question == "buildTimelineIndex" && slices.Equal(q.Gold, []string{"one#3"}) {
			return
		}
	}
	t.Errorf("the identifier is not asked for: %+v", s.queries)
}

// What is not English is found as well with the model as without it.
func TestLanguages(t *testing.T) {
	model, err := newKeeping(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := languages(context.Background(), &b, options{hits: 10, model: model}); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
	if !strings.Contains(b.String(), "| messages, zh ") || !strings.Contains(b.String(), "| notes, de ") {
		t.Errorf("the languages are not in\n%s", b.String())
	}
}

func TestThin(t *testing.T) {
	s := &set{}
	for i := range 10 {
		s.queries = append(s.queries, query{QID: fmt.Sprint(i), Category: "plain"})
	}
	s.queries[9].Category = "adversarial"
	s.thin(3)
	var got []string
	for _, q := range s.queries {
		got = append(got, q.QID)
	}
	if want := []string{"0", "3", "6"}; !slices.Equal(got, want) {
		t.Errorf("questions %v are left, want %v", got, want)
	}
	if s.thin(0); len(s.queries) != 3 {
		t.Error("0 leaves questions out")
	}
}

// TestCeiling: what no search can find is counted where questions quote texts,
// and nowhere else.
func TestCeiling(t *testing.T) {
	docs := map[string][]document{"c": {
		{ID: "a", Text: "panic: runtime error:\nindex out of range [3] with length 2"},
		{ID: "b", Text: "a log that was cut before"},
		{ID: "c", Text: "designed for coverage " + strings.Repeat("of this and that ", 30) + "which we provide"},
	}}
	quoting := &set{name: "code", docs: docs, queries: []query{
		{QID: "q1", Question: "Index out of range [7] with length 5", Gold: []string{"a"}},
		{QID: "q2", Question: "runtime error: index out", Gold: []string{"a", "b"}},
		{QID: "q3", Question: "a log that was", Gold: []string{"b"}},
		{QID: "q4", Question: "designed coverage provide", Gold: []string{"c"}, Category: notSearch[0]},
	}}
	other := &set{name: "turns", docs: docs, queries: []query{{QID: "q5", Question: "what went wrong?", Gold: []string{"a"}}}}
	var b strings.Builder
	ceiling(&b, []*set{other, quoting}, true)
	for _, want := range []string{"| q2             | b                          | 25         |", "| code              | 3         | 1                     | 83.3 "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	for _, not := range []string{"q1", "q3", "q4", "q5", "turns"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("%q is in\n%s", not, b.String())
		}
	}
	if got := held("designed coverage provide", docs["c"][2].Text); got < 0.6 || got > 0.8 {
		t.Errorf("of words that are far from each other it holds %.2f", got)
	}
}

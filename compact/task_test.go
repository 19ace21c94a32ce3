package compact_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// The task of a summary is what the user works on now: a new request takes
// the place of the first thing that was said, a follow-up does not, and what
// was worked on before is still told.
func TestTaskIsTheCurrentOne(t *testing.T) {
	leak := []string{"We are planning a picnic with Ana at the lake", "Which of our services leaks memory since the release on Friday?", "The graphs show it is worse at night", "Could the cache be the reason?", "It is the gateway I think", "ok go on", "what next"}
	parser := []string{"Wir planen ein Picknick mit Ana am See", "Ich brauche ein Programm, das Rechnungen im Format X als Parser einliest", "Das Datum steht in Spalte drei", "Geht das mit Komma?", "ja, weiter"}
	for _, c := range []struct {
		name string
		said []string
		hint string // what a model takes for the task; "": no model
		want string
	}{
		{"the first request", []string{"hi", "Port the billing service to Go."}, "", "Port the billing service to Go."},
		{"a new request", []string{"Port the billing service to Go.", "Now plan a trip to Rome for two people."}, "", "Now plan a trip to Rome for two people."},
		{"after thanks", []string{"Port the billing service to Go.", "Thanks! Could you write a poem about the sea?"}, "", "Thanks! Could you write a poem about the sea?"},
		{"said to be new", []string{"Port the billing service to Go.", "New task: the office plants"}, "", "New task: the office plants"},
		{"wanted", []string{"Port the billing service to Go.", "I need a logo for the Berlin office"}, "", "I need a logo for the Berlin office"},
		{"the latest of three", []string{"Port the billing service to Go.", "Write a poem about the sea.", "Translate this text into German: the sea is wide"}, "", "Translate this text into German: the sea is wide"},
		{"a follow-up", []string{"Write a poem about the sea.", "and now in German"}, "", "Write a poem about the sea."},
		{"without a conjunction", []string{"Write a poem about the sea.", "now in German please"}, "", "Write a poem about the sea."},
		{"that points back", []string{"Write a poem about the sea.", "Translate it into German, please"}, "", "Write a poem about the sea."},
		{"that trails back", []string{"Write a poem about the sea.", "Please write ten more lines of that"}, "", "Write a poem about the sea."},
		{"a question by the way", []string{"Port the billing service to Go.", "what time is it in Rome right now?"}, "", "Port the billing service to Go."},
		{"an order about the manner", []string{"Port the billing service to Go.", "You must never touch table audit_log."}, "", "Port the billing service to Go."},
		{"in another language, by a model", []string{"Portiere den Abrechnungsdienst nach Go.", "Jetzt plane bitte eine Reise nach Rom"}, "plane eine Reise nach Rom", "Jetzt plane bitte eine Reise nach Rom"},
		{"in the user's words, by a model", []string{"Portiere den Abrechnungsdienst nach Go.", "Plane eine Urlaubsreise nach Rom"}, "Urlaubsreise nach Rom", "Plane eine Urlaubsreise nach Rom"},
		{"a model that takes a follow-up for it", []string{"Write a poem about the wide sea.", "and now translate everything into German"}, "translate everything into German", "Write a poem about the wide sea."},
		{"a model that makes something up", []string{"Write a poem about the wide sea."}, "build a spaceship in the garden", "Write a poem about the wide sea."},
		{"a model that knows better", []string{"Port the billing service to Go.", "run the tests of the ledger module"}, "port the billing service to go", "Port the billing service to Go."},
		{"in its own words, by a model", leak, "Find out which service leaks memory", "Find out which service leaks memory"},
		{"in its own words and another language", parser, "einen Parser für Rechnungsdateien schreiben", "einen Parser für Rechnungsdateien schreiben"},
		{"a model that takes hurrying on for it", leak, "go on", leak[1]},
		{"a question in its form, without a model", leak, "", leak[1]},
		{"a request in another language, without a model", parser, "", parser[1]},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log []session.Body
			for _, say := range c.said {
				log = append(log, User(say), Answer("here you are: "+words(90)))
			}
			for range 8 {
				log = append(log, User("ok, on with it"), Answer("so far: "+words(90)))
			}
			var sum compact.Summarizer
			if c.hint != "" {
				sum = compact.Chain{{Provider: &llmtest.Model{Rest: llmtest.Say(`{"task":"` + c.hint + `","summary":"several things were asked, and all were done"}`)}, Name: "m", Window: 9000, Tokens: byWord{}}}
			}
			cut, ok := plan(t, 1500, compact.Options{Force: true}, log...)
			if !ok {
				t.Fatal("no cut")
			}
			_, s := compaction(t, cut, sum)
			if s.Task != c.want {
				t.Errorf("the task is %q, want %q", s.Task, c.want)
			}
			if first := c.said[0]; len(first) > 8 && s.Task != first && !strings.Contains(strings.Join(s.Earlier, "\n"), first) {
				t.Errorf("earlier tasks %q do not tell %q", s.Earlier, first)
			}
		})
	}
}

// A request that is kept word for word is the task, too, and so is one that
// came after an earlier summary.
func TestTaskAfterASummary(t *testing.T) {
	s := compactions(t, 2, nil, User("Port the billing service to Go."), Answer("ok"))
	clock := &Clock{Seed: 5}
	for _, body := range append([]session.Body{User("Write a long story about the sea and its ships."), Answer(words(40))}, turns(1, 40)...) {
		if err := s.Apply(s.Next(body, clock)); err != nil {
			t.Fatal(err)
		}
	}
	c, ok := compact.Plan(s, prompt, byWord{}, window.Budget{Window: 2400, Reserve: 240}, compact.Options{})
	if !ok {
		t.Fatal("no cut")
	}
	comp, err := c.Compact(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := compact.Parse(comp.Summary)
	if !strings.HasPrefix(got.Task, "Write a long story") || len(got.Earlier) == 0 || got.Earlier[0] != "Port the billing service to Go." {
		t.Errorf("task %q, earlier %q", got.Task, got.Earlier)
	}
}

// What earlier extracts told stays one text, however often there is another.
func TestEarlierTextsDoNotNest(t *testing.T) {
	var sum compact.Summary
	for i := range 5 {
		topic := fmt.Sprintf("bridge%d castle%d harbour%d", i, i, i)
		s := Replay(t, User("What about "+topic+"?"), Answer("All is well with "+topic))
		sum = compact.Parse(compact.Extract(sum, s.Branch).String())
	}
	for _, once := range []string{"Earlier: ", "What was asked last:"} {
		if n := strings.Count(sum.Text, once); n != 1 {
			t.Errorf("%q stands %d times in %s", once, n, sum.Text)
		}
	}
	for i := range 5 {
		if n := strings.Count(sum.Text, fmt.Sprint("- asked: What about bridge", i)); n != 1 {
			t.Errorf("question %d stands %d times in %s", i, n, sum.Text)
		}
	}
	again := compact.Extract(compact.Summary{Text: "Earlier: Earlier: the bridges"}, nil)
	if again.Text != "Earlier: the bridges" {
		t.Errorf("%q", again.Text)
	}
}

// A question that was answered is no open request, also where a later cut goes
// through its turn and leaves the answer among what stays.
func TestAnsweredQuestionIsNotOpen(t *testing.T) {
	const question = "Which of the bridges of Berlin is the oldest one?"
	for _, end := range []string{"answered", "open"} {
		for name, sum := range map[string]compact.Summarizer{
			"extract": nil,
			"a model": compact.Chain{{Provider: &llmtest.Model{Rest: llmtest.Say(`{"summary":"bridges were looked at, one after the other","open_requests":["` + question + `"]}`)}, Name: "m", Window: 9000, Tokens: byWord{}}},
		} {
			log := append(turns(3, 100), User(question))
			for i := range 12 {
				id := fmt.Sprint("c", i)
				log = append(log, Call(id, "read"), Result(id, words(200)))
			}
			if end == "answered" {
				log = append(log, Answer("the Jungfernbrücke"), User("thanks"), Answer("you are welcome"))
			} else {
				log = append(log, Stopped(llm.StopAborted, Answer("the")), User("wait"), Answer("I wait"))
			}
			c, ok := plan(t, 2600, compact.Options{}, log...)
			if !ok {
				t.Fatal("no cut")
			}
			_, got := compaction(t, c, sum)
			listed := strings.Contains(strings.Join(got.Requests, "\n"), question)
			if listed && end == "answered" || !listed && end == "open" && got.Task != question {
				t.Errorf("%s, by %s: open requests %q, task %q", end, name, got.Requests, got.Task)
			}
		}
	}
}

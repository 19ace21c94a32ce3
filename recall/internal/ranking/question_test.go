package ranking

import (
	"testing"

	"goclaw/recall/internal/words"
)

func TestSpoken(t *testing.T) {
	q := &Question{names: []string{words.Term("Ada"), words.Term("Grace")}}
	for text, want := range map[string]string{
		"When did Ada buy a boat?":           "When did I buy a boat?",
		"Is it Ada's boat, or grace’s?":      "Is it my boat, or my?",
		"Ada":                                "I",
		"Who is Adam, and why do we ask him": "Who is Adam, and why do we ask him",
	} {
		if got := q.Spoken(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := new(Question).Spoken("Ada?"); got != "Ada?" {
		t.Errorf("nobody is named, but got %q", got)
	}
}

func TestOurs(t *testing.T) {
	for text, want := range map[string]bool{
		"What is my monthly budget?":        true,
		"what did we decide about the logo": true,
		"How did you help me with it?":      false,
		"parseSessionID":                    false,
		"why did the deploy fail?":          false,
	} {
		if got := ours(text); got != want {
			t.Errorf("%q is about the user: %v, want %v", text, got, want)
		}
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]bool{
		"permission denied":                    true,
		"if (err != nil)":                      true,
		"what is in parse(x)?":                 true,
		"- Missing error handling. Should we?": true, // a line that was copied
		"❓ should we go on anyway?":            true,
		"--no-ff: what is it?":                 false,
		"should we go on anyway?":              false,
		"who decided that":                     false,
		"The deploy failed. Do you know why?":  false,
		"?":                                    false,
	} {
		ends, _ := words.Asks(text)
		if got := isExact(text, ends); got != want {
			t.Errorf("%q looks for its words themselves: %v, want %v", text, got, want)
		}
	}
}

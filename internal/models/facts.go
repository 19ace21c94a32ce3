package models

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"goclaw/internal/config"
	"goclaw/internal/near"
	"goclaw/internal/transcript"
)

// Fact is something that goclaw remembers about models and that nobody wrote
// into the configuration. Other programs read it.
type Fact struct {
	What  string    `json:"what"` // window, answer, accepted; server, session
	Name  string    `json:"name"` // what goclaw models forget takes
	Value any       `json:"value"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Said  string    `json:"said,omitempty"` // the message that it was learnt from
	Text  string    `json:"text"`
}

// Facts are all that is remembered, by name.
func Facts(c *config.Loaded) []Fact {
	out := []Fact{}
	day := func(t time.Time) string { return t.Local().Format(time.DateOnly) }
	for name, l := range learntLimits(c.Home) {
		add := func(what string, n int, from lesson, format string) {
			if n == 0 {
				return
			}
			f := Fact{What: what, Name: name, Value: n, At: from.At, Said: from.Said, Text: fmt.Sprintf(format, n)}
			if !from.At.IsZero() {
				f.Until = from.expires()
				f.Text += fmt.Sprintf(" (learnt %s, until %s)", day(f.At), day(f.Until))
			}
			if set := cmp.Or(c.Models[name].ContextWindow, c.ContextWindow); what == "window" && set > 0 {
				f.Text += fmt.Sprintf("; %d are configured, which counts", set)
			}
			if f.Said != "" {
				f.Text += fmt.Sprintf(": %q", f.Said)
			}
			f.Text = transcript.Printable(f.Text)
			out = append(out, f)
		}
		add("window", l.Window, l.WindowFrom, "takes %d tokens")
		add("answer", l.Answer, l.AnswerFrom, "answers with at most %d tokens")
		add("accepted", l.Accepted, lesson{}, "took a prompt of %d tokens")
	}
	for _, a := range consents(c.Home) {
		f := Fact{What: "server", Name: a.name(), Value: a.Allowed, At: a.At}
		verb, to := "may be sent", "conversations at "+a.Address
		if a.Session != "" {
			f.What, to = "session", "to "+a.Provider
		}
		if a.Keys != "" {
			f.What, verb, to = "key", "is used", "at "+a.Address
		}
		said := "allowed"
		if !a.Allowed {
			verb, said = "is not sent", "refused"
			if a.Keys != "" {
				verb = "is not used"
			}
		}
		f.Text = transcript.Printable(fmt.Sprintf("%s %s (%s %s)", verb, to, said, day(a.At)))
		out = append(out, f)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// name is what goclaw models forget takes.
func (c consent) name() string {
	switch {
	case c.Session != "":
		return string(c.Session)
	case c.Keys != "":
		return c.Keys + ":" + c.Provider
	}
	return c.Provider + "/" + c.Model
}

// Limiting are those of facts that change what goclaw does.
func Limiting(facts []Fact) []Fact {
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.What == "accepted" })
}

// FactNames are what facts are remembered about.
func FactNames(c *config.Loaded) []string {
	var names []string
	for _, f := range Facts(c) {
		names = append(names, f.Name)
	}
	return slices.Compact(names)
}

// Forget forgets what is remembered under a name, and returns what that was.
func Forget(c *config.Loaded, name string) (did []string, err error) {
	if names := FactNames(c); !slices.Contains(names, name) {
		if n := near.Nearest(name, names); n != "" {
			return nil, fmt.Errorf("nothing is remembered about %s: did you mean %s?", name, n)
		}
		return nil, fmt.Errorf("nothing is remembered about %s: goclaw models lists what is", name)
	}
	for _, f := range Facts(c) {
		if f.Name == name {
			did = append(did, f.Text)
		}
	}
	err = changeLimits(c.Home, func(m map[string]limits) { delete(m, name) })
	if err == nil {
		err = changeConsents(c.Home, func(all []consent) []consent {
			return slices.DeleteFunc(all, func(a consent) bool { return a.name() == name })
		})
	}
	return did, err
}

package main

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/near"
	"goclaw/internal/transcript"
)

// fact is something that goclaw remembers about models and that nobody wrote
// into the configuration. Other programs read it.
type fact struct {
	What  string    `json:"what"` // window, answer, accepted; server, session
	Name  string    `json:"name"` // what goclaw models forget takes
	Value any       `json:"value"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Said  string    `json:"said,omitempty"` // the message that it was learnt from
	Text  string    `json:"text"`
}

// facts are all that is remembered, by name.
func facts(c *config.Loaded) []fact {
	out := []fact{}
	day := func(t time.Time) string { return t.Local().Format(time.DateOnly) }
	for name, l := range learntLimits(c.Home) {
		add := func(what string, n int, from lesson, format string) {
			if n == 0 {
				return
			}
			f := fact{What: what, Name: name, Value: n, At: from.At, Said: from.Said, Text: fmt.Sprintf(format, n)}
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
		f := fact{What: "server", Name: a.name(), Value: a.Allowed, At: a.At}
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

// limiting are those of facts that change what goclaw does.
func limiting(facts []fact) []fact {
	return slices.DeleteFunc(facts, func(f fact) bool { return f.What == "accepted" })
}

func modelsCmd(a *app) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models you can use now, and what goclaw remembers about models",
		Long: `Lists the models that you can use now, because there is a key for them or a
server that answers, with their windows, prices in dollars for a million tokens,
and levels of thinking. The model that a new session would use is marked. Then it
shows what goclaw remembers about models.

Where conversations may go: which model servers on this machine you allowed or
refused, which sessions you let move to another vendor, and whether the keys of
OpenClaw's agents are used for their sessions. After "forget" you are asked
again.

What was learnt from the refusals of servers: windows and longest answers, each
with the day and the server's message. It counts for seven days, and never
against the configuration (models.NAME.contextWindow).`,
		Example: `  goclaw models                          what can be used, and what is remembered
  goclaw models --all                    with the older models
  goclaw models forget openai/gpt-5      forget what was learnt about a model
  goclaw models forget ollama/llama3.2   be asked again`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return showModels(cmd.Context(), a, all, asJSON) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also the older models of each vendor")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object")
	forget := &cobra.Command{
		Use:   "forget NAME",
		Short: "Forget what is remembered about a model or a session",
		Args:  exactly("NAME"),
		RunE:  func(_ *cobra.Command, args []string) error { return forgetFacts(a.env, args[0]) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			c, err := a.config()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return beginning(factNames(c), typed), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.AddCommand(forget)
	return cmd
}

func factNames(c *config.Loaded) []string {
	var names []string
	for _, f := range facts(c) {
		names = append(names, f.Name)
	}
	return slices.Compact(names)
}

// forgetFacts forgets what is remembered under a name.
func forgetFacts(e *env, name string) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	if names := factNames(c); !slices.Contains(names, name) {
		if n := near.Nearest(name, names); n != "" {
			return fmt.Errorf("nothing is remembered about %s: did you mean %s?", name, n)
		}
		return fmt.Errorf("nothing is remembered about %s: goclaw models lists what is", name)
	}
	var did []string
	for _, f := range facts(c) {
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
	if err != nil {
		return err
	}
	return e.print(transcript.Printable(fmt.Sprintf("forgotten: %s %s", name, strings.Join(did, "; "))))
}

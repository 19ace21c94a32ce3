package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/models"
	"goclaw/internal/repl"
	"goclaw/internal/transcript"
	"goclaw/window"
)

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
			return beginning(models.FactNames(c), typed), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.AddCommand(forget)
	return cmd
}

// forgetFacts forgets what is remembered under a name.
func forgetFacts(e *env, name string) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	did, err := models.Forget(c, name)
	if err != nil {
		return err
	}
	return e.print(transcript.Printable(fmt.Sprintf("forgotten: %s %s", name, strings.Join(did, "; "))))
}

// showModels is goclaw models.
func showModels(ctx context.Context, a *app, all, asJSON bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if _, err := a.models.Choose(ctx); err != nil { // then none is marked
		a.warn("%s", transcript.Problem(err))
	}
	found, known := a.models.Choices(ctx), models.Facts(c)
	if asJSON {
		return a.printJSON(struct {
			models.Choices
			Remembered []models.Fact `json:"remembered"`
		}{found, known})
	}
	t := table(found, all)
	lines := append(transcript.Table(t.Rows, a.style(), a.columns()), t.More...)
	for _, f := range known {
		lines = append(lines, transcript.Printable(f.Name+": "+f.Text))
	}
	return a.print(lines...)
}

// table returns the choices as they are shown; without all, without the older
// ones that are not in use.
func table(c models.Choices, all bool) repl.Choices {
	t := repl.Choices{Rows: [][]string{{" ", "#", "MODEL", "WINDOW", "$ IN", "$ OUT", "THINKING"}}}
	price := func(usd *float64) string {
		if usd == nil {
			return ""
		}
		return fmt.Sprintf("%.2f", *usd)
	}
	left := 0
	for _, ch := range c.Models {
		if ch.Older && !all && !ch.Current {
			left++
			continue
		}
		t.Names = append(t.Names, ch.Name)
		mark, size, thinks := "", "", ""
		if ch.Current {
			mark = "*"
		}
		if ch.Window > 0 {
			size = window.Short(ch.Window)
		}
		if n := len(ch.Thinking); n > 1 {
			thinks = ch.Thinking[0] + " to " + ch.Thinking[n-1]
		} else if n == 1 {
			thinks = ch.Thinking[0]
		}
		t.Rows = append(t.Rows, []string{mark, fmt.Sprint(len(t.Names)), transcript.Printable(ch.Name), size, price(ch.In), price(ch.Out), thinks})
	}
	if left > 0 {
		t.More = append(t.More, fmt.Sprintf("%d older models are not shown: /model all, or goclaw models --all", left))
	}
	for _, prov := range c.Any {
		t.More = append(t.More, fmt.Sprintf("and any model of %s: /model %s/VENDOR/MODEL", prov, prov))
	}
	if c.Without > 0 {
		t.More = append(t.More, fmt.Sprintf("not usable now: %s", strings.Join(c.Needs, ", ")))
	}
	return t
}

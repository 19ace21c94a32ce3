package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/tool"
)

// Approver asks a person whether a call may run. It is the tool.Approver of
// every interface of the program.
type Approver struct {
	Style transcript.Style
	Show  func(line string)
	// Ask shows prompt and returns the answer. Text typed before the question
	// does not answer it.
	Ask func(ctx context.Context, prompt string) (string, error)
	// Remember allows what rule covers for good. nil: nothing is remembered.
	Remember func(rule tool.Rule) error
}

// Approve implements tool.Approver. The end of the input means no.
func (a Approver) Approve(ctx context.Context, req tool.Request) (tool.Decision, error) {
	a.show(req)
	prompt := "[y]es, this [s]ession, [a]lways here, [N]o (n REASON tells why): "
	if like := Likes(req); like != "" {
		a.Show(a.Style.Dim("[s] and [a] would allow " + like + "."))
	}
	if req.Private {
		a.Show(a.Style.Dim(WhyEveryTime(req)))
		prompt = "[y]es, [N]o (n REASON tells why): "
	}
	for {
		text, err := a.Ask(ctx, prompt)
		if errors.Is(err, io.EOF) {
			return tool.No, nil
		}
		if err != nil {
			return tool.No, err
		}
		text = strings.TrimSpace(text)
		word, why, _ := strings.Cut(text, " ")
		word = strings.ToLower(strings.TrimRight(word, ",.:;"))
		switch {
		case text == "" || (word == "n" || word == "no") && strings.TrimSpace(why) == "":
			return tool.No, nil
		case word == "n" || word == "no":
			return tool.No, tool.Because(strings.TrimSpace(why))
		case why != "": // no answer
		case word == "y" || word == "yes" || word == "once":
			return tool.Once, nil
		case req.Private:
		case word == "s" || word == "session":
			return tool.Session, nil
		case word == "a" || word == "always":
			a.remember(req.Rule)
			return tool.Always, nil
		}
		a.Show(a.Style.Dim("Please answer with one of these letters."))
	}
}

func (a Approver) remember(rule tool.Rule) {
	if a.Remember == nil {
		return
	}
	if err := a.Remember(rule); err != nil {
		a.Show(a.Style.Dim(transcript.Printable(fmt.Sprintf("this is allowed until goclaw exits, but could not be saved: %v", err))))
	}
}

// show says what is asked: a command, or a change of a file.
func (a Approver) show(req tool.Request) {
	a.Show(Wants(req, a.Style))
	switch {
	case req.Path != "":
		a.Show(transcript.Diff(req.Diff, a.Style))
	case req.URL != "":
		a.Show("  " + strings.ReplaceAll(Exactly(req.URL), "\n", "\n  "))
	default:
		a.Show("  " + strings.ReplaceAll(Exactly(req.Command), "\n", "\n  "))
	}
}

// Wants says who wants to do what, and where. What it is exactly follows.
func Wants(req tool.Request, st transcript.Style) string {
	who, in := transcript.OneLine(transcript.Name(req.Tool), 64), st.Dim(" in "+transcript.Name(transcript.Tilde(req.Dir)))
	switch {
	case req.Path != "":
		return st.Yellow(who+" wants to change "+transcript.Name(req.Path)) + in + ":"
	case req.URL != "":
		return st.Yellow(who + " wants to read:")
	}
	return st.Yellow(who+" wants to run") + in + ":"
}

// WhyEveryTime says why a private request is asked about each time.
func WhyEveryTime(req tool.Request) string {
	if req.Path != "" {
		return "It is git's own, and can make git run commands, so you are asked every time."
	}
	return "It names goclaw's own files, so you are asked every time."
}

// Likes says what more than this very call a yes for longer would allow; "":
// nothing.
func Likes(req tool.Request) string {
	switch {
	case req.Private || req.Rule.Exact != "":
		return ""
	case req.Path != "":
		return "every change of a file here"
	case req.Rule.Host == "" && len(req.Rule.Words) == 0:
		return "every call of " + transcript.OneLine(transcript.Name(req.Tool), 64)
	}
	return transcript.Printable(req.Rule.String())
}

// Exactly shows a command as it is, quoted if something in it would be invisible.
func Exactly(command string) string {
	invisible := func(r rune) bool { return r != '\n' && r != '\t' && terminal.Invisible(r) }
	if strings.ContainsFunc(command, invisible) || !utf8.ValidString(command) {
		return fmt.Sprintf("%q", command)
	}
	return strings.TrimRight(command, "\n")
}

// questioner is an Input that draws the chat's questions. What was typed before a
// question is there does not answer it.
type questioner interface {
	// Permit asks whether a call may run. The error is a tool.Because, or
	// line.ErrInterrupt if the user wants to stop altogether.
	Permit(ctx context.Context, req tool.Request) (tool.Decision, error)
	// Yes asks a question; enter is what Enter means.
	Yes(ctx context.Context, question string, enter bool) (bool, error)
}

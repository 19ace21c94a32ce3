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

// Approver asks a person whether a command may run. It is the tool.Approver of
// every interface of the program.
type Approver struct {
	Style transcript.Style
	Show  func(line string)
	// Ask shows prompt and returns the answer. Text typed before the question
	// does not answer it.
	Ask func(ctx context.Context, prompt string) (string, error)
	// Allow remembers that a command is always allowed. nil: nothing is remembered.
	Allow func(command string) error
}

// Approve implements tool.Approver. The end of the input means no.
func (a Approver) Approve(ctx context.Context, req tool.Request) (tool.Decision, error) {
	a.Show(a.Style.Yellow(transcript.OneLine(transcript.Name(req.Tool), 64)+" wants to run") + a.Style.Dim(" in "+transcript.Name(req.Dir)) + ":")
	a.Show(exactly(req.Command))
	prompt := "[y]es once, [a]lways this command, [N]o: "
	if req.Private {
		a.Show(a.Style.Dim("It names goclaw's own files, so you are asked every time."))
		prompt = "[y]es once, [N]o: "
	}
	for {
		answer, err := a.Ask(ctx, prompt)
		if errors.Is(err, io.EOF) {
			return tool.No, nil
		}
		if err != nil {
			return tool.No, err
		}
		switch answer = strings.ToLower(strings.TrimSpace(answer)); {
		case answer == "y" || answer == "yes" || answer == "once":
			return tool.Once, nil
		case (answer == "a" || answer == "always") && !req.Private:
			if a.Allow != nil {
				if err := a.Allow(req.Command); err != nil {
					a.Show(a.Style.Dim(transcript.Printable(fmt.Sprintf("this command is allowed until goclaw exits, but could not be saved: %v", err))))
				}
			}
			return tool.Always, nil
		case answer == "" || answer == "n" || answer == "no":
			return tool.No, nil
		}
	}
}

// exactly shows a command as it is, quoted if something in it would be
// invisible.
func exactly(command string) string {
	invisible := func(r rune) bool { return r != '\n' && r != '\t' && terminal.Invisible(r) }
	if strings.ContainsFunc(command, invisible) || !utf8.ValidString(command) {
		return fmt.Sprintf("  %q", command)
	}
	return "  " + strings.ReplaceAll(strings.TrimRight(command, "\n"), "\n", "\n  ")
}

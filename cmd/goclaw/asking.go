package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/near"
	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
)

// asking asks a person for settings. What was typed before a question does not
// answer it.
type asking struct {
	e  *env
	in *line.Plain // nil: nobody is asked, and the defaults are taken
}

// ask asks until ok accepts the answer; what it returns is the result. Enter, and
// --yes, mean def.
func (q asking) ask(ctx context.Context, question, def string, ok func(string) (string, error)) (string, error) {
	if q.in == nil {
		return ok(def)
	}
	for {
		answer, err := q.in.Ask(ctx, question+" ["+def+"]: ")
		if err != nil {
			return "", err
		}
		got, err := ok(cmp.Or(strings.TrimSpace(answer), def))
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		q.e.note("%s", transcript.Problem(err))
	}
}

// sure asks a yes-or-no question.
func (q asking) sure(ctx context.Context, question string, def bool) (bool, error) {
	answer, err := q.ask(ctx, question, map[bool]string{true: "yes", false: "no"}[def], func(text string) (string, error) {
		switch strings.ToLower(text) {
		case "y", "yes":
			return "y", nil
		case "n", "no":
			return "n", nil
		}
		return "", errors.New("please answer yes or no")
	})
	return answer == "y", err
}

// pick asks for one of options, by its number or its name. Other names are
// accepted if other does.
func (q asking) pick(ctx context.Context, question string, options, shown []string, def string, other func(string) error) (string, error) {
	if q.in != nil {
		for i, o := range shown {
			number := fmt.Sprint(i + 1)
			if i >= len(options) {
				number = "" // a remark
			}
			fmt.Fprintf(q.e.out, "  %2s  %s\n", number, o)
		}
	}
	return q.ask(ctx, question, def, func(text string) (string, error) {
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(options) {
			return options[n-1], nil
		}
		if slices.Contains(options, text) {
			return text, nil
		}
		if err := other(text); err != nil {
			if n := near.Nearest(text, options); n != "" {
				err = fmt.Errorf("%w: did you mean %s?", err, n)
			}
			return "", err
		}
		return text, nil
	})
}

package transcript

import (
	"fmt"
	"strings"

	"goclaw/session"
	"goclaw/window"
)

// Window says what fills a window: a bar, and a line for each part.
func Window(x window.Breakdown, width int) []string {
	b := x.Budget
	var out []string
	if b.Window > 0 {
		out = append(out, bar(b, width)+" "+b.String())
	} else {
		out = append(out, window.Short(b.Used)+" tokens; the model's window is not known")
	}
	row := func(name string, tokens int, note string) {
		out = append(out, strings.TrimRight(fmt.Sprintf("  %-24s %7s %4d%%  %s", OneLine(Printable(name), 24), window.Short(tokens), tokens*100/max(b.Used, 1), note), " "))
	}
	for _, p := range x.Parts {
		name, note := PartName(p.Name), ""
		switch {
		case strings.HasPrefix(p.Name, "tool:"):
			note = Count(p.Count, "result")
		case p.Name == "user" || p.Name == "assistant":
			note = Count(p.Count, "message")
		}
		row(name, p.Tokens, note)
	}
	if x.Other > 0 {
		row("counted by the model only", x.Other, "")
	}
	if x.Pins > 0 {
		row("of these, pinned", x.Pinned, Count(x.Pins, "message"))
	}
	if b.Reserve > 0 {
		out = append(out, fmt.Sprintf("  %s tokens are kept free for the answer", window.Short(b.Reserve)))
	}
	if x.Compactions > 0 {
		out = append(out, "  compacted "+Count(x.Compactions, "time"))
	}
	if x.Warned {
		saved := "has not written to its memory since"
		if x.Saved {
			saved = "has written to its memory since"
		}
		out = append(out, "  the model was told how full its window is, and "+saved)
	}
	spent := x.Spent
	cost := fmt.Sprintf("  spent so far: %s tokens in, %s out", window.Short(spent.Prompt()), window.Short(spent.Output))
	if x.Cost > 0 {
		cost += ", about " + Dollars(x.Cost)
	}
	return append(out, cost)
}

// PartName returns what users call a part.
func PartName(name string) string {
	if tool, ok := strings.CutPrefix(name, "tool:"); ok {
		return "results of " + tool
	}
	switch name {
	case "system":
		return "system prompt"
	case "summary":
		return "summary of the past"
	case "user":
		return "you"
	case "assistant":
		return "answers"
	case "notice":
		return "notices"
	}
	return name
}

// bar draws how full a window is: used, free, and reserved for the answer.
func bar(b window.Budget, width int) string {
	part := func(n int) int { return min(max(n*width/b.Window, 0), width) }
	used := part(b.Used)
	if b.Used > 0 && used == 0 {
		used = 1
	}
	kept := min(part(b.Reserve), width-used)
	return "[" + strings.Repeat("█", used) + strings.Repeat("·", width-used-kept) + strings.Repeat("░", kept) + "]"
}

// Checkpoints lists the checkpoints of a session, oldest first.
func Checkpoints(s *session.Session, st Style) []string {
	var out []string
	for _, r := range s.Branch {
		cp, ok := r.Body.(session.Checkpoint)
		if !ok {
			continue
		}
		by := ""
		if cp.Model != "" {
			by = ", by " + Name(cp.Model)
		}
		out = append(out, fmt.Sprintf("%s  %s", st.Bold(fmt.Sprintf("record %d", r.Seq)), st.Dim(fmt.Sprintf("%s, %s, %s tokens%s", r.Time.Local().Format("2006-01-02 15:04"), Count(cp.Messages, "message"), window.Short(cp.Tokens), by))))
		for _, l := range []struct {
			name  string
			items []string
		}{{"topics", cp.Topics}, {"decisions", cp.Decisions}, {"open questions", cp.Questions}} {
			if len(l.items) > 0 {
				out = append(out, "  "+l.name+": "+OneLine(Printable(strings.Join(l.items, "; ")), 200))
			}
		}
		out = append(out, "  "+OneLine(Printable(strings.ReplaceAll(cp.Summary, "\n", " ")), 300))
	}
	if len(out) == 0 {
		return []string{"there are no checkpoints yet"}
	}
	return out
}

// Notices lists the notices that a model was given, oldest first.
func Notices(given []window.Given, st Style) []string {
	var out []string
	for _, n := range given {
		as := Name(n.As)
		if n.Once {
			as += ", in that turn only"
		}
		done := "not actioned: the model did not write to memory/ after it"
		if n.Actioned {
			done = "actioned: the model wrote to memory/ after it"
		}
		out = append(out, fmt.Sprintf("%s  %s", st.Bold(fmt.Sprintf("record %d", n.Record.Seq)), st.Dim(fmt.Sprintf("%s, at %d%%, as %s", n.Record.Time.Local().Format("2006-01-02 15:04"), n.Percent, as))),
			"  "+OneLine(Printable(n.Text), 300), "  "+done)
	}
	if len(out) == 0 {
		return []string{"there are no notices yet"}
	}
	return out
}

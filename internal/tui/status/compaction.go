package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/window"
)

// Compaction draws what a compaction would do: the window before and after it,
// the turns as a strip, what goes and what stays, and its price.
func Compaction(r compact.Report, b window.Budget, width int, st transcript.Style) []string {
	if r.After >= r.Before {
		return prose((&compact.LargerError{Before: r.Before, After: r.After}).Error(), width, plain)
	}
	size := max(b.Window, r.Before, 1)
	out := []string{st.Bold(short(fmt.Sprintf("%s → about %s tokens%s", window.Short(r.Before), window.Short(r.After), percents(r, b)), width))}
	out = append(out, beforeAfter(r, size, width, st)...)
	out = append(out, wrapKeys(width, key(st, goes, "goes into the summary"), key(st, summary, "summary"), key(st, stays, "stays word for word"), key(st, fixed, "system prompt, tools"))...)
	out = append(out, strip(r.Turns, width, st)...)
	out = append(out, listed("goes", biggest(r.Turns), width)...)
	out = append(out, listed("stays from", staying(r.Turns), width)...)
	for _, line := range consequences(r) {
		out = append(out, prose(line, width, plain)...)
	}
	return out
}

// What a cell of the picture stands for.
var (
	fixed   = share{letter: "S", code: "7;34"}
	summary = share{letter: "Z", code: "7;33"}
	goes    = share{letter: "-", code: "31"}
	pins    = share{letter: "P", code: "7;32"}
	stays   = share{letter: "█", code: "32"}
	free    = share{letter: "·", code: "2"}
)

func (s share) of(tokens int) share {
	s.tokens = max(tokens, 0)
	return s
}

func percents(r compact.Report, b window.Budget) string {
	if b.Window <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s → %s)", percent(r.Before, b.Window), percent(r.After, b.Window))
}

// beforeAfter draws the window as it is, and as it would be.
func beforeAfter(r compact.Report, size, width int, st transcript.Style) []string {
	gone, kept := 0, 0
	for _, t := range r.Turns {
		gone += t.Tokens - t.Stays
		kept += t.Stays
	}
	// What the model counts besides what the log knows stays as well.
	before := r.Before - gone - kept - r.Former
	cells := min(width-len("before "), maxCells)
	if cells < 10 {
		return nil
	}
	rest := r.After - r.Summary - max(before, 0)
	return []string{
		"before " + shareBar([]share{fixed.of(before), summary.of(r.Former), goes.of(gone), stays.of(kept), free.of(size - r.Before)}, size, cells, st),
		"after  " + shareBar([]share{fixed.of(before), summary.of(r.Summary), stays.of(rest), free.of(size - r.After)}, size, cells, st),
	}
}

// key explains what a cell stands for.
func key(st transcript.Style, s share, text string) form {
	return form{s.letter + " " + text, st.Paint(s.code, s.letter) + " " + text}
}

// wrapKeys puts keys into lines.
func wrapKeys(width int, keys ...form) (out []string) {
	line, n := "", 0
	for _, k := range keys {
		w := displaywidth.String(k.plain)
		if n > 0 && n+2+w > width {
			out, line, n = append(out, line), "", 0
		}
		if n > 0 {
			line, n = line+"  ", n+2
		}
		line, n = line+k.painted, n+w
	}
	return append(out, line)
}

// strip draws the turns, oldest first, each in a cell. If there are more turns
// than cells, a cell stands for several, and shows the first thing that is true
// of one of them: it stays, it has a pin, it goes.
func strip(turns []compact.Turn, width int, st transcript.Style) []string {
	n := len(turns)
	if n == 0 {
		return nil
	}
	head := "turns  "
	cells := min(n, width-len(head), maxCells)
	if cells < 1 {
		return nil
	}
	var b strings.Builder
	hasPin := false
	for i := range cells {
		s := goes
		for _, t := range turns[i*n/cells : (i+1)*n/cells] {
			switch {
			case t.Stays > 0:
				s = stays
			case t.Pinned > 0 && s.letter == goes.letter:
				s, hasPin = pins, true
			}
		}
		b.WriteString(st.Paint(s.code, s.letter))
	}
	out := []string{head + b.String()}
	going := 0
	for _, t := range turns {
		if t.Stays == 0 {
			going++
		}
	}
	note := fmt.Sprintf("%d of %s are replaced by the summary", going, transcript.Count(n, "turn"))
	if hasPin {
		note += "; P has a pinned message, which stays"
	}
	return append(out, prose(note, width, st.Dim)...)
}

// biggest returns the largest turns that go.
func biggest(turns []compact.Turn) []compact.Turn {
	going := slices.DeleteFunc(slices.Clone(turns), func(t compact.Turn) bool { return t.Stays > 0 })
	slices.SortStableFunc(going, func(a, b compact.Turn) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return going[:min(len(going), mostItems)]
}

// staying returns the first turn that stays.
func staying(turns []compact.Turn) []compact.Turn {
	if i := slices.IndexFunc(turns, func(t compact.Turn) bool { return t.Stays > 0 }); i >= 0 {
		return turns[i : i+1]
	}
	return nil
}

// listed names turns by what the user said.
func listed(head string, turns []compact.Turn, width int) (out []string) {
	for i, t := range turns {
		if i > 0 {
			head = strings.Repeat(" ", len(head))
		}
		tokens := fmt.Sprintf("%6s", window.Short(t.Tokens))
		room := min(width-len(head)-2-len(tokens), 60)
		if room < 8 {
			return nil
		}
		what := short(fmt.Sprintf("#%d %s", t.Seq, transcript.Printable(transcript.OneLine(t.Text, 80))), room)
		out = append(out, head+" "+what+strings.Repeat(" ", room-displaywidth.String(what))+" "+tokens)
	}
	return out
}

// consequences are what the picture cannot show.
func consequences(r compact.Report) (out []string) {
	price := transcript.Price(r.Cost)
	switch {
	case !r.Asks:
		out = append(out, "price: nothing, a checkpoint has the summary")
	case price != "":
		out = append(out, fmt.Sprintf("price: %s, for a summary of about %s tokens", price, window.Short(r.Summary)))
	default:
		out = append(out, fmt.Sprintf("price: nothing, the summary of about %s tokens is made here", window.Short(r.Summary)))
	}
	if r.Pinned > 0 {
		out = append(out, transcript.Count(r.Pinned, "pinned message")+" kept word for word")
	}
	for _, q := range r.Open[:min(len(r.Open), mostItems)] {
		out = append(out, "open request kept: "+transcript.OneLine(transcript.Printable(q), 100))
	}
	if n := len(r.Lost); n > 0 {
		lost, more := r.Lost[:min(n, 8)], ""
		if n > len(lost) {
			more = fmt.Sprintf(" and %d more", n-len(lost))
		}
		out = append(out, fmt.Sprintf("may be lost from the summary (the log keeps them, and search finds them): %s%s", transcript.OneLine(transcript.Printable(strings.Join(lost, ", ")), 200), more))
	}
	return append(out, "nothing is deleted: /undo brings the earlier turns back")
}

package status

import (
	"fmt"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
	"goclaw/window"
)

// share is one thing in a bar: a letter, which stands for it without colours as
// well, and its tokens.
type share struct {
	letter, code string // the SGR code that it is painted with
	name, note   string
	tokens       int
}

// Window draws what fills a model's window: a bar, the thresholds below it, and
// a legend with the largest items.
func Window(x window.Breakdown, model string, width int, st transcript.Style) []string {
	b := x.Budget
	shares := sharesOf(x)
	size := b.Window
	if size <= 0 {
		size = max(b.Used, 1)
	}
	head := fmt.Sprintf("%s of %s tokens (%d%%)", window.Short(b.Used), window.Short(size), b.Percent())
	if b.Window <= 0 {
		head = window.Short(b.Used) + " tokens; the model's window is not known"
	}
	if named := transcript.Name(model) + ": " + head; displaywidth.String(named) <= width {
		head = named
	}
	cells := min(width, maxCells)
	used := 0
	for _, s := range shares {
		used += s.tokens
	}
	kept := share{letter: "░", code: "2", name: "kept free for the answer", tokens: min(b.Reserve, max(size-used, 0))}
	free := share{letter: "·", code: "2", name: "free", tokens: max(size-used-kept.tokens, 0)}
	out := []string{st.Bold(short(head, width)), shareBar(append(shares, free, kept), size, cells, st)}
	if b.Window > 0 {
		out = append(out, st.Dim(scale(cells)))
	}
	for _, s := range append(shares, kept, free) {
		if s.tokens > 0 {
			out = append(out, legend(s, size, width, st))
		}
	}
	out = append(out, items(x.Largest, size, width, st)...)
	for _, line := range remarks(x) {
		out = append(out, prose(line, width, st.Dim)...)
	}
	return out
}

// prose breaks a text into painted lines.
func prose(text string, width int, paint func(string) string) (out []string) {
	for _, l := range strings.Split(transcript.Wrap(text, width), "\n") {
		out = append(out, paint(short(l, width)))
	}
	return out
}

// maxCells is how wide a bar is at most: one cell for each percent.
const maxCells = 100

// mostTools is of how many tools the results are told apart.
const mostTools = 3

// sharesOf returns what is in the window, in the order of a request.
func sharesOf(x window.Breakdown) (out []share) {
	tools, rest := 0, share{letter: "R", code: "7;35", name: "results of other tools"}
	var results []share
	for _, p := range x.Parts {
		s := share{name: transcript.PartName(p.Name), tokens: p.Tokens}
		switch {
		case p.Name == "system":
			s.letter, s.code = "S", "7;34"
		case p.Name == "tools":
			s.letter, s.code, s.note = "T", "7;36", transcript.Count(p.Count, "tool")
		case p.Name == "summary":
			s.letter, s.code = "Z", "7;33"
		case p.Name == "user":
			s.letter, s.code, s.name, s.note = "Y", "7;32", "your messages", transcript.Count(p.Count, "message")
		case p.Name == "assistant":
			s.letter, s.code, s.note = "A", "7", transcript.Count(p.Count, "message")
		case strings.HasPrefix(p.Name, "tool:"):
			s.letter, s.code, s.note = "R", "7;35", transcript.Count(p.Count, "result")
			if tools++; tools > mostTools {
				rest.tokens += p.Tokens
				rest.note = transcript.Count(tools-mostTools, "tool")
				continue
			}
			results = append(results, s)
			continue
		case p.Name == "notice":
			s.letter, s.code = "N", "7;31"
		default: // instructions, skills and the like, by their names
			s.letter, s.code = "I", "7;34"
		}
		out = append(out, s)
	}
	if out = append(out, results...); rest.tokens > 0 {
		out = append(out, rest)
	}
	if x.Other > 0 {
		out = append(out, share{letter: "+", code: "7", name: "counted by the model only", tokens: x.Other})
	}
	return out
}

// shareBar draws shares of size in so many cells. A cell shows what is in its
// middle, so that the whole is never rounded away.
func shareBar(shares []share, size, cells int, st transcript.Style) string {
	var b strings.Builder
	end, i := 0, 0
	for _, s := range shares {
		end += s.tokens
		n := 0
		for i+n < cells && int64(2*(i+n)+1)*int64(size) < int64(end)*int64(2*cells) {
			n++
		}
		b.WriteString(st.Paint(s.code, strings.Repeat(s.letter, n)))
		i += n
	}
	return b.String()
}

// scale marks the thresholds below a bar of so many cells.
func scale(cells int) string {
	line := ""
	for _, t := range thresholds {
		text := fmt.Sprintf("└%d%%", t)
		at := mark(t, cells)
		if pad := at - displaywidth.String(line); pad >= 0 && at+displaywidth.String(text) <= cells {
			line += strings.Repeat(" ", pad) + text
		}
	}
	return line
}

// legend is the line of a share.
func legend(s share, size, width int, st transcript.Style) string {
	figures := fmt.Sprintf("%6s %4s", window.Short(s.tokens), percent(s.tokens, size))
	room := width - 2 - 1 - len(figures)
	name := short(transcript.Name(s.name), min(max(room, 1), nameCells))
	line := name + strings.Repeat(" ", max(min(room, nameCells)-displaywidth.String(name), 0)) + " " + figures
	if s.note != "" && 2+displaywidth.String(line)+2+len(s.note) <= width {
		line += "  " + st.Dim(s.note)
	}
	return st.Paint(s.code, s.letter) + " " + line
}

// nameCells is how wide the names of a legend are.
const nameCells = 32

func percent(n, of int) string {
	if p := n * 100 / max(of, 1); p > 0 || n == 0 {
		return fmt.Sprintf("%d%%", p)
	}
	return "<1%"
}

// mostItems is how many of the largest items are named.
const mostItems = 3

// items names the largest messages and results.
func items(list []window.Item, size, width int, st transcript.Style) (out []string) {
	if len(list) == 0 {
		return nil
	}
	out = append(out, "largest")
	for _, it := range list[:min(len(list), mostItems)] {
		figures := fmt.Sprintf("%6s %4s", window.Short(it.Tokens), percent(it.Tokens, size))
		what := strings.TrimSpace(transcript.PartName(it.Part) + ": " + transcript.OneLine(transcript.Printable(it.Text), 80))
		if it.Call.Name != "" {
			what = transcript.CallLine(it.Call)
		}
		what = fmt.Sprintf("#%d %s", it.Seq, what)
		room := min(width-2-1-len(figures), 56)
		what = short(what, max(room, 1))
		out = append(out, "  "+what+strings.Repeat(" ", max(room-displaywidth.String(what), 0))+" "+figures)
	}
	return out
}

// remarks are what else there is to say.
func remarks(x window.Breakdown) (out []string) {
	if x.Pins > 0 {
		out = append(out, fmt.Sprintf("%s tokens of these are pinned (%s)", window.Short(x.Pinned), transcript.Count(x.Pins, "message")))
	}
	if x.Compactions > 0 {
		out = append(out, "compacted "+transcript.Count(x.Compactions, "time"))
	}
	if x.Warned {
		saved := "has not written"
		if x.Saved {
			saved = "has written"
		}
		out = append(out, "the model knows how full its window is, and "+saved+" to its memory since")
	}
	spent := fmt.Sprintf("spent so far: %s tokens in, %s out", window.Short(x.Spent.Prompt()), window.Short(x.Spent.Output))
	if x.Cost > 0 {
		spent += ", about " + transcript.Dollars(x.Cost)
	}
	return append(out, spent)
}

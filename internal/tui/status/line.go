// Package status draws what a person wants to see at a glance: the status line,
// and pictures of what fills a model's window and of what a compaction would do.
//
// Everything here is a pure function of values that others fill in. Nothing is
// wider than the width that it is given, and everything can be read without
// colours.
package status

import (
	"fmt"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/repl"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/window"
)

// Line draws s, and how many messages are queued, in one line if that is wide
// enough, else in two. What does not fit is shortened and then left out, in a
// fixed order. hint comes last, where there is room.
func Line(s repl.Status, queued int, hint string, width int, st transcript.Style) []string {
	switch {
	case s.Model == "" && hint == "":
		return nil
	case s.Model == "": // the chat is not open yet
		return []string{draw([]piece{texts(st.Dim, short(hint, width))})}
	}
	d := drawing{Status: s, queue: queued, st: st}
	who := []piece{d.model(), d.folder(), texts(plain, transcript.Name(d.Title))}
	how := []piece{d.window(), d.cost(), d.mode(), d.queued(), d.events(), texts(st.Dim, hint, "")}
	if all := append(append([]piece{}, who...), how...); width >= oneLine && wide(all) <= width {
		return []string{draw(all)}
	}
	d.share(who, width)
	// What /usage and /mode tell as well goes first; what is happening now stays
	// longest.
	fit(how, width, 1, 2, 5, 1, 0, 0, 4, 3, 1, 0, 1, 4, 0)
	var out []string
	for _, row := range [][]piece{who, how} {
		if line := draw(row); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// oneLine is from how many columns on everything may stand in one line: in a
// narrower terminal a line that is sometimes one and sometimes two would jump.
const oneLine = 120

// between stands between two pieces, and takes gap columns.
const (
	between = " · "
	gap     = 3
)

// piece is one thing that is shown: its forms, from the longest to the
// shortest. The empty form leaves it out.
type piece struct {
	forms []form
	at    int
}

// form is a text and how it is painted. A form that is painted in parts has its
// text in plain for measuring.
type form struct{ plain, painted string }

func (p piece) now() form {
	if len(p.forms) == 0 {
		return form{}
	}
	return p.forms[p.at]
}

// shorter makes the piece shorter, if it can be.
func (p *piece) shorter() {
	if p.at < len(p.forms)-1 {
		p.at++
	}
}

// fit shortens pieces by one form each, in the order of which, until they fit.
// In a terminal that is too narrow even for that, the last pieces are left out.
func fit(row []piece, width int, which ...int) {
	for _, i := range which {
		if wide(row) <= width {
			return
		}
		row[i].shorter()
	}
	for i := len(row) - 1; i > 0 && wide(row) > width; i-- {
		row[i] = piece{}
	}
	if wide(row) > width {
		row[0] = texts(plain, short(row[0].now().plain, width))
	}
}

// share gives the title what the model and the folder leave of the first line.
// They are shortened, the folder first, until that is enough to read.
func (d drawing) share(who []piece, width int) {
	rest := 0
	title := displaywidth.String(who[2].now().plain)
	for _, c := range []struct{ model, folder, title int }{{0, 0, 40}, {1, 0, 40}, {1, 1, 32}, {1, 2, 24}, {1, 3, 20}, {2, 3, 14}, {3, 3, 1}} {
		who[0].at, who[1].at = min(c.model, len(who[0].forms)-1), min(c.folder, len(who[1].forms)-1)
		if rest = width - wide(who[:2]) - gap; rest >= min(title, c.title) {
			break
		}
	}
	if rest > 0 {
		who[2] = texts(plain, short(transcript.Name(d.Title), rest))
	} else {
		who[2] = piece{}
	}
	fit(who, width)
}

// wide returns how many columns a row takes.
func wide(row []piece) int {
	sum := 0
	for _, p := range row {
		if text := p.now().plain; text != "" {
			sum += displaywidth.String(text) + gap
		}
	}
	return max(sum-gap, 0)
}

// draw returns a row as it is written to a terminal.
func draw(row []piece) string {
	var out []string
	for _, p := range row {
		if f := p.now(); f.plain != "" {
			out = append(out, f.painted)
		}
	}
	return terminal.Text(strings.Join(out, between))
}

// drawing makes the pieces of a status.
type drawing struct {
	repl.Status
	queue int
	st    transcript.Style
}

// texts makes a piece of plain texts.
func texts(paint func(string) string, texts ...string) (p piece) {
	for _, t := range texts {
		if n := len(p.forms); n > 0 && p.forms[n-1].plain == t {
			continue
		}
		p.forms = append(p.forms, form{t, paint(t)})
	}
	return p
}

// short cuts text to n columns.
func short(text string, n int) string { return transcript.OneLine(text, n) }

func (d drawing) model() piece {
	name := transcript.Name(d.Model)
	bare := name[strings.LastIndexByte(name, '/')+1:]
	return texts(d.st.Bold, short(name, 48), short(bare, 32), short(bare, 16), short(bare, 10))
}

func (d drawing) folder() piece {
	path := transcript.Name(d.Folder)
	last := path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1:]
	tail := last
	if last != path {
		tail = "…/" + last
	}
	return texts(d.st.Cyan, short(path, 40), short(tail, 24), short(last, 12), "")
}

func plain(text string) string { return text }

// window shows how full the window is.
func (d drawing) window() piece {
	used := window.Short(d.Used)
	switch {
	case d.Used == 0:
		return texts(d.st.Dim, "window …", "")
	case d.Window <= 0:
		return texts(plain, used+" tokens", used)
	}
	b := window.Budget{Window: d.Window, Used: d.Used}
	percent := fmt.Sprintf("%d%%", b.Percent())
	paint := level(d.st, b.Percent())
	var p piece
	for _, f := range []struct {
		cells int
		of    string
	}{{20, " of " + window.Short(d.Window)}, {16, " of " + window.Short(d.Window)}, {10, ""}, {5, ""}} {
		bar := Bar(d.Used, d.Window, f.cells)
		p.forms = append(p.forms, form{bar + " " + percent + f.of, paint(bar) + " " + paint(percent) + d.st.Dim(f.of)})
	}
	return piece{forms: append(p.forms, form{percent, paint(percent)})}
}

// cost shows what the last turn and the session have cost.
func (d drawing) cost() piece {
	if !d.Priced {
		return texts(d.st.Dim, "price not known", "no price", "")
	}
	turn, all := transcript.Dollars(d.Last), transcript.Dollars(d.Total)
	return texts(plain, turn+" last turn, "+all+" in all", "last "+turn+", all "+all, turn+"/"+all, all, "")
}

// mode shows what is done without asking.
func (d drawing) mode() piece {
	mode := transcript.Name(d.Mode)
	paint := plain
	switch mode {
	case "":
		return piece{}
	case "all":
		paint = d.st.Red
	case "plan":
		paint = d.st.Cyan
	}
	return texts(paint, "mode "+mode, mode)
}

func (d drawing) queued() piece {
	if d.queue == 0 {
		return piece{}
	}
	return texts(d.st.Yellow, fmt.Sprintf("%d queued", d.queue), fmt.Sprintf("+%d", d.queue))
}

// events shows what happens in the background, or has just happened.
func (d drawing) events() piece {
	switch {
	case d.Background != "":
		return texts(d.st.Yellow, d.Background+"…", short(d.Background, 6), "")
	case d.Compacted > 0:
		n := window.Short(d.Compacted)
		return texts(d.st.Yellow, "compacted −"+n, "−"+n, "")
	}
	return piece{}
}

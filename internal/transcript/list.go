package transcript

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"goclaw/session"
	"goclaw/window"
)

// Row is a session in a list.
type Row struct {
	session.Info
	Window int  // of its model, in tokens; 0: not known
	Open   bool // the chat is in it
}

// Sessions lists sessions by number, from 1. The lines fit a terminal with that many columns: what is less important is left
// out, texts are cut, and on a narrow one each session has two lines. The number,
// which stands for the session in every command, is always whole. Without a
// terminal (0 columns) nothing is cut.
func Sessions(rows []Row, now time.Time, st Style, width int) []string {
	l := list{rows: rows, now: now, keys: make([]string, len(rows))}
	for i, in := range rows {
		l.keys[i] = strings.Join(strings.Fields(Name(in.Key)), " ")
	}
	if width == 0 {
		l.distinguish()
	}
	for i, cols := range looks {
		cells := l.cells(cols)
		least := least
		if i == len(looks)-1 {
			least = tight
		}
		widths, ok := squeezed(cells, cols, least, width)
		if !ok {
			continue
		}
		var out []string
		for _, row := range cells {
			var b strings.Builder
			for i, w := range widths {
				c := cut(row[i], w, cols[i])
				b.WriteString(c + strings.Repeat(" ", max(w-displaywidth.String(c), 0)+2))
			}
			out = append(out, strings.TrimRight(b.String(), " "))
		}
		out[0] = st.Bold(out[0])
		return out
	}
	return l.narrow(st, width)
}

// column is a part of a list, named by its head.
type column string

const (
	cNumber  column = "#"
	cKey     column = "KEY"
	cTitle   column = "TITLE"
	cTurns   column = "TURNS"
	cContext column = "CONTEXT"
	cFull    column = "FULL"
	cUsed    column = "LAST USED"
	cAge     column = "AGE"
	cFolder  column = "FOLDER"
	cModel   column = "MODEL"
	cFrom    column = "FROM"
)

// looks are the ways to show a list in lines, the one that shows most first.
var looks = [][]column{
	{cNumber, cKey, cTitle, cTurns, cContext, cUsed, cFolder, cModel, cFrom},
	{cNumber, cKey, cTitle, cTurns, cContext, cUsed, cFolder, cFrom},
	{cNumber, cKey, cTitle, cTurns, cContext, cUsed, cFolder},
	{cNumber, cKey, cTitle, cTurns, cFull, cAge, cFolder},
}

// least is how far the cells of a column may be cut before another look is
// better. What is not here is never cut.
var least = map[column]int{cKey: 15, cTitle: 24, cFolder: 12, cModel: 16}

// tight is least in the last of looks.
var tight = map[column]int{cKey: 13, cTitle: 20, cFolder: 14}

type list struct {
	rows []Row
	keys []string
	now  time.Time
}

func (l *list) cells(cols []column) [][]string {
	head := make([]string, len(cols))
	for i, c := range cols {
		head[i] = string(c)
	}
	out := [][]string{head}
	for i := range l.rows {
		row := make([]string, len(cols))
		for k, c := range cols {
			row[k] = l.cell(i, c)
		}
		out = append(out, row)
	}
	return out
}

func (l *list) cell(i int, c column) string {
	in := l.rows[i]
	switch c {
	case cNumber:
		return l.number(i)
	case cKey:
		return l.keys[i]
	case cTitle:
		return title(in.Info)
	case cTurns:
		return fmt.Sprint(in.Turns)
	case cContext:
		if in.Used == 0 || in.Window == 0 {
			return full(in)
		}
		return window.Short(in.Used) + " " + full(in)
	case cFull:
		return full(in)
	case cUsed:
		return Ago(l.now.Sub(in.Updated))
	case cAge:
		return Age(l.now.Sub(in.Updated))
	case cFolder:
		return Name(Tilde(in.CWD))
	case cModel:
		return Name(in.ModelName())
	}
	return Source(in.Info)
}

// number is the number of row i, as wide as the last one, and a star if the chat
// is in that session.
func (l *list) number(i int) string {
	mark := ""
	if l.rows[i].Open {
		mark = "*"
	}
	return fmt.Sprintf("%*d%s", len(fmt.Sprint(len(l.rows))), i+1, mark)
}

// title is the title of a session after its mark, if it has one.
func title(in session.Info) string {
	t := Name(strings.Join(strings.Fields(in.Title), " "))
	if in.Origin.Mark != "" {
		t = strings.TrimSpace("[" + Name(in.Origin.Mark) + "] " + t)
	}
	return t
}

// full says how full the window is, or how many tokens the context has if that is
// not known.
func full(in Row) string {
	switch {
	case in.Used == 0:
		return ""
	case in.Window == 0:
		return window.Short(in.Used)
	}
	return fmt.Sprintf("%d%%", in.Used*100/in.Window)
}

// squeezed returns the widths of columns that fit a terminal: the widest is cut
// first, titles last. ok is false if they do not fit.
func squeezed(cells [][]string, cols []column, least map[column]int, width int) (widths []int, ok bool) {
	widths = columns(cells)
	for width > 0 && total(widths) > width {
		at := -1
		for i, c := range cols {
			switch n := least[c]; {
			case n == 0 || widths[i] <= n:
			case at < 0 || cols[at] == cTitle || c != cTitle && widths[i] > widths[at]:
				at = i
			}
		}
		if at < 0 {
			return nil, false
		}
		widths[at]--
	}
	return widths, true
}

// cut cuts a cell to w columns. Of a folder the end is kept.
func cut(cell string, w int, c column) string {
	if c != cFolder {
		return displaywidth.TruncateString(cell, w, "…")
	}
	return KeepEnd(cell, w)
}

// narrow lists sessions in two lines each: what it is about, or the key, and the
// rest.
func (l *list) narrow(st Style, width int) []string {
	var out []string
	for i, in := range l.rows {
		n := l.number(i)
		pad := strings.Repeat(" ", displaywidth.String(n)+1)
		room := max(width-len(pad), 8)
		out = append(out, n+" "+displaywidth.TruncateString(cmp.Or(title(in.Info), Name(in.Key)), room, "…"))
		about := []string{Age(l.now.Sub(in.Updated)), Count(in.Turns, "turn")}
		if f := full(in); f != "" {
			about = append(about, f)
		}
		line := strings.Join(about, ", ")
		if f := Name(Tilde(in.CWD)); f != "" {
			line += ", " + cut(f, max(room-len(line)-2, 6), cFolder)
		}
		out = append(out, pad+st.Dim(displaywidth.TruncateString(line, room, "…")))
	}
	return out
}

// distinguish adds to keys that are the same the beginning of each session's id,
// which can be typed instead of the key.
func (l *list) distinguish() {
	same := map[string][]int{}
	for i, key := range l.keys {
		same[key] = append(same[key], i)
	}
	for _, group := range same {
		if len(group) == 1 {
			continue
		}
		n := 8
		for i := range group {
			for _, k := range group[:i] {
				a, b := string(l.rows[group[i]].ID), string(l.rows[k].ID)
				for n < max(len(a), len(b)) && a[:min(n, len(a))] == b[:min(n, len(b))] {
					n++
				}
			}
		}
		for _, i := range group {
			id := string(l.rows[i].ID)
			l.keys[i] += " (" + Name(id[:min(n, len(id))]) + ")"
		}
	}
}

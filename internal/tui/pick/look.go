package pick

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
)

// wide is from how many columns on the preview stands beside the list.
const wide = 100

// look is the preview of a session: what it is, and what was said last, or
// around what was found in it.
type look struct {
	store session.Store
	width int  // of the screen
	on    bool // Tab: instead of the list, on a narrow screen
	off   bool // Tab: not, on a wide one

	loading bool
	of      place // what lines are of
	lines   []recall.Line
	err     error
}

// place is a record of a session; 0 is its end.
type place struct {
	id   session.ID
	last session.Seq // what the log ended with
	seq  session.Seq
}

// looked is what was read for a preview.
type looked struct {
	of    *look
	place place
	lines []recall.Line
	err   error
}

// shown reports whether the preview is on the screen, beside the list or in its
// place.
func (l *look) shown() bool { return l.beside() || l.instead() }

func (l *look) beside() bool { return l.width >= wide && !l.off }

func (l *look) instead() bool { return l.width < wide && l.on }

func (l *look) toggle() {
	if l.width >= wide {
		l.off = !l.off
	} else {
		l.on = !l.on
	}
}

// at reads what is said in r, if that is to be shown and not read already. One is
// read at a time, so that scrolling through many reads few.
func (l *look) at(ctx context.Context, r *row, hits map[session.ID]recall.Hit) tea.Cmd {
	if r == nil || !l.shown() || l.loading {
		return nil
	}
	p := place{id: r.ID, last: r.Last, seq: hits[r.ID].Seq}
	if p == l.of {
		return nil
	}
	l.loading = true
	return func() tea.Msg {
		before, after := 6, 0
		if p.seq > 0 {
			before, after = 1, 4
		}
		lines, err := recall.Around(ctx, l.store, p.id, p.seq, before, after)
		return looked{l, p, lines, err}
	}
}

// took takes what was read.
func (l *look) took(m looked) {
	if m.of == l {
		l.loading, l.of, l.lines, l.err = false, m.place, m.lines, m.err
	}
}

// mostShown is how many bytes of a message a preview shows.
const mostShown = 4000

// view shows the preview of r in so many columns and lines.
func (l *look) view(r *row, query string, hit recall.Hit, now time.Time, width, height int) []string {
	if r == nil {
		return nil
	}
	out := []string{paint(cBold, cut(r.title, width))}
	about := func(what, is string) {
		if is != "" {
			out = append(out, paint(cDim, what+" ")+cut(is, width-len(what)-1))
		}
	}
	about("key", name(r.Key))
	about("from", transcript.Source(r.Info))
	about("folder", transcript.KeepEnd(name(transcript.Tilde(r.CWD)), width-7))
	about("model", name(r.ModelName()))
	about("used", cmp.Or(age(now, r.Updated), "?")+", "+r.Updated.Local().Format("2006-01-02 15:04"))
	about("has", fmt.Sprintf("%s, %s", transcript.Count(r.Turns, "turn"), transcript.Count(r.Records, "record")))
	out = append(out, "")
	room := max(height-len(out), 0)
	if l.of.id != r.ID {
		return out
	}
	if l.err != nil {
		return append(out, paint(cBad, cut(name(l.err.Error()), width)))
	}
	var said []string
	for _, line := range l.lines {
		said = append(said, spoken(line, query, hit, mostShown, width)...)
	}
	if l.of.seq == 0 { // what was said last stands at the end
		said = said[max(len(said)-room, 0):]
	}
	return append(out, said...)
}

// spoken shows what somebody said, at most so many bytes of it.
func spoken(l recall.Line, query string, hit recall.Hit, most, width int) []string {
	code := cDim
	switch l.Role {
	case recall.User:
		code = cUser
	case recall.Assistant:
		code = cModel
	}
	head := paint(code, string(l.Role)) + paint(cDim, fmt.Sprintf("  #%d", l.Seq))
	if !l.Time.IsZero() && width >= 40 {
		head += paint(cDim, "  "+l.Time.Local().Format("2006-01-02 15:04"))
	}
	text := l.Text
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	out := []string{head}
	for _, p := range paragraphs(text, width) {
		if hit.Seq == l.Seq && query != "" {
			hit.Text = p
			p = marked(p, hit.Marks(query), "")
		}
		out = append(out, p)
	}
	return append(out, "")
}

package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw/internal/query"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
)

// chooser is a Display on which people choose from what there is.
type chooser interface {
	// ChooseSession returns the session that was chosen, "" if none was.
	ChooseSession(ctx context.Context, c SessionChoice) (session.ID, error)
	// ChoosePoint returns the point of a session to go back to, nil if none was
	// chosen. load reads the session from its first record.
	ChoosePoint(ctx context.Context, clock session.Clock, load func(context.Context) (*session.Session, error)) (*Point, error)
	// ChooseHit searches, and returns where to go.
	ChooseHit(ctx context.Context, c HitChoice) (Found, error)
	// ChooseRow returns which row of a table was chosen, from 1, or 0. The first
	// row is the head; at is where the cursor stands at first.
	ChooseRow(ctx context.Context, title string, rows [][]string, at int, more []string) (int, error)
	// ShowTexts shows texts from a log, each with a title, beginning with the one
	// at i.
	ShowTexts(ctx context.Context, texts [][2]string, i int) error
}

// HitChoice is what a search works with.
type HitChoice struct {
	Store session.Store
	Clock session.Clock
	// Find searches for a line with the flags of goclaw search in it. It returns
	// what was found, the text that was looked for, and what else there is to know.
	Find func(ctx context.Context, line string) (hits []recall.Hit, text string, remarks []string, err error)
	File func(name string, from, lines int) (text string, total int, err error)
	Text string // what is looked for at first
}

// Found is a record of a session to go to.
type Found struct {
	Session session.ID // "": none was chosen
	Seq     session.Seq
	Fork    bool // to a copy of the session up to it
}

// SessionChoice is what sessions are chosen from, and how.
type SessionChoice struct {
	Store  session.Store
	Clock  session.Clock
	Search query.Searcher // nil: what was said is not searched
	Folder string         // the sessions of this folder can be shown alone
	Open   session.ID     // the session that the chat is in; "": none
	Text   string         // what they are filtered by at first
	All    bool           // subagents' sessions, too
	Here   bool           // only those of Folder at first, if there are any among the latest
}

// Point is a point of a session to go back to.
type Point struct {
	Record session.Record
	End    bool // to the end of the branch that ends with Record; else to before it
	Live   bool // it is on the branch that the chat is on
}

// chooser returns where people choose, nil if that is nowhere.
func (v *view) chooser() chooser {
	c, _ := v.screen.(chooser)
	return c
}

// errNonePicked means that the user picked no session, and leaves.
var errNonePicked = errors.New("repl: no session was picked")

// pick lets the user choose the session that the chat begins with.
func (o *Options) pick(ctx context.Context, from chooser) (*session.Session, error) {
	id, err := from.ChooseSession(ctx, o.sessions(SessionChoice{Text: o.Pick.Text, Here: true}))
	switch {
	case err != nil:
		return nil, err
	case id == "":
		return nil, errNonePicked
	}
	return session.Open(ctx, o.Store, id)
}

// choose lets the user choose a session, and goes there.
func choose(ctx context.Context, c *commands, from chooser, all bool) error {
	id, err := from.ChooseSession(ctx, c.o.sessions(SessionChoice{Open: c.cur.ID, All: all}))
	if err != nil {
		return err
	}
	if id != "" && id != c.cur.ID {
		return c.goTo(ctx, id)
	}
	if c.cur.ID == "" {
		return nil
	}
	now, err := session.Stat(ctx, c.o.Store, c.cur.ID)
	switch {
	case errors.Is(err, session.ErrNotFound), err == nil && !now.Trashed.IsZero(): // deleted there
		return c.new(ctx, "")
	case err == nil:
		c.cur.Info = now // it may have another title
	}
	return err
}

// sessions adds to x what all choices of sessions have.
func (o *Options) sessions(x SessionChoice) SessionChoice {
	x.Store, x.Clock, x.Folder = o.Store, o.Clock, o.CWD
	if o.Search != nil {
		x.Search = o.Search
	}
	return x
}

// point lets the user choose a point of this session, and goes back to it.
func (b *branches) point(ctx context.Context, from chooser) error {
	var s *session.Session
	p, err := from.ChoosePoint(ctx, b.chat.o.Clock, func(ctx context.Context) (read *session.Session, err error) {
		read, err = b.cur.whole(ctx)
		s = read
		return read, err
	})
	switch {
	case err != nil || p == nil:
		return err
	case p.End:
		return b.goOn(ctx, s, p.Record.ID, p.Record.Seq, "switched to the other branch")
	}
	return b.back(ctx, s, p.Record)
}

// choose searches while the user types, and goes where they want.
func (f *finds) choose(ctx context.Context, from chooser) error {
	to, err := from.ChooseHit(ctx, HitChoice{Store: f.o.Store, Clock: f.o.Clock, Find: f.find, File: f.o.Search.File})
	switch {
	case err != nil || to.Session == "":
		return err
	case !to.Fork && to.Session == f.commands.cur.ID:
		f.view.note("record %d is in this session: /show %d shows it", to.Seq, to.Seq)
		return nil
	case !to.Fork:
		return f.commands.goTo(ctx, to.Session)
	}
	s, err := session.Replay(to.Session, f.o.Store.Read(ctx, to.Session, 0))
	if err != nil {
		return err
	}
	own, err := session.Fork(ctx, f.o.Store, s, "", to.Seq, f.o.Clock)
	if err != nil {
		return err
	}
	f.view.note("forked %s as %s, up to record %d", s.Key, own.Key, to.Seq)
	f.commands.chat.enter(ctx, own)
	return nil
}

// manyFound is how many hits are found for somebody who looks through them.
const manyFound = 50

// find searches for a line.
func (f *finds) find(ctx context.Context, line string) (hits []recall.Hit, text string, remarks []string, err error) {
	a, err := f.asked(ctx, line, nil)
	switch {
	case errors.Is(err, errNoWords): // none are typed yet
		return nil, "", nil, nil
	case err != nil:
		return nil, "", nil, err
	}
	if a.flags.Limit == query.Limit {
		a.Limit = manyFound
	}
	res, err := f.o.Search.Search(ctx, a.Query)
	return res.Hits, a.Text, query.Remarks(res), err
}

// choose lets the user choose a model. It returns its name, "" for none.
func (c *modelCommands) choose(ctx context.Context, from chooser, all bool) (string, error) {
	models := c.o.Choices(ctx, all)
	at := 0
	for i, name := range models.Names {
		if name == c.o.Model().Name {
			at = i + 1
		}
	}
	n, err := from.ChooseRow(ctx, "Choose a model", models.Rows, at, models.More)
	if err != nil || n < 1 || n > len(models.Names) {
		return "", err
	}
	return models.Names[n-1], nil
}

// chooseLevel lets the user choose how much the model thinks.
func (c *modelCommands) chooseLevel(ctx context.Context, from chooser) (string, error) {
	s, err := c.cur.open(ctx)
	if err != nil {
		return "", err
	}
	now, levels := c.o.Think(s), c.levels()
	rows, at := [][]string{{"LEVEL", ""}}, 0
	for i, l := range levels {
		about := ""
		switch {
		case l == now.Level:
			about, at = "now; "+now.From, i+1
		case l == standard:
			if about = "as the configuration says, or as the model decides"; now.Level == "" {
				at = i + 1
			}
		}
		rows = append(rows, []string{l, about})
	}
	var more []string
	if now.Note != "" {
		more = append(more, now.Note)
	}
	n, err := from.ChooseRow(ctx, "How much "+c.o.Model().Name+" thinks before it answers", rows, at, more)
	if err != nil || n < 1 || n > len(levels) {
		return "", err
	}
	return levels[n-1], nil
}

// checkpointTexts returns the checkpoints of s in full, each with a title.
func checkpointTexts(s *session.Session) (out [][2]string) {
	for _, r := range s.Branch {
		cp, ok := r.Body.(session.Checkpoint)
		if !ok {
			continue
		}
		title := fmt.Sprintf("checkpoint, record %d, %s, of %s", r.Seq, r.Time.Local().Format("2006-01-02 15:04"), transcript.Count(cp.Messages, "message"))
		if cp.Model != "" {
			title += ", by " + transcript.Name(cp.Model)
		}
		text := cp.Summary
		for _, l := range []struct {
			name  string
			items []string
		}{{"Topics", cp.Topics}, {"Decisions", cp.Decisions}, {"Open questions", cp.Questions}} {
			if len(l.items) > 0 {
				text += "\n\n" + l.name + ":\n- " + strings.Join(l.items, "\n- ")
			}
		}
		out = append(out, [2]string{title, text})
	}
	return out
}

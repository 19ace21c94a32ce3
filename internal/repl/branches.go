package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/attach"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// branches are the commands that go back in a session, and to what was left.
// Nothing is removed: what came after stays as a branch of the log.
type branches struct {
	chat *Chat
	cur  *current
	view *view
}

// drafter is an Input that can begin with a text.
type drafter interface{ Draft(text string) }

// rewind goes back to before a message of the user, and offers its text to be
// changed and sent again.
func (b *branches) rewind(ctx context.Context, arg string) error {
	s, err := b.cur.whole(ctx)
	if err != nil {
		return err
	}
	at, err := turnOf(s, arg)
	if err != nil {
		return err
	}
	return b.back(ctx, s, s.Branch[at])
}

// back goes back to before the message rec of s.
func (b *branches) back(ctx context.Context, s *session.Session, rec session.Record) error {
	if s.Mirror() { // it is never written to; in its continuation the message has another number
		if !slices.ContainsFunc(s.Branch, func(r session.Record) bool { return r.ID == rec.ID }) {
			return onlyRead(s, rec.Seq)
		}
		if err := b.chat.own(ctx); err != nil {
			return err
		}
		var err error
		if s, err = b.cur.whole(ctx); err != nil {
			return err
		}
		at := slices.IndexFunc(s.Branch, func(r session.Record) bool { return r.ID == rec.ID })
		if at < 0 {
			return errors.New("this session goes on without that message: /history shows the numbers")
		}
		rec = s.Branch[at]
	}
	path := s.Path(rec.ID)
	if len(path) == 0 {
		return fmt.Errorf("record %d is on no branch of this session", rec.Seq)
	}
	var err error
	if before := previous(path[:len(path)-1]); before == "" {
		err = b.cur.restart(ctx)
	} else {
		err = b.cur.record(ctx, session.Leaf{Target: before})
	}
	if err != nil {
		return err
	}
	b.view.note("back to before record %d; what came after is kept as a branch (/tree). Files are as they are now.", rec.Seq)
	text := attach.Words(rec.Body.(session.Message).Message)
	if in, ok := b.chat.in.(drafter); ok {
		in.Draft(text)
		return nil
	}
	b.view.print("The message was: %s", transcript.Printable(text))
	return nil
}

// onlyRead is why nothing is changed in an imported session.
func onlyRead(s *session.Session, at session.Seq) error {
	return fmt.Errorf("this session is another program's and is only read: goclaw sessions fork %s --at %d copies that branch", s.ID, at)
}

// turnOf returns where the branch has the user's message with the number arg,
// or the last one.
func turnOf(s *session.Session, arg string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
	if arg != "" && (err != nil || n < 1) {
		return 0, fmt.Errorf("/rewind takes the number of one of your messages, not %q", arg)
	}
	for i := len(s.Branch) - 1; i >= 0; i-- {
		if session.IsTurn(s.Branch[i].Body) && (arg == "" || s.Branch[i].Seq == session.Seq(n)) {
			return i, nil
		}
	}
	if arg == "" {
		return 0, errors.New("nothing has been said yet")
	}
	return 0, fmt.Errorf("record %d is not one of your messages here: /history shows their numbers", n)
}

// previous returns the id of the last record of a branch that another can
// continue.
func previous(branch []session.Record) string {
	for i := len(branch) - 1; i >= 0; i-- {
		switch branch[i].Body.(type) {
		case session.Header, session.Unknown, session.Leaf:
		default:
			if branch[i].ID != "" {
				return branch[i].ID
			}
		}
	}
	return ""
}

// tree lists the branches, or switches to one of them.
func (b *branches) tree(ctx context.Context, arg string) error {
	if ch := b.view.chooser(); ch != nil && arg == "" && b.cur.ID != "" {
		return b.point(ctx, ch)
	}
	s, err := b.cur.whole(ctx)
	if err != nil {
		return err
	}
	tips := slices.DeleteFunc(s.Tips(), func(t session.Tip) bool { // nothing was said there
		return !t.Live && !slices.ContainsFunc(s.Path(t.ID), func(r session.Record) bool { return session.IsTurn(r.Body) })
	})
	if arg == "" {
		if len(tips) < 2 {
			b.view.print("there is one branch: /rewind goes back, and begins another")
			return nil
		}
		b.list(s, tips)
		return nil
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > len(tips) {
		return fmt.Errorf("/tree takes a number from 1 to %d, not %q", len(tips), arg)
	}
	tip := tips[n-1]
	if tip.Live {
		b.view.note("this is the branch you are on")
		return nil
	}
	return b.goOn(ctx, s, tip.ID, tip.Seq, fmt.Sprintf("switched to branch %d", n))
}

// goOn goes on at the end of a branch of s, the record id with the number seq.
func (b *branches) goOn(ctx context.Context, s *session.Session, id string, seq session.Seq, said string) error {
	if s.Mirror() {
		return onlyRead(s, seq)
	}
	if err := b.cur.record(ctx, session.Leaf{Target: id}); err != nil {
		return err
	}
	s, err := b.cur.open(ctx)
	if err != nil {
		return err
	}
	b.view.note("%s; the other is kept. Files are as they are now.", said)
	b.view.preview(s)
	return nil
}

// list shows the branches, each with the first message that no other has.
func (b *branches) list(s *session.Session, tips []session.Tip) {
	paths, on := make([][]session.Record, len(tips)), map[session.Seq]int{}
	for i, tip := range tips {
		paths[i] = s.Path(tip.ID)
		for _, r := range paths[i] {
			on[r.Seq]++
		}
	}
	rows := [][]string{{"", "#", "TURNS", "BEGINS AT", "FIRST WORDS"}}
	for i, tip := range tips {
		mark, own, turns, words := " ", "", 0, ""
		if tip.Live {
			mark = "*"
		}
		for _, r := range paths[i] {
			m, ok := r.Body.(session.Message)
			if !ok || !session.IsTurn(r.Body) {
				continue
			}
			turns++
			if words == "" && on[r.Seq] == 1 {
				own, words = fmt.Sprint(r.Seq), m.Text()
			}
		}
		if tip.Live {
			own, words = "", "(you are here) "+lastWords(s)
		}
		rows = append(rows, []string{mark, fmt.Sprint(i + 1), fmt.Sprint(turns), own, transcript.OneLine(transcript.Printable(words), 60)})
	}
	b.view.table(rows)
}

// lastWords returns the last message of the user on the branch.
func lastWords(s *session.Session) string {
	for i := len(s.Branch) - 1; i >= 0; i-- {
		if m, ok := s.Branch[i].Body.(session.Message); ok && session.IsTurn(m) {
			return m.Text()
		}
	}
	return ""
}

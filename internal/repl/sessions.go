package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goclaw/internal/mirrors"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func (c *commands) new(ctx context.Context, label string) error {
	label = strings.Join(strings.Fields(label), " ")
	key, err := c.freeKey(ctx, slug(label))
	if err != nil {
		return err
	}
	h := session.Header{Key: key, CWD: c.o.CWD}
	s := session.Draft(h, c.o.Clock)
	if label != "" { // asked for by name, it is kept even if nothing is said in it
		if s, err = session.Begin(ctx, c.o.Store, h, c.o.Clock); err != nil {
			return err
		}
		rec, err := c.o.Runner.Record(ctx, s.ID, session.Title{Title: label})
		if err != nil {
			return err
		}
		if err := s.Apply(rec.Record); err != nil {
			return err
		}
	}
	c.chat.enter(ctx, s)
	if !c.o.Interactive {
		c.view.note("started %s", s.Key)
	}
	return nil
}

// freeKey returns a key with the default key's agent and channel that no session
// has. Without a peer the time takes its place.
func (c *commands) freeKey(ctx context.Context, peer string) (session.Key, error) {
	peer = cmp.Or(peer, c.o.Clock.Now().Format("20060102-150405"))
	p := c.o.DefaultKey.Parts()
	base := string(c.o.DefaultKey) + "-" + peer
	if p.Agent != "" && p.Channel != "" {
		base = p.Agent + ":" + p.Channel + ":" + peer
		if strings.HasPrefix(string(c.o.DefaultKey), "agent:") {
			base = "agent:" + base
		}
	}
	for n := 1; ; n++ {
		key := session.Key(base)
		if n > 1 {
			key = session.Key(fmt.Sprintf("%s-%d", base, n))
		}
		_, err := session.Current(ctx, c.o.Store, key)
		if errors.Is(err, session.ErrNotFound) {
			return key, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// maxSlug is how many characters of a label become part of a key.
const maxSlug = 40

// slug makes a label part of a key: letters and digits, joined by '-'.
func slug(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	r := []rune(strings.Join(words, "-"))
	return strings.TrimRight(string(r[:min(len(r), maxSlug)]), "-")
}

func (c *commands) switchTo(ctx context.Context, ref string) error {
	if ref == "" {
		if ch := c.view.chooser(); ch != nil {
			return choose(ctx, c, ch, false)
		}
		return errors.New("/switch needs a KEY: /sessions lists them")
	}
	in, err := naming.Find(ctx, c.o.Store, ref, false, c.o.Lists.Last())
	if err != nil {
		return err
	}
	if in.ID == c.cur.ID {
		c.view.note("already in %s", in.Key)
		return nil
	}
	return c.goTo(ctx, in.ID)
}

// goTo makes another session the chat's.
func (c *commands) goTo(ctx context.Context, id session.ID) error {
	s, err := session.Open(ctx, c.o.Store, id)
	if err != nil {
		return err
	}
	if s.Turns == 0 {
		c.view.note("switched to %s", s.Key)
	}
	c.chat.enter(ctx, s)
	return nil
}

// listed is how many sessions are listed by default.
const listed = 20

func (c *commands) sessions(ctx context.Context, text string) error {
	var q naming.Choice
	if rest, ok := strings.CutPrefix(text+" ", "--all "); ok {
		q.All, text = true, strings.TrimSpace(rest)
	}
	if ch := c.view.chooser(); ch != nil && text == "" {
		return choose(ctx, c, ch, q.All)
	}
	switch q.Text = text; text {
	case "all":
		q.Text = ""
	case "":
		q.Limit = listed + 1
	}
	var infos []session.Info
	for in, err := range naming.List(ctx, c.o.Store, q) {
		if err != nil {
			return err
		}
		infos = append(infos, in)
	}
	switch {
	case len(infos) == 0 && q.Text == "":
		c.view.print("no sessions yet")
		return nil
	case len(infos) == 0:
		c.view.print("no session matches %q", text)
		return nil
	}
	more := q.Limit > 0 && len(infos) == q.Limit
	if more {
		infos = infos[:listed]
	}
	c.listed(infos)
	if more {
		c.view.note("… there are more: /sessions all")
	}
	return nil
}

// listed shows sessions with numbers that can be used from now on.
func (c *commands) listed(infos []session.Info) {
	rows, ids := make([]transcript.Row, len(infos)), make([]session.ID, len(infos))
	for i, in := range infos {
		ids[i] = in.ID
		rows[i] = transcript.Row{Info: in, Open: in.ID == c.cur.ID}
		if c.o.Window != nil {
			rows[i].Window = c.o.Window(in)
		}
	}
	c.o.Lists.Show(ids)
	for _, line := range transcript.Sessions(rows, c.o.Clock.Now(), c.view.style, c.view.columns()) {
		c.view.print("%s", line)
	}
}

// briefError is that several sessions fit, which are listed.
type briefError struct{ *naming.AmbiguousError }

func (e *briefError) Error() string { return e.Brief() }

// shownTurns is how many turns /history shows by default.
const shownTurns = 5

func (c *commands) history(ctx context.Context, arg string) error {
	n, err := shownTurns, error(nil)
	if arg != "" && arg != "all" {
		if n, err = strconv.Atoi(arg); err != nil || n < 1 {
			return fmt.Errorf("/history takes a number of turns or all, not %q", arg)
		}
	}
	s, err := c.cur.whole(ctx)
	switch {
	case err != nil:
		return err
	case s.Turns == 0:
		c.view.print("nothing has been said yet")
		return nil
	case arg == "all":
		c.view.history(s.Branch, 0)
		return nil
	}
	from := len(s.Branch)
	for turns := 0; from > 0 && turns < n; {
		from--
		if session.IsTurn(s.Branch[from].Body) {
			turns++
		}
	}
	c.view.history(s.Branch[from:], s.Turns-n)
	return nil
}

// errEmpty means that the session has no records.
var errEmpty = errors.New("nothing has been said yet")

func (c *commands) delete(ctx context.Context, ref string) error {
	in, err := naming.Find(ctx, c.o.Store, ref, false, c.o.Lists.Last())
	if err != nil {
		return err
	}
	if err := c.o.Store.Delete(ctx, in.ID); err != nil {
		return err
	}
	c.view.note("moved %s to the trash: goclaw sessions restore %s brings it back", in.Key, in.ID)
	if in.ID == c.cur.ID {
		return c.new(ctx, "")
	}
	return nil
}

func (c *commands) title(ctx context.Context, text string) error {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		if err := c.chat.news(ctx); err != nil {
			return err
		}
		if t := naming.Title(ctx, c.o.Store, c.cur.Info); t != "" {
			c.view.print("%s", transcript.Name(t))
		} else {
			c.view.print("%s has no title yet", transcript.Name(c.cur.Key))
		}
		return nil
	}
	if err := c.cur.record(ctx, session.Title{Title: text}); err != nil {
		return err
	}
	c.view.note("%s is now called %q", c.cur.Key, text)
	return nil
}

func (c *commands) merge(ctx context.Context, _ string) error {
	mirror, _, err := mirrors.NewSince(ctx, c.o.Store, c.cur.Info)
	if err != nil {
		return err
	}
	if mirror.ID == "" {
		return fmt.Errorf("%s does not continue another program's session", c.cur.Key)
	}
	n, err := mirrors.Merge(ctx, c.o.Store, c.cur.Info, c.o.Clock)
	if err != nil {
		return err
	}
	if c.cur.Info, err = session.Stat(ctx, c.o.Store, c.cur.ID); err != nil {
		return err
	}
	c.view.note("%s", transcript.Merged(mirror, c.cur.Info, n))
	return nil
}

func (c *commands) fork(ctx context.Context, key string) error {
	if c.cur.ID == "" {
		return errEmpty
	}
	s, err := c.cur.whole(ctx)
	if err != nil {
		return err
	}
	if key != "" {
		if _, err := session.Current(ctx, c.o.Store, session.Key(key)); err == nil {
			return fmt.Errorf("there already is a session %s: choose another key", key)
		} else if !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
	f, err := session.Fork(ctx, c.o.Store, s, session.Key(key), 0, c.o.Clock)
	if err != nil {
		return err
	}
	c.view.note("forked %s as %s", s.Key, f.Key)
	c.chat.enter(ctx, f)
	return nil
}

// label pins a message of this session, or removes its pin.
func (c *commands) label(ctx context.Context, ref, label string) error {
	s, err := c.cur.whole(ctx)
	if err != nil {
		return err
	}
	pinned := map[string]bool{}
	for _, rec := range s.Branch {
		if l, ok := rec.Body.(session.Label); ok {
			pinned[l.Target] = l.Label == session.Pin
		}
	}
	target, err := message(s, ref, func(id string) bool { return label != "" || pinned[id] })
	if err != nil {
		return err
	}
	text := cell(target.Body.(session.Message).Text(), 60)
	switch {
	case label != "" && pinned[target.ID]:
		c.view.note("record %d is already pinned: %q", target.Seq, text)
		return nil
	case label == "" && !pinned[target.ID]:
		return fmt.Errorf("record %d is not pinned", target.Seq)
	}
	if err := c.cur.record(ctx, session.Label{Target: target.ID, Label: label}); err != nil {
		return err
	}
	word := "pinned"
	if label == "" {
		word = "unpinned"
	}
	c.view.note("%s record %d: %q", word, target.Seq, text)
	return nil
}

// message finds a message of the live branch: the last one that fits, or one by
// its number, its id, or the beginning of its id.
func message(s *session.Session, ref string, fits func(id string) bool) (session.Record, error) {
	var found []session.Record
	seq, numErr := strconv.ParseInt(strings.TrimPrefix(ref, "#"), 10, 64)
	for _, rec := range s.Branch {
		m, ok := rec.Body.(session.Message)
		if !ok || strings.TrimSpace(m.Text()) == "" || rec.ID == "" {
			continue
		}
		switch {
		case ref == "" || ref == "last":
			if fits(rec.ID) {
				found = []session.Record{rec}
			}
		case rec.ID == ref, numErr == nil && rec.Seq == session.Seq(seq):
			return rec, nil
		case strings.HasPrefix(rec.ID, ref):
			found = append(found, rec)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return session.Record{}, fmt.Errorf("%q matches %d records: type more of the id, or a record number", ref, len(found))
	case ref == "" || ref == "last":
		return session.Record{}, errors.New("there is no such message in this session")
	}
	return session.Record{}, fmt.Errorf("this session has no message %q: goclaw sessions show --records lists them", ref)
}

// extensions maps a file's extension to its format.
var extensions = map[string]string{".md": "markdown", ".markdown": "markdown", ".jsonl": "native"}

func (c *commands) export(ctx context.Context, arg string) error {
	if c.o.Export == nil {
		return errors.New("there is no export here")
	}
	if c.cur.ID == "" {
		return errEmpty
	}
	format, path, _ := strings.Cut(arg, " ")
	path = strings.TrimSpace(path)
	if path == "" && !slices.Contains([]string{"", "markdown", "md", "native", "jsonl", "openclaw", "pi", "claw0"}, format) {
		byName, ok := extensions[filepath.Ext(format)]
		if !ok {
			return fmt.Errorf("/export writes markdown, native and claw0, not %q; file names end in .md or .jsonl", format)
		}
		format, path = byName, format
	}
	format = cmp.Or(format, "markdown")
	if path == "" {
		ext := ".jsonl"
		if format == "markdown" || format == "md" {
			ext = ".md"
		}
		path = cmp.Or(slug(naming.Title(ctx, c.o.Store, c.cur.Info)), slug(string(c.cur.Key))) + ext
	}
	if path == "-" {
		c.view.screen.Finish()
		return c.o.Export(ctx, c.cur.ID, format, "")
	}
	if err := c.o.Export(ctx, c.cur.ID, format, path); err != nil {
		return err
	}
	c.view.note("wrote %s", path)
	return nil
}

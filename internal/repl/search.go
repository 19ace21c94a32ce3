package repl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"goclaw/internal/transcript"
	"goclaw/recall"
)

// Searcher finds what was said, and what the memory files say.
type Searcher interface {
	Search(ctx context.Context, q recall.Query) (recall.Result, error)
	File(name string, from, lines int) (text string, total int, err error)
}

// opened is how many messages are shown before and behind a hit, and how many
// lines of a file.
const (
	opened      = 3
	openedLines = 12
)

// manyHits is up to which number a number is of a hit, and not looked for.
const manyHits = 20

// search looks for text, or opens the hit of the last search with a number.
func (c *commands) search(ctx context.Context, text string) error {
	switch {
	case c.o.Search == nil:
		return errors.New("there is no search here")
	case text == "":
		return errors.New("/search needs what to look for; /search N opens the N-th hit")
	}
	if n, err := strconv.Atoi(text); err == nil && len(c.found) > 0 && n >= 0 && n <= manyHits {
		if n < 1 || n > len(c.found) {
			return fmt.Errorf("the last search found %s, and no hit %d; /search \"%d\" looks for the number", transcript.Count(len(c.found), "hit"), n, n)
		}
		return c.openHit(ctx, c.found[n-1])
	}
	res, err := c.o.Search.Search(ctx, recall.Query{Text: text})
	if err != nil {
		return err
	}
	c.found = res.Hits
	if len(res.Hits) == 0 {
		c.view.print("nothing found")
	}
	c.view.hits(res.Hits, text)
	for _, s := range res.Incomplete {
		c.view.note("incomplete: %s", s)
	}
	switch {
	case len(res.Hits) == 0 && res.Literal:
		c.view.note("looked for as it stands: no word of it is in the index")
		return nil
	case len(res.Hits) == 0:
		return nil
	case res.Literal:
		c.view.note("found as it stands: no word of it is in the index")
	case res.Words && len(res.Incomplete) > 0: // as was said
	case res.Vectors == 0:
		c.view.note("found by words alone: what was compared has no vectors, or not yet")
	}
	c.view.note("/search N opens a hit in place")
	return nil
}

// openHit shows what stands around a hit.
func (c *commands) openHit(ctx context.Context, h recall.Hit) error {
	if h.File != "" {
		from := max(1, h.Line-openedLines/3)
		text, total, err := c.o.Search.File(h.File, from, openedLines)
		if err != nil {
			return err
		}
		var lines []passage
		for i, line := range strings.Split(text, "\n") {
			n := from + i
			lines = append(lines, passage{number: n, text: line, hit: n >= h.Line && n < h.Line+h.Lines})
		}
		c.view.around(lines)
		c.view.note("%s has %s", h.File, transcript.Count(total, "line"))
		return nil
	}
	around, err := recall.Around(ctx, c.o.Store, h.Session, h.Seq, opened, opened)
	if err != nil {
		return err
	}
	var lines []passage
	for _, l := range around {
		lines = append(lines, passage{number: int(l.Seq), role: string(l.Role), text: l.Text, hit: l.Seq == h.Seq})
	}
	c.view.around(lines)
	c.view.note("record %d of %s: /switch %s goes there", h.Seq, h.Key, h.Session)
	return nil
}

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

// Searcher searches conversations and memory files.
type Searcher interface {
	Search(ctx context.Context, q recall.Query) (recall.Result, error)
	File(name string, from, lines int) (text string, total int, err error)
}

// opened is how many messages are shown before and after a hit, openedLines how
// many lines of a file.
const (
	opened      = 3
	openedLines = 12
)

// manyHits is the largest number that means a hit; larger ones are searched for.
const manyHits = 20

// search looks for text, or opens a hit of the last search by its number.
func (c *commands) search(ctx context.Context, text string) error {
	switch {
	case c.o.Search == nil:
		return errors.New("there is no search here")
	case text == "":
		return errors.New("/search needs words to look for; /search N opens the N-th hit")
	}
	if n, err := strconv.Atoi(text); err == nil && len(c.found) > 0 && n >= 0 && n <= manyHits {
		if n < 1 || n > len(c.found) {
			return fmt.Errorf("the last search found %s: there is no hit %d; /search \"%d\" searches for the number", transcript.Count(len(c.found), "hit"), n, n)
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
		c.view.note("none of these words are indexed: searched for the exact text instead")
		return nil
	case len(res.Hits) == 0:
		return nil
	case res.Literal:
		c.view.note("none of these words are indexed: found the exact text instead")
	case res.Words && len(res.Incomplete) > 0: // the reason is given above
	case res.Vectors == 0:
		c.view.note("a word search only: there are no vectors to compare yet")
	}
	c.view.note("/search N opens hit N in its context")
	return nil
}

// openHit shows what surrounds a hit.
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

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
func (r *REPL) search(ctx context.Context, text string) error {
	switch {
	case r.Search == nil:
		return errors.New("there is no search here")
	case text == "":
		return errors.New("/search needs what to look for; /search N opens the N-th hit")
	}
	if n, err := strconv.Atoi(text); err == nil && len(r.found) > 0 && n >= 0 && n <= manyHits {
		if n < 1 || n > len(r.found) {
			return fmt.Errorf("the last search found %s, and no hit %d; /search \"%d\" looks for the number", transcript.Count(len(r.found), "hit"), n, n)
		}
		return r.openHit(ctx, r.found[n-1])
	}
	res, err := r.Search.Search(ctx, recall.Query{Text: text})
	if err != nil {
		return err
	}
	r.found = res.Hits
	if len(res.Hits) == 0 {
		r.print("nothing found")
	}
	for i, h := range res.Hits {
		r.screen.print(transcript.Hit(i+1, h, text, r.Style, r.columns()))
	}
	for _, s := range res.Incomplete {
		r.note("incomplete: %s", s)
	}
	switch {
	case len(res.Hits) == 0 && res.Literal:
		r.note("looked for as it stands: no word of it is in the index")
		return nil
	case len(res.Hits) == 0:
		return nil
	case res.Literal:
		r.note("found as it stands: no word of it is in the index")
	case res.Words && len(res.Incomplete) > 0: // as was said
	case res.Vectors == 0:
		r.note("found by words alone: what was compared has no vectors, or not yet")
	}
	r.note("/search N opens a hit in place")
	return nil
}

// openHit shows what stands around a hit.
func (r *REPL) openHit(ctx context.Context, h recall.Hit) error {
	if h.File != "" {
		from := max(1, h.Line-openedLines/3)
		text, total, err := r.Search.File(h.File, from, openedLines)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(text, "\n") {
			mark := " "
			if n := from + i; n >= h.Line && n < h.Line+h.Lines {
				mark = ">"
			}
			r.print("%s %s %s", mark, r.Style.Dim(fmt.Sprintf("%4d", from+i)), transcript.Printable(line))
		}
		r.note("%s has %s", h.File, transcript.Count(total, "line"))
		return nil
	}
	lines, err := recall.Around(ctx, r.Store, h.Session, h.Seq, opened, opened)
	if err != nil {
		return err
	}
	for _, l := range lines {
		mark := " "
		if l.Seq == h.Seq {
			mark = ">"
		}
		text := transcript.Printable(l.Text)
		if l.Seq != h.Seq {
			text = transcript.OneLine(text, 2*r.width())
		}
		r.print("%s %s %s  %s", mark, r.Style.Dim(fmt.Sprintf("%4d", l.Seq)), r.Style.Green(string(l.Role)), text)
	}
	r.note("record %d of %s: /switch %s goes there", h.Seq, h.Key, h.Session)
	return nil
}

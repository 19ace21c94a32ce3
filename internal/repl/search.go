package repl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"goclaw/internal/query"
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

// finds searches, and opens what it found.
type finds struct {
	o     *Options
	view  *view
	found []recall.Hit // by the last search
	text  string       // that it looked for
}

// searchArgs are what /search takes.
const searchArgs = "[flags] TEXT"

// manyHits is the largest number that means a hit; larger ones are searched for.
const manyHits = 99

// search looks for text. A number alone opens a hit of the last search.
func (f *finds) search(ctx context.Context, arg string) error {
	if f.o.Search == nil {
		return errors.New("there is no search here")
	}
	if n, err := strconv.Atoi(arg); err == nil && len(f.found) > 0 && n >= 0 && n <= manyHits {
		return f.openNumber(ctx, n)
	}
	var flags query.Flags
	fs := pflag.NewFlagSet("search", pflag.ContinueOnError)
	flags.Bind(fs)
	fs.Usage = func() { f.view.print("%s", strings.TrimRight(fs.FlagUsages(), "\n")) }
	known, words, plain := query.Split(fs, strings.Fields(arg))
	if err := fs.Parse(known); err != nil {
		var unknown *pflag.NotExistError
		switch {
		case errors.Is(err, pflag.ErrHelp): // shown
			return nil
		case !errors.As(err, &unknown):
			return err
		}
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("/search has no flag %s: did you mean %s? To search for the text: /search -- %s", name, query.Nearest(fs, name), name)
	}
	if len(words) == 0 {
		return errors.New("/search needs words to look for; /open N opens the N-th hit")
	}
	text := strings.Join(words, " ")
	q, err := flags.Query(ctx, f.o.Store, text, f.o.CWD)
	if err != nil {
		return err
	}
	for _, w := range plain {
		f.view.note("%s is no flag of /search: it is searched for as text", w)
	}
	res, err := f.o.Search.Search(ctx, q)
	if err != nil {
		return err
	}
	f.found, f.text = res.Hits, text
	if len(res.Hits) == 0 {
		f.view.print("nothing found")
	}
	f.view.hits(res.Hits, text)
	for _, s := range res.Incomplete {
		f.view.note("incomplete: %s", s)
	}
	if res.Near {
		f.view.note(recall.OnlyNear)
	}
	switch {
	case len(res.Hits) == 0 && res.Literal:
		f.view.note("none of these words are indexed: searched for the exact text instead")
		return nil
	case len(res.Hits) == 0:
		return nil
	case res.Literal:
		f.view.note("none of these words are indexed: found the exact text instead")
	case res.Words && len(res.Incomplete) > 0: // the reason is given above
	case res.Vectors == 0:
		f.view.note("a word search only: there are no vectors to compare yet")
	}
	f.view.note("/open N opens hit N in its context")
	return nil
}

// open opens a hit of the last search by its number.
func (f *finds) open(ctx context.Context, arg string) error {
	n, err := strconv.Atoi(arg)
	switch {
	case len(f.found) == 0:
		return errors.New("there is no hit to open: /search TEXT finds some")
	case err != nil:
		return fmt.Errorf("/open needs the number of a hit, from 1 to %d", len(f.found))
	}
	return f.openNumber(ctx, n)
}

func (f *finds) openNumber(ctx context.Context, n int) error {
	if n < 1 || n > len(f.found) {
		return fmt.Errorf("the last search found %s: there is no hit %d; /search \"%d\" searches for the number", transcript.Count(len(f.found), "hit"), n, n)
	}
	return f.openHit(ctx, f.found[n-1])
}

// openHit shows what surrounds a hit.
func (f *finds) openHit(ctx context.Context, h recall.Hit) error {
	if h.File != "" {
		from := max(1, h.Line-openedLines/3)
		text, total, err := f.o.Search.File(h.File, from, openedLines)
		if err != nil {
			return err
		}
		var lines []passage
		for i, line := range strings.Split(text, "\n") {
			n := from + i
			lines = append(lines, passage{number: n, text: line, hit: n >= h.Line && n < h.Line+h.Lines})
		}
		f.view.around(lines, h, f.text)
		f.view.note("%s has %s", h.File, transcript.Count(total, "line"))
		return nil
	}
	around, err := recall.Around(ctx, f.o.Store, h.Session, h.Seq, opened, opened)
	if err != nil {
		return err
	}
	var lines []passage
	for _, l := range around {
		lines = append(lines, passage{number: int(l.Seq), role: string(l.Role), text: l.Text, hit: l.Seq == h.Seq})
	}
	f.view.around(lines, h, f.text)
	f.view.note("record %d of %s: /switch %s goes there", h.Seq, h.Key, h.Session)
	return nil
}

// Package query reads what people type to search: the flags of goclaw search,
// and of /search in the chat, with the text that is looked for.
package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"goclaw/internal/near"
	"goclaw/recall"
	"goclaw/session"
)

// Flags say where a search looks, how much it finds, and how that is shown.
type Flags struct {
	recall.Filter
	Here   bool
	Memory bool
	Limit  int
	Group  bool // by session
	Open   int  // the hit to show with what surrounds it, from 1 on; 0: none

	bound *pflag.FlagSet
}

// Limit is how many hits are found if nothing else is said.
const Limit = 10

// Bind adds the flags to fs.
func (f *Flags) Bind(fs *pflag.FlagSet) {
	f.bound = fs
	fs.StringVar(&f.Session, "session", "", "only in this session: a key (all that was said under it), an id, or the beginning of one")
	fs.BoolVar(&f.Here, "here", false, "only in sessions that worked in this folder or below it")
	fs.StringVar(&f.Folder, "folder", "", "only in sessions that worked in that folder or below it")
	fs.StringVar(&f.Agent, "agent", "", "only in this agent's sessions")
	fs.StringVar(&f.Source, "source", "", "only in sessions of this program: claude-code, codex, openclaw ..., or goclaw for its own")
	fs.StringVar(&f.Role, "role", "", "only what user, assistant, tool or summary said")
	fs.StringVar(&f.Tool, "tool", "", "only calls and output of this tool: bash, read, Edit ...")
	fs.StringVar(&f.Since, "since", "", "only since then, in local time: 2026-08-01, 2026-08-01 15:04, yesterday, or 12h, 7d, 3w ago")
	fs.StringVar(&f.Until, "until", "", "only until then; a day is included")
	fs.BoolVar(&f.Memory, "memory", false, "only in the memory files")
	fs.IntVarP(&f.Limit, "limit", "n", Limit, "at most this many hits (0: as many as there are, up to 200)")
	fs.BoolVar(&f.Group, "group", false, "group the hits by session; --limit then counts sessions")
	fs.IntVarP(&f.Open, "open", "o", 0, "show this hit, by its number, with what surrounds it")
}

// errMemory: files have no sessions.
var errMemory = errors.New("--memory searches files: only --since, --until and --limit go with it")

// Usage is a flag that cannot be understood.
type Usage struct{ error }

// Query returns what the flags and text ask for. folder is the current one.
func (f Flags) Query(ctx context.Context, st session.Store, text, folder string) (recall.Query, error) {
	q := recall.Query{Text: text, Limit: f.Limit, Memory: f.Memory, Embed: recall.BeforeAnswer}
	if err := f.check(); err != nil {
		return q, err
	}
	switch {
	case f.Limit == 0:
		q.Limit = recall.MaxLimit
	}
	q.Limit = max(q.Limit, f.Open)
	switch {
	case f.Here && f.Folder != "":
		return q, Usage{errors.New("--here is --folder with the current folder: give one of them")}
	case f.Here:
		f.Folder = folder
	case f.Folder == "~" || strings.HasPrefix(f.Folder, "~/"): // in the chat there is no shell
		home, err := os.UserHomeDir()
		if err != nil {
			return q, err
		}
		f.Folder = filepath.Join(home, f.Folder[1:])
	case f.Folder != "" && !filepath.IsAbs(f.Folder):
		f.Folder = filepath.Join(folder, f.Folder)
	}
	inSessions := f.Filter
	inSessions.Since, inSessions.Until = "", ""
	if f.Memory && inSessions != (recall.Filter{}) {
		return q, Usage{errMemory}
	}
	err := f.Apply(ctx, st, time.Now(), &q)
	var wrong *recall.FilterError
	if errors.As(err, &wrong) {
		err = Usage{errors.New("--" + strings.ReplaceAll(err.Error(), "than since", "than --since"))}
	}
	return q, err
}

// check returns what is wrong with how much is asked for. A filter that was given
// and is empty, such as an unset variable of a script, would allow everything.
func (f Flags) check() error {
	empty := ""
	if f.bound != nil {
		f.bound.Visit(func(g *pflag.Flag) {
			if g.Value.Type() == "string" && strings.TrimSpace(g.Value.String()) == "" {
				empty = g.Name
			}
		})
	}
	switch {
	case empty != "":
		return Usage{fmt.Errorf("--%s is empty: give it a value, or leave it out", empty)}
	case f.Limit < 0:
		return Usage{errors.New("--limit must not be negative")}
	case f.bound != nil && f.bound.Changed("open") && f.Open < 1:
		return Usage{fmt.Errorf("--open takes the number of a hit, from 1 on, not %d", f.Open)}
	case f.Open > recall.MaxLimit:
		return Usage{fmt.Errorf("--open takes the number of a hit, and a search has at most %d", recall.MaxLimit)}
	case f.Open > 0 && f.Group:
		return Usage{errors.New("--open shows one hit: it cannot be combined with --group")}
	}
	return nil
}

// Searcher searches, as recall.Index does.
type Searcher interface {
	Search(ctx context.Context, q recall.Query) (recall.Result, error)
}

// Search searches for q. If the flags say so, what is found is grouped by
// session, and the limit of q is how many sessions there are.
func (f Flags) Search(ctx context.Context, s Searcher, q recall.Query) (recall.Result, []recall.Group, error) {
	if !f.Group {
		res, err := s.Search(ctx, q)
		return res, nil, err
	}
	limit := q.Limit
	q.Limit = recall.MaxLimit
	res, err := s.Search(ctx, q)
	groups := recall.Groups(res.Hits)
	return res, groups[:min(len(groups), limit)], err
}

// Remarks says what a user should know about a result besides the hits: what was
// not searched, or only in part, and how the hits were found.
func Remarks(res recall.Result) (out []string) {
	for _, s := range res.Incomplete {
		out = append(out, "incomplete: "+s)
	}
	if res.Unclear() && res.Missing > 0 {
		out = append(out, "incomplete: "+res.Uncompared())
	}
	switch {
	case res.Near:
		out = append(out, recall.OnlyNear)
	case res.Literal && len(res.Hits) == 0:
		out = append(out, "none of these words are indexed: searched for the exact text instead")
	case res.Literal:
		out = append(out, "none of these words are indexed: found the exact text instead")
	}
	return out
}

// Words splits a line into words at white space. The value of a flag of fs may be
// quoted, as in --since "2 days ago"; in the text, quotes are text.
func Words(fs *pflag.FlagSet, line string) (out []string) {
	value := false // a value comes next
	for {
		line = strings.TrimLeftFunc(line, unicode.IsSpace)
		if line == "" {
			return out
		}
		word, rest := cutWord(line)
		known, takes := look(fs, word)
		name, quoted, has := strings.Cut(line, "=")
		switch {
		case value:
			if v, after, ok := cutQuoted(line); ok {
				word, rest = v, after
			}
			known, takes = false, false
		case word == "--":
			return append(append(out, word), strings.Fields(rest)...)
		case known && has && len(name) < len(word):
			if v, after, ok := cutQuoted(quoted); ok {
				word, rest = name+"="+v, after
			}
		}
		out, line, value = append(out, word), rest, known && takes
	}
}

// cutWord returns the word that line begins with, and what follows it.
func cutWord(line string) (word, rest string) {
	if i := strings.IndexFunc(line, unicode.IsSpace); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// cutQuoted returns what stands between the quotes that line begins with, and
// what follows them. ok is false if it does not begin with such.
func cutQuoted(line string) (text, rest string, ok bool) {
	if line == "" || line[0] != '"' && line[0] != '\'' {
		return "", line, false
	}
	text, rest, ok = strings.Cut(line[1:], line[:1])
	return text, rest, ok && (rest == "" || unicode.IsSpace(rune(rest[0])))
}

// Split separates the flags of fs among words, with their values, from the text
// that is searched for. A word that begins with a dash and is no flag is text,
// and so is everything after "--"; but what looks like a misspelt flag stays
// with the flags. plain are the words with a dash that were taken for text.
func Split(fs *pflag.FlagSet, words []string) (flags, text, plain []string) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return flags, append(text, words[i+1:]...), plain
		}
		known, value := look(fs, w)
		switch {
		case known:
			flags = append(flags, w)
			if value && i+1 < len(words) {
				i++
				flags = append(flags, words[i])
			}
		case len(w) < 2 || w[0] != '-':
			text = append(text, w)
		case Nearest(fs, w) != "":
			flags = append(flags, w)
		default:
			text, plain = append(text, w), append(plain, w)
		}
	}
	return flags, text, plain
}

// look reports whether a word is a flag of fs, or several with one letter each,
// and whether the next word is its value.
func look(fs *pflag.FlagSet, w string) (known, value bool) {
	if name, ok := strings.CutPrefix(w, "--"); ok {
		name, _, has := strings.Cut(name, "=")
		f := fs.Lookup(name)
		return f != nil, f != nil && !has && f.NoOptDefVal == ""
	}
	if len(w) < 2 || w[0] != '-' {
		return false, false
	}
	for i := 1; i < len(w); i++ {
		f := fs.ShorthandLookup(w[i : i+1])
		if f == nil {
			return false, false
		}
		if f.NoOptDefVal == "" {
			return true, i == len(w)-1
		}
	}
	return true, false
}

// Nearest returns the flag of fs that a word may be a misspelling of, or "".
func Nearest(fs *pflag.FlagSet, w string) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	w, _, _ = strings.Cut(w, "=")
	if !strings.HasPrefix(w, "--") {
		return ""
	}
	return near.Nearest(w, names)
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"goclaw/internal/sqlx"
)

// fts searches with SQLite's full text index: any of the words that a question
// is made of, ordered by bm25.
func fts(o options, tokenizer string, wordsOf func(text string) []string) func(context.Context, *set, string) (finder, error) {
	return func(_ context.Context, s *set, conversation string) (finder, error) {
		docs := s.docs[conversation]
		db, err := sqlx.Open(":memory:", sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE, func(c *sqlx.Conn) error {
			if err := fts5.Register(c.Conn); err != nil {
				return err
			}
			return c.Exec(fmt.Sprintf("CREATE VIRTUAL TABLE docs USING fts5(text, tokenize = '%s')", tokenizer))
		})
		if err != nil {
			return finder{}, err
		}
		if err := db.Exec("BEGIN"); err != nil {
			return finder{}, err
		}
		for i, d := range docs {
			if err := db.Run("INSERT INTO docs(rowid, text) VALUES (?, ?)", i, d.Text); err != nil {
				return finder{}, err
			}
		}
		if err := db.Exec("COMMIT"); err != nil {
			return finder{}, err
		}
		var one sync.Mutex // a connection is for one goroutine
		return finder{
			search: func(q query) (found []string, err error) {
				var quoted []string
				for _, w := range wordsOf(q.Question) {
					quoted = append(quoted, `"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
				}
				if quoted == nil {
					return nil, nil
				}
				one.Lock()
				defer one.Unlock()
				err = db.Each(func(r sqlx.Row) error {
					found = append(found, docs[r.Int(0)].ID)
					return nil
				}, "SELECT rowid FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT ?", strings.Join(quoted, " OR "), o.hits)
				return found, err
			},
			close: func() { db.Close() },
		}, nil
	}
}

// everyWord returns the words of a question.
func everyWord(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// noStopWords leaves out the words that say nothing, unless there are no
// others.
func noStopWords(text string) []string {
	all := everyWord(text)
	if some := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return stopWord[w] }); len(some) > 0 {
		return some
	}
	return all
}

// trigrams returns every three characters in a row of a question.
func trigrams(text string) (out []string) {
	chars := []rune(strings.ToLower(text))
	for i := 0; i+3 <= len(chars); i++ {
		if t := string(chars[i : i+3]); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

var stopWord = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a about above after again against all am an and any are as at be because been before being below between
both but by can could did do does doing down during each few for from further had has have having he her here hers him his how i if in into
is it its just me more most my no nor not of off on once only or other our ours out over own same she should so some such than that the
their them then there these they this those through to too under until up us very was we were what when where which while who whom why will
with would you your yours s t d ll m o re ve`) {
		m[w] = true
	}
	return m
}()

// Package words says what the words of a text are: where they begin and end,
// the term that each is found by, and the dates that a text names.
package words

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"goclaw/internal/parts"
)

// Word is a word of a text.
type Word struct {
	Term     string
	ID       int  // of the term in its Lexer
	From, To int  // bytes of the text
	Inner    bool // a character or a part of a longer word, which a query means as a whole
	Joined   bool // several words that are written as one name, such as API_TOKEN
}

// Lexer numbers terms, and remembers the words it has seen: most words of a
// text were in another before. It is for one goroutine. The zero value is
// ready.
type Lexer struct {
	Terms []string // by ID
	ids   map[string]int
	seen  memory // the words as they are written

	changes int64 // of parts, when it was new
}

// stopWord is the ID of words that have no term.
const stopWord = -1

// ID returns the number of a term.
func (l *Lexer) ID(term string) int {
	id, ok := l.ids[term]
	if !ok {
		if l.ids == nil {
			l.ids = map[string]int{}
		}
		id = len(l.Terms)
		term = strings.Clone(term)
		l.ids[term] = id
		l.Terms = append(l.Terms, term)
	}
	return id
}

// look returns the ID of the term of w, and its parts.
func (l *Lexer) look(w string) (id int, parts []part) {
	id, parts, ok := l.seen.get(w)
	if !ok {
		id = stopWord
		if term := Term(w); term != "" {
			id, parts = l.ID(term), l.parts(w)
		}
		l.seen.put(w, id, parts)
	}
	return id, parts
}

// Each calls f for each word of text that is not a stop word, in order, and
// returns how many words there are in all. It takes any text: nothing in it
// is syntax.
func Each(text string, f func(Word)) (n int) {
	l := lexers.Get().(*Lexer)
	if n := parts.Changes(); l.changes != n {
		*l = Lexer{changes: n}
	}
	n = l.Each(text, func(w Word) {
		w.Term = l.Terms[w.ID]
		f(w)
	})
	if len(l.Terms) < maxKept { // else it is dropped, with what it remembers
		lexers.Put(l)
	}
	return n
}

// lexers are those that no call of Each uses. The texts of one search have most
// of their words in common.
var lexers = sync.Pool{New: func() any { return new(Lexer) }}

// maxKept is how many terms a Lexer may know that is used again.
const maxKept = 1 << 15

// Each is like the function Each, but the words have no Term: it is that of
// their ID.
func (l *Lexer) Each(text string, f func(Word)) (n int) {
	var open names
	for i := 0; i < len(text); {
		// Most of a text is ASCII, for which there is a table.
		c := text[i]
		if c < utf8.RuneSelf && !wordByte[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if dense(r) {
				j := denseEnd(text, i+size)
				n += l.pairs(text, i, j, f)
				i = j
				continue
			}
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				i += size
				continue
			}
		}
		j := wordEnd(text, i)
		n++
		id, parts := l.look(text[i:j])
		if id != stopWord {
			f(Word{ID: id, From: i, To: j})
		}
		for _, p := range parts {
			f(Word{ID: p.id, From: i + p.from, To: i + p.to, Inner: true})
		}
		open = l.after(open, text, i, j, f)
		i = j
	}
	return n
}

// names are where the names that are being read begin, plus 1; 0: none is. Only
// the longer of them holds dots, as in config.API_TOKEN.
type names struct{ short, long int }

// after takes the names that end with the word from i to j, and returns those
// that go on after it.
func (l *Lexer) after(n names, text string, i, j int, f func(Word)) names {
	begin, join := i, byte(0)
	if n.long != 0 {
		begin = n.long - 1
	}
	if j+1 < len(text) && joins(text[j]) && wordByte[text[j+1]] {
		join = text[j]
	}
	if join == 0 || join == '.' {
		if n.short != 0 {
			l.joined(text, n.short-1, j, f)
		}
		if join == 0 && n.long != 0 && n.long != n.short {
			l.joined(text, n.long-1, j, f)
		}
		n.short = 0
	} else if n.short == 0 {
		n.short = i + 1
	}
	if join == 0 {
		l.flag(text, begin, j, f)
		return names{}
	}
	if n.long == 0 {
		n.long = i + 1
	}
	return n
}

// Set returns the terms of text.
func Set(text string) map[string]bool {
	m := map[string]bool{}
	Each(text, func(w Word) { m[w.Term] = true })
	return m
}

// wordByte are the letters and digits of ASCII.
var wordByte = func() (t [256]bool) {
	for c := range utf8.RuneSelf {
		t[c] = unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
	}
	return t
}()

// wordEnd returns where the word that begins at i ends. An apostrophe belongs
// to a word that continues after it.
func wordEnd(text string, i int) int {
	for i < len(text) {
		c := text[i]
		if wordByte[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf && c != '\'' {
			return i
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '\'' || r == '’' {
			next, _ := utf8.DecodeRuneInString(text[i+size:])
			if !unicode.IsLetter(next) {
				return i
			}
		} else if dense(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return i
		}
		i += size
	}
	return i
}

// denseEnd returns the end of the run of dense characters that includes i.
func denseEnd(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !dense(r) && !unicode.IsMark(r) {
			break
		}
		i += size
	}
	return i
}

// dense reports whether r is of a script that puts no spaces between words, or
// writes particles onto them, as Korean does.
func dense(r rune) bool {
	return r >= 0x0e00 && (unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || meaningful(r))
}

// meaningful reports whether r is of a script whose characters mean something
// by themselves, or nearly so.
func meaningful(r rune) bool {
	switch r {
	case 'ー', 'ｰ', 'ﾞ', 'ﾟ': // kana that Unicode assigns to no script
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

// pairs takes each pair of adjacent characters as a word, and each character
// that may be one. They are composed first: a syllable is the same if its
// letters are written one by one.
func (l *Lexer) pairs(text string, from, to int, f func(Word)) (n int) {
	type char struct {
		s        string
		from, to int
	}
	var prev char
	add := func(c char) {
		if prev.s != "" {
			n++
			f(Word{ID: l.ID(prev.s + c.s), From: prev.from, To: c.to})
		}
		if r, _ := utf8.DecodeRuneInString(c.s); meaningful(r) {
			f(Word{ID: l.ID(c.s), From: c.from, To: c.to, Inner: prev.s != "" || c.to < to})
		} else if prev.s == "" && c.to == to {
			f(Word{ID: l.ID(c.s), From: c.from, To: c.to})
		}
		prev = c
	}
	run := text[from:to]
	if norm.NFKC.IsNormalString(run) {
		for i, r := range run {
			at, size := from+i, utf8.RuneLen(r)
			add(char{text[at : at+size], at, at + size})
		}
		return max(n, 1)
	}
	var it norm.Iter
	it.InitString(norm.NFKC, run)
	for !it.Done() {
		at := from + it.Pos()
		s := string(it.Next())
		for s != "" { // a sign may stand for several
			_, size := utf8.DecodeRuneInString(s)
			add(char{s[:size], at, from + it.Pos()})
			s = s[size:]
		}
	}
	return max(n, 1)
}

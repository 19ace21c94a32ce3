package markdown

import (
	"embed"
	"encoding/xml"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// lexerFiles are chroma's descriptions of languages: see lexers/README.md.
//
//go:embed lexers/*.xml
var lexerFiles embed.FS

// A language, by the name that fences have for it.
var languages = map[string]string{
	"bash": "bash", "sh": "bash", "shell": "bash", "zsh": "bash", "console": "bash", "shell-session": "bash", "fish": "bash",
	"c": "c", "h": "c",
	"c++": "cpp", "cpp": "cpp", "cc": "cpp", "cxx": "cpp", "hpp": "cpp",
	"c#": "csharp", "csharp": "csharp", "cs": "csharp",
	"css": "css", "scss": "css", "less": "css",
	"diff": "diff", "patch": "diff", "udiff": "diff",
	"dockerfile": "dockerfile", "docker": "dockerfile", "containerfile": "dockerfile",
	"go": "go", "golang": "go",
	"html": "html", "htm": "html", "vue": "html", "svelte": "html",
	"ini": "ini", "cfg": "ini", "conf": "ini", "properties": "ini", "dotenv": "ini", "env": "ini", "systemd": "ini",
	"java": "java", "kotlin": "kotlin", "kt": "kotlin", "kts": "kotlin",
	"javascript": "javascript", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "node": "javascript",
	"json": "json", "json5": "json", "jsonc": "json", "jsonl": "json", "ndjson": "json",
	"jsx": "react", "tsx": "react", "react": "react",
	"lua":  "lua",
	"make": "make", "makefile": "make", "mk": "make",
	"php":    "php",
	"python": "python", "py": "python", "python3": "python", "py3": "python", "pyi": "python",
	"ruby": "ruby", "rb": "ruby",
	"rust": "rust", "rs": "rust",
	"sql": "sql", "sqlite": "sql", "mysql": "sql", "postgresql": "sql", "postgres": "sql", "psql": "sql", "plpgsql": "sql",
	"swift": "swift", "toml": "toml",
	"typescript": "typescript", "ts": "typescript", "mts": "typescript",
	"xml": "xml", "svg": "xml", "plist": "xml", "xsd": "xml", "xslt": "xml",
	"yaml": "yaml", "yml": "yaml",
}

// uses lists the languages that stand in another.
var uses = map[string][]string{"html": {"css", "javascript"}, "dockerfile": {"bash", "json"}, "make": {"bash"}}

// span is what goes over several lines in a language, between open and shut.
type span struct {
	open, shut string
	kind       chroma.TokenType
}

// Chroma reads such a text at once; here its lines are read one by one.
var (
	comment = span{"/*", "*/", chroma.CommentMultiline}
	quoted  = span{`"""`, `"""`, chroma.LiteralString}
	spans   = map[string][]span{
		"c": {comment}, "cpp": {comment}, "css": {comment}, "java": {comment, quoted}, "javascript": {comment},
		"csharp": {comment, quoted}, "kotlin": {comment}, "php": {comment}, "react": {comment}, "rust": {comment}, "sql": {comment},
		"swift": {comment, quoted}, "typescript": {comment},
		"go":   {comment, {"`", "`", chroma.LiteralString}},
		"html": {{"<!--", "-->", chroma.CommentMultiline}},
		"xml":  {{"<!--", "-->", chroma.CommentMultiline}},
		"lua":  {{"--[[", "]]", chroma.CommentMultiline}, {"[[", "]]", chroma.LiteralString}},
		"toml": {quoted, {"'''", "'''", chroma.LiteralString}},
	}
)

// lexer reads a language.
type lexer struct {
	*chroma.RegexLexer
	spans []span

	mu    sync.Mutex
	stack []string           // where the next line begins
	state *chroma.LexerState // of the line under way
}

// begin is the state that each line begins in: it goes on where the line before
// ended. Chroma has no other way to read on.
const begin = "goclaw: line"

var lexers struct {
	sync.Mutex
	registry *chroma.LexerRegistry
	loaded   map[string]*lexer
}

// lexerFor returns the lexer of a language; nil if there is none.
func lexerFor(lang string) *lexer {
	name := languages[strings.ToLower(lang)]
	if name == "" {
		return nil
	}
	lexers.Lock()
	defer lexers.Unlock()
	if lexers.loaded == nil {
		lexers.loaded, lexers.registry = map[string]*lexer{}, chroma.NewLexerRegistry()
	}
	for _, other := range uses[name] {
		load(other)
	}
	return load(name)
}

// load reads the description of a language; nil if chroma refuses it.
func load(name string) *lexer {
	if l, ok := lexers.loaded[name]; ok {
		return l
	}
	lexers.loaded[name] = nil
	data, err := lexerFiles.ReadFile("lexers/" + name + ".xml")
	if err != nil {
		return nil
	}
	var file struct {
		Config chroma.Config `xml:"config"`
		Rules  chroma.Rules  `xml:"rules"`
	}
	if err := xml.Unmarshal(data, &file); err != nil {
		return nil
	}
	l := &lexer{spans: spans[name]}
	file.Rules[begin] = []chroma.Rule{{Mutator: chroma.MutatorFunc(l.goOn)}}
	l.RegexLexer, err = chroma.NewLexer(&file.Config, func() chroma.Rules { return file.Rules })
	if err != nil {
		return nil
	}
	l.SetRegistry(lexers.registry)
	lexers.registry.Register(l.RegexLexer)
	lexers.loaded[name] = l
	return l
}

// goOn puts s where the line before has ended.
func (l *lexer) goOn(s *chroma.LexerState) error {
	if l.state == nil {
		for _, rules := range s.Rules {
			for _, r := range rules {
				r.Regexp.MatchTimeout = patience
			}
		}
	}
	if l.stack == nil { // chroma comes here from a line end that no rule knows
		s.Pos++
	}
	s.Stack = append([]string{"root"}, l.stack[min(1, len(l.stack)):]...)
	l.state, l.stack = s, nil
	return nil
}

const longestLine = 1000 // characters of a line that is highlighted

// Tests have more time, so that a busy machine changes nothing.
var (
	patience = 50 * time.Millisecond  // for one expression
	enough   = 300 * time.Millisecond // for a line
)

// highlighter highlights code line by line. The zero value highlights nothing.
type highlighter struct {
	lexer *lexer
	stack []string
	open  *span // that the line before has begun
}

func newHighlighter(lang string) highlighter {
	return highlighter{lexer: lexerFor(lang), stack: []string{"root"}}
}

func (h *highlighter) clone() highlighter {
	c := *h
	c.stack = slices.Clone(h.stack)
	return c
}

// line returns the next line of the code, coloured. Code that takes too long, or
// that its lexer does not understand, stays as it is.
func (h *highlighter) line(text string, p *palette) (out []run) {
	if h.lexer == nil || len(text) > longestLine {
		return []run{{text: text}}
	}
	defer func() {
		if recover() != nil { // chroma panics
			h.lexer, out = nil, []run{{text: text}}
		}
	}()
	rest := text
	if h.open != nil {
		head, tail, shut := strings.Cut(text, h.open.shut)
		if !shut {
			return []run{{text, p.of(h.open.kind)}}
		}
		out = append(out, run{head + h.open.shut, p.of(h.open.kind)})
		h.open, rest = nil, tail
	}
	return append(out, h.tokens(rest, p)...)
}

// tokens colours the rest of a line.
func (h *highlighter) tokens(text string, p *palette) (out []run) {
	l := h.lexer
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stack = h.stack
	next, err := l.Tokenise(&chroma.TokeniseOptions{State: begin}, text+"\n")
	if err != nil {
		h.lexer = nil
		return []run{{text: text}}
	}
	started, at := time.Now(), 0
	before := h.stack
	for {
		t := next()
		if t == chroma.EOF {
			break
		}
		if time.Since(started) > enough {
			h.lexer = nil
			return append(out, run{text: text[min(at, len(text)):]})
		}
		if at >= len(text) {
			continue
		}
		grown := len(l.state.Stack) > len(before)
		if h.open = h.opened(text[at:], t, grown); h.open != nil {
			h.stack = before
			return append(out, run{text[at:], p.of(h.open.kind)})
		}
		value := t.Value[:min(len(t.Value), len(text)-at)]
		out = append(out, run{value, p.of(t.Type)})
		at += len(value)
		before = slices.Clone(l.state.Stack)
	}
	h.stack = slices.Clone(l.state.Stack)
	return out
}

// opened returns what text begins with that goes on in the next line. t is the
// token there; grown says that its lexer has entered something by it. Three
// quotes are nothing else, but some lexers take them for a string and a quote.
func (h *highlighter) opened(text string, t chroma.Token, grown bool) *span {
	for i, s := range h.lexer.spans {
		body, ok := strings.CutPrefix(text, s.open)
		if !ok || strings.Contains(body, s.shut) {
			continue
		}
		inString := t.Type.InSubCategory(chroma.LiteralString) && t.Type != chroma.LiteralStringRegex
		if s.kind == chroma.LiteralString && len(s.open) == 3 || !grown && !inString && t.Type != chroma.CommentSingle {
			return &h.lexer.spans[i]
		}
		return nil // it is part of something else, or its lexer knows it
	}
	return nil
}

// palette is the looks of code, in the 16 colours that people choose.
type palette struct {
	keyword, kind, function, text, number, comment, tag, inserted, deleted, span look
}

var (
	onDark = palette{
		keyword: look{fg: 35}, kind: look{fg: 36}, function: look{fg: 94}, text: look{fg: 32}, number: look{fg: 33},
		comment: look{attr: dim}, tag: look{fg: 94}, inserted: look{fg: 32}, deleted: look{fg: 31}, span: look{fg: 36},
	}
	// Yellow and cyan are hard to read on white.
	onLight = palette{
		keyword: look{fg: 35}, kind: look{fg: 34}, function: look{fg: 34}, text: look{fg: 32}, number: look{fg: 31},
		comment: look{attr: dim}, tag: look{fg: 34}, inserted: look{fg: 32}, deleted: look{fg: 31}, span: look{fg: 34},
	}
)

// of returns the look of a token.
func (p *palette) of(t chroma.TokenType) look {
	switch {
	case t.InCategory(chroma.Comment):
		if t.InSubCategory(chroma.CommentPreproc) {
			return p.keyword
		}
		return p.comment
	case t == chroma.KeywordType:
		return p.kind
	case t == chroma.KeywordConstant:
		return p.number
	case t.InCategory(chroma.Keyword), t == chroma.OperatorWord:
		return p.keyword
	case t.InSubCategory(chroma.LiteralString):
		return p.text
	case t.InSubCategory(chroma.LiteralNumber):
		return p.number
	case t.InCategory(chroma.Name):
		return p.name(t)
	case t == chroma.GenericInserted:
		return p.inserted
	case t == chroma.GenericDeleted:
		return p.deleted
	case t == chroma.GenericHeading, t == chroma.GenericSubheading:
		return p.tag
	}
	return look{}
}

func (p *palette) name(t chroma.TokenType) look {
	switch t {
	case chroma.NameFunction, chroma.NameFunctionMagic:
		return p.function
	case chroma.NameBuiltin, chroma.NameBuiltinPseudo, chroma.NameClass, chroma.NameException, chroma.NameNamespace, chroma.NameKeyword, chroma.NameAttribute, chroma.NameProperty:
		return p.kind
	case chroma.NameTag:
		return p.tag
	case chroma.NameConstant, chroma.NameEntity:
		return p.number
	case chroma.NameDecorator:
		return p.keyword
	}
	return look{}
}

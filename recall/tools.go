package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"goclaw/internal/text"
	"goclaw/llm"
	"goclaw/recall/internal/words"
	"goclaw/session"
)

// How large results are at most. A token is about four bytes.
const (
	maxResult  = 12_000 // bytes
	maxPerHit  = 500
	maxPerLine = 2_000
)

// Tool is a tool for a model, as package tool defines one. It changes nothing.
type Tool struct {
	spec llm.ToolSpec
	run  func(ctx context.Context, args json.RawMessage) (string, error)
}

// Spec describes the tool.
func (t Tool) Spec() llm.ToolSpec { return t.spec }

// Mutates is false: calls may run in parallel with any others.
func (t Tool) Mutates(llm.ToolCall) bool { return false }

// Run runs the tool. A failure is a result that the model can read.
func (t Tool) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	text, err := t.run(ctx, call.Args)
	switch {
	case ctx.Err() != nil:
		return llm.Failed(call, "interrupted"), ctx.Err()
	case err != nil:
		return llm.Failed(call, err.Error()), nil
	}
	return llm.Result(call, text), nil
}

// MemorySearch are settings of memory_search. The zero value is our own.
type MemorySearch struct {
	Off   bool // memory_search and memory_get refuse
	Limit int  // results if the model asks for no number; 0: 8
	// As in Query.
	MinScore                 float64
	VectorWeight, TextWeight float64
	Candidates               int
}

// defaultResults is how many results a search of a model has.
const defaultResults = 8

// settings returns those of the agent whose session asks; without one, those of
// no agent in particular.
func (ix *Index) settings(ctx context.Context) (MemorySearch, error) {
	if ix.o.MemorySearch == nil {
		return MemorySearch{}, nil
	}
	agent := ""
	if id, ok := ctx.Value(askingKey{}).(session.ID); ok && ix.o.Store != nil {
		in, err := session.Stat(ctx, ix.o.Store, id)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return MemorySearch{}, err
		}
		agent = in.Key.Parts().Agent
	}
	m := ix.o.MemorySearch(agent)
	if m.Off {
		return m, errOff
	}
	return m, nil
}

var errOff = errors.New("the user has turned the search of memory files off: agents.defaults.memorySearch.enabled, or that of this agent, is false")

// Tools returns memory_search and memory_get if there is a workspace, and
// session_search and session_read if there is a store.
func (ix *Index) Tools() []Tool {
	var out []Tool
	const query = `"query":{"type":"string","description":"what to look for, in plain words; a question is fine"},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"how many results; default 8"}`
	off := ix.o.MemorySearch != nil && ix.o.MemorySearch("").Off
	if ix.o.Workspace != "" && !off {
		out = append(out, newTool("memory_search", "Search the memory files (MEMORY.md and memory/) by words and by meaning. Each result is a citation file:line and the text there.",
			query, `"query"`, ix.toolMemorySearch))
		out = append(out, newTool("memory_get", "Read lines of a memory file.",
			`"file":{"type":"string","description":"as memory_search cites it, such as memory/2026-08-02.md, or memory/2026-08-02.md:12"},"from":{"type":"integer","minimum":1,"description":"first line; default 1"},"lines":{"type":"integer","minimum":1,"description":"how many lines; default 80"}`,
			`"file"`, ix.toolMemoryGet))
	}
	if ix.o.Store != nil {
		out = append(out, newTool("session_search", "Search everything that was ever said, in this and all other conversations, also what a summary replaces. What was said at a time that the query names (last week, on Monday, in March) comes first. Each result is a citation session#record, local time, role and text; the latest usually holds.",
			query+`,"session":{"type":"string","description":"only this session: a key for everything ever said under it, or an id"},"role":{"type":"string","enum":["user","assistant","tool","summary"]},"since":{"type":"string","description":"in local time: 2026-08-02, 2026-08-02 15:04, yesterday, or 7d ago"},"until":{"type":"string"},"tool":{"type":"string","description":"only its calls and output"},"folder":{"type":"string","description":"absolute path"},"agent":{"type":"string"},"source":{"type":"string","description":"a program, such as codex"}`,
			`"query"`, ix.toolSessionSearch))
		out = append(out, newTool("session_read", "Read a conversation around a record, word for word.",
			`"session":{"type":"string","description":"key or id of a session, or a citation session#record"},"around":{"type":"string","description":"number or id of the record to read around; default: the end of the session"},"messages":{"type":"integer","minimum":1,"maximum":50,"description":"how many messages before and after it; default 4"}`,
			`"session"`, ix.toolSessionRead))
	}
	return out
}

// newTool makes a tool of a function with arguments of type A.
func newTool[A any](name, description, properties, required string, run func(ctx context.Context, args A) (string, error)) Tool {
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, properties, required)
	return Tool{llm.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(schema)}, func(ctx context.Context, raw json.RawMessage) (string, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return "", err
		}
		return run(ctx, args)
	}}
}

var errBlank = errors.New("the query is empty: say what to look for")

var citedLine = regexp.MustCompile(`^(.*\.\w+):(\d+)$`)

// searchArgs are the arguments of memory_search and session_search.
type searchArgs struct {
	Query string
	Limit int
	Filter
}

func (ix *Index) toolMemorySearch(ctx context.Context, a searchArgs) (string, error) {
	if strings.TrimSpace(a.Query) == "" {
		return "", errBlank
	}
	set, err := ix.settings(ctx)
	if err != nil {
		return "", err
	}
	res, err := ix.Search(ctx, Query{
		Text: a.Query, Limit: cmp.Or(max(a.Limit, 0), set.Limit, defaultResults), Memory: true,
		MinScore: set.MinScore, VectorWeight: set.VectorWeight, TextWeight: set.TextWeight, Candidates: set.Candidates, Embed: BeforeAnswer,
	})
	if err != nil {
		return "", err
	}
	b := result{}
	for _, h := range forModel(res) {
		snippet, _ := h.Snippet(a.Query, maxPerHit)
		where := ""
		if h.Heading != "" {
			where = " [" + text.Head(h.Heading, 80) + "]"
		}
		b.line(fmt.Sprintf("%s  %s%s%s", h.Cite(), snippet, where, also(h)))
	}
	return b.text(res, "no note in the memory files fits"), nil
}

type getArgs struct {
	File        string
	From, Lines int
}

func (ix *Index) toolMemoryGet(ctx context.Context, a getArgs) (string, error) {
	if _, err := ix.settings(ctx); err != nil {
		return "", err
	}
	// A citation has the line as well.
	if m := citedLine.FindStringSubmatch(a.File); m != nil {
		a.File = m[1]
		if n, err := strconv.Atoi(m[2]); err == nil && a.From == 0 {
			a.From = n
		}
	}
	a.From = cmp.Or(max(a.From, 0), 1)
	content, total, err := ix.File(a.File, a.From, cmp.Or(max(a.Lines, 0), 80))
	if err != nil {
		return "", err
	}
	part := ""
	if len(content) > maxResult {
		// A line may end right where it is cut.
		if i := strings.LastIndexByte(content[:maxResult+1], '\n'); i >= 0 {
			content = content[:i]
		} else { // one long line: show its beginning
			line, _, _ := strings.Cut(content, "\n")
			content = text.Head(line, maxResult)
			part = fmt.Sprintf("\n[%d of %d bytes of line %d]", len(content), len(line), a.From)
		}
	}
	last := a.From + strings.Count(content, "\n")
	content += part
	if last < total {
		content += fmt.Sprintf("\n[lines %d to %d of %d]", a.From, last, total)
	}
	return content, nil
}

func (ix *Index) toolSessionSearch(ctx context.Context, a searchArgs) (string, error) {
	if strings.TrimSpace(a.Query) == "" {
		return "", errBlank
	}
	q := Query{Text: a.Query, Limit: cmp.Or(max(a.Limit, 0), defaultResults), Sessions: true, Embed: BeforeAnswer}
	if err := a.Filter.Apply(ctx, ix.o.Store, ix.o.Now(), &q); err != nil {
		return "", err
	}
	if err := ix.unasked(ctx, &q); err != nil {
		return "", err
	}
	res, err := ix.Search(ctx, q)
	if err != nil {
		return "", err
	}
	b := result{}
	for _, h := range forModel(res) {
		snippet, _ := h.Snippet(a.Query, maxPerHit)
		title := ""
		if h.Title != "" {
			title = " [" + text.Head(h.Title, 60) + "]"
		}
		b.line(fmt.Sprintf("%s  %s %s%s: %s", h.Cite(), ix.local(h.Time), h.Role, title, snippet+also(h)))
	}
	return b.text(res, "nothing that was said fits"), nil
}

// nearResults is how many hits a model gets if they are only near what it asked
// for: more would fill its window and answer nothing.
const nearResults = 5

// forModel returns the hits that a model gets.
func forModel(res Result) []Hit {
	if res.Near {
		return res.Hits[:min(len(res.Hits), nearResults)]
	}
	return res.Hits
}

// also says how often a hit was said elsewhere, and where.
func also(h Hit) string {
	if len(h.Also) == 0 {
		return ""
	}
	return fmt.Sprintf(" [and %d more like it, such as %s]", len(h.Also), h.Also[0])
}

type readArgs struct {
	Session, Around string
	Messages        int
}

func (ix *Index) toolSessionRead(ctx context.Context, a readArgs) (string, error) {
	in, at, err := Place(ctx, ix.o.Store, a.Session, a.Around)
	if err != nil {
		return "", err
	}
	n := cmp.Or(max(a.Messages, 0), 4)
	lines, err := Around(ctx, ix.o.Store, in.ID, at, n, n)
	if err != nil {
		return "", err
	}
	if len(lines) == 0 {
		return "nothing was said in " + string(in.Key) + " yet", nil
	}
	texts, asked := make([]string, len(lines)), len(lines)-1
	for i, l := range lines {
		said := l.Text
		if len(said) > maxPerLine {
			said = text.Head(said, maxPerLine)
			said += fmt.Sprintf(" … [%d bytes more]", len(l.Text)-len(said))
		}
		texts[i] = fmt.Sprintf("%s#%d  %s %s: %s", in.ID, l.Seq, ix.local(l.Time), l.Role, said)
		if at > 0 && l.Seq >= at && lines[asked].Seq > l.Seq {
			asked = i
		}
	}
	from, to := fitAround(texts, asked)
	texts = texts[from:to]
	if from > 0 {
		texts = append([]string{fmt.Sprintf("[%d before did not fit: read around %d for them]", from, lines[from].Seq)}, texts...)
	}
	if left := len(lines) - to; left > 0 {
		texts = append(texts, fmt.Sprintf("[%d after did not fit: read around %d for them]", left, lines[to-1].Seq))
	}
	return strings.Join(texts, "\n"), nil
}

// fitAround returns which lines fit into a result: the one asked for, and as
// many before and after it as there is room for.
func fitAround(lines []string, asked int) (from, to int) {
	from, to = asked, asked+1
	size := len(lines[asked])
	for before, after := true, true; before || after; {
		if before = before && from > 0 && size+1+len(lines[from-1]) <= maxResult; before {
			from--
			size += 1 + len(lines[from])
		}
		if after = after && to < len(lines) && size+1+len(lines[to]) <= maxResult; after {
			size += 1 + len(lines[to])
			to++
		}
	}
	return from, to
}

// local returns a time as models are told it, in their own zone.
func (ix *Index) local(t time.Time) string {
	if t.IsZero() {
		return "at an unknown time,"
	}
	return t.In(ix.o.Now().Location()).Format("2006-01-02 15:04")
}

type askingKey struct{}

// Asking says that the tools are called in the session id. If they look for the
// question that was just asked there, the question itself is not found, and
// lifts nothing beside it.
func Asking(ctx context.Context, id session.ID) context.Context {
	return context.WithValue(ctx, askingKey{}, id)
}

// maxAsking is how many records a turn may have after its question.
const maxAsking = 1000

// unasked leaves out of q the latest message of the user in the session that
// asks, if it is q itself.
func (ix *Index) unasked(ctx context.Context, q *Query) error {
	id, ok := ctx.Value(askingKey{}).(session.ID)
	if !ok {
		return nil
	}
	in, err := session.Stat(ctx, ix.o.Store, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for r, err := range ix.o.Store.Read(ctx, id, max(0, in.Last-maxAsking)) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return err
		}
		if s, ok := speak(r); ok && s.role == User {
			q.without, q.seq = "", 0
			if sameWordsAs(s.text, q.Text) {
				q.without, q.seq = id, r.Seq
			}
		}
	}
	return nil
}

// sameWordsAs reports whether a text is the query itself, word for word.
func sameWordsAs(text, query string) bool {
	if len(text) > len(query)+40 {
		return false
	}
	return maps.Equal(words.Set(text), words.Set(query))
}

// result is a text of limited size.
type result struct {
	b    strings.Builder
	left int // lines that did not fit
}

func (r *result) line(s string) {
	if r.left > 0 || r.b.Len()+len(s) > maxResult {
		r.left++
		return
	}
	if r.b.Len() > 0 {
		r.b.WriteByte('\n')
	}
	r.b.WriteString(s)
}

func (r *result) text(res Result, none string) string {
	if r.b.Len() == 0 && r.left == 0 {
		r.b.WriteString(none)
		if res.Literal {
			r.b.WriteString(": no word of it is in the index, and it was looked for as it stands")
		}
	}
	if r.left > 0 {
		fmt.Fprintf(&r.b, "\n[%d more did not fit: ask for fewer]", r.left)
	}
	if res.Near {
		fmt.Fprintf(&r.b, "\n[%s]", OnlyNear)
	}
	for _, s := range res.Incomplete {
		fmt.Fprintf(&r.b, "\n[incomplete: %s]", s)
	}
	if res.Unclear() && res.Missing > 0 {
		fmt.Fprintf(&r.b, "\n[incomplete: %s]", res.Uncompared())
	}
	return r.b.String()
}

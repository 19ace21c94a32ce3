package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc64"
	"strings"
	"time"

	"goclaw/internal/codec/native"
	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// stream reads the files of Gemini CLI. A line with an id is a message; the same
// id again is a newer version of the last one, as an answer gets its calls and
// tokens. {"$set":{"messages":[...]}} replaces all of them, {"$rewindTo":id} takes
// back that message and what follows it, and other lines say when and what the
// session is about. What a tool answered is written with its call, and once more
// as a message of the user: it is read once.
//
// The record of a line carries the line in the field "gemini-cli".
type stream struct {
	begun bool
	path  []string        // the records in force
	kids  map[node]string // all records
	msgs  []mark          // the messages in force
	held  *source.Draft
	after []item          // the results of the answer that is held
	has   map[string]bool // the calls since the last answer with calls, and whether they have a result
}

// node is a record by what it continues and what it says.
type node struct {
	parent string
	sum    uint64
}

// mark is a message: the records before it are path[:at].
type mark struct {
	id string
	at int
}

// item is a record to be.
type item struct {
	at   time.Time
	body session.Body
}

type line struct {
	first
	Set    json.RawMessage `json:"$set"`
	Rewind *string         `json:"$rewindTo"`
	message
}

type message struct {
	ID        string          `json:"id"`
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Thoughts  []struct {
		Subject     string `json:"subject"`
		Description string `json:"description"`
	} `json:"thoughts"`
	Tokens *struct {
		Input    int `json:"input"`
		Output   int `json:"output"`
		Cached   int `json:"cached"`
		Thoughts int `json:"thoughts"`
	} `json:"tokens"`
	Calls []struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Result json.RawMessage `json:"result"`
		Status string          `json:"status"`
	} `json:"toolCalls"`
}

// Line implements codec.Stream.
func (c *stream) Line(n int, raw []byte, out []session.Record) ([]session.Record, error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		if source.Broken(err) {
			return out, fmt.Errorf("not a JSON line")
		}
		return c.keep(out, n, raw), nil
	}
	switch {
	case l.Rewind != nil:
		return c.rewind(out, *l.Rewind, n, raw), nil
	case l.ID != "":
		return c.message(out, l.message, n, raw), nil
	case l.Set != nil:
		return c.set(out, l.Set, n, raw), nil
	case !c.begun && l.SessionID != "":
		c.begun = true
		h := session.Header{Version: session.Version, ID: session.ID(l.SessionID)}
		return append(out, source.Carry(session.Record{Time: source.ISOTime(l.StartTime), Body: h}, Program, raw)), nil
	}
	return c.keep(out, n, raw), nil
}

func (c *stream) leaf() string {
	if len(c.path) == 0 {
		return ""
	}
	return c.path[len(c.path)-1]
}

// grow puts a record into force.
func (c *stream) grow(id string, b session.Body) {
	if c.kids == nil {
		c.kids = map[node]string{}
	}
	c.kids[node{c.leaf(), sum(b)}] = id
	c.path = append(c.path, id)
}

// keep takes in a line that is no part of the conversation.
func (c *stream) keep(out []session.Record, n int, raw []byte) []session.Record {
	return c.held.Aside(out, raw, source.Verbatim(n, raw, time.Time{}), c.leaf(), c.End)
}

// message takes in a message, or a newer version of the last one.
func (c *stream) message(out []session.Record, m message, n int, raw []byte) []session.Record {
	last := len(c.msgs) - 1
	again := last >= 0 && c.msgs[last].id == m.ID
	if m.Type == "gemini" && again && c.held != nil {
		items := m.items(c.fresh())
		answer := c.held.Rec.Body.(session.Message)
		answer.Blocks = nil
		c.held.Rec.Body = answer
		c.held.Add(native.LineID(n, raw), items[0].body.(session.Message), raw)
		c.after = items[1:]
		return out
	}
	out = c.End(out)
	if again { // an older version of the last message is out of force
		c.path, c.msgs = c.path[:c.msgs[last].at], c.msgs[:last]
	}
	if m.Type == "gemini" {
		items := m.items(c.fresh())
		c.msgs = append(c.msgs, mark{m.ID, len(c.path)})
		r := session.Record{ID: native.LineID(n, raw), Parent: c.leaf(), Time: items[0].at, Body: items[0].body}
		c.held, c.after = source.NewDraft(r, raw), items[1:]
		return out
	}
	items := m.items(c.has)
	c.msgs = append(c.msgs, mark{m.ID, len(c.path)})
	return c.put(out, items, n, raw)
}

// fresh forgets the calls of earlier answers.
func (c *stream) fresh() map[string]bool {
	c.has = map[string]bool{}
	return c.has
}

// put adds records that a line holds; the first carries the line.
func (c *stream) put(out []session.Record, items []item, n int, raw []byte) []session.Record {
	if len(items) == 0 {
		return c.keep(out, n, raw)
	}
	for k, it := range items {
		r := session.Record{ID: lineID(n, raw, k), Parent: c.leaf(), Time: it.at, Body: it.body}
		if k == 0 {
			r = source.Carry(r, Program, raw)
		} else {
			r = source.Made(r)
		}
		out = append(out, r)
		c.grow(r.ID, it.body)
	}
	return out
}

// End implements codec.Stream: it adds the answer that is held.
func (c *stream) End(out []session.Record) []session.Record {
	if c.held == nil {
		return out
	}
	r, results := c.held.Rec, c.after
	out = c.held.Emit(Program, out)
	c.held, c.after = nil, nil
	c.grow(r.ID, r.Body)
	for k, it := range results {
		res := source.Made(session.Record{ID: fmt.Sprintf("%s/%d", r.ID, k+1), Parent: c.leaf(), Time: it.at, Body: it.body})
		out = append(out, res)
		c.grow(res.ID, it.body)
	}
	return out
}

// rewind takes back a message and what follows it; everything, if there is no
// such message.
func (c *stream) rewind(out []session.Record, id string, n int, raw []byte) []session.Record {
	out = c.End(out)
	at, k := 0, 0
	for i, m := range c.msgs {
		if m.id == id {
			at, k = m.at, i
			break
		}
	}
	c.path, c.msgs = c.path[:at], c.msgs[:k]
	return c.move(out, n, raw)
}

// move says that the conversation ends with the last record in force. If there
// is none, the next record begins a new branch.
func (c *stream) move(out []session.Record, n int, raw []byte) []session.Record {
	to := c.leaf()
	if to == "" {
		return c.keep(out, n, raw)
	}
	return append(out, source.Carry(session.Record{ID: native.LineID(n, raw), Parent: to, Body: session.Leaf{Target: to}}, Program, raw))
}

// set takes in what is said of the session, and messages that replace those so
// far. Most of them are what was there: those stay.
func (c *stream) set(out []session.Record, set json.RawMessage, n int, raw []byte) []session.Record {
	var s struct {
		Messages []message `json:"messages"`
		Summary  string    `json:"summary"`
	}
	if json.Unmarshal(set, &s) != nil {
		return c.keep(out, n, raw)
	}
	if s.Messages == nil {
		if t := strings.TrimSpace(s.Summary); t != "" {
			return c.held.Aside(out, raw, func(parent string) session.Record {
				return source.Carry(session.Record{ID: native.LineID(n, raw), Parent: parent, Side: true, Body: session.Title{Title: t}}, Program, raw)
			}, c.leaf(), c.End)
		}
		return c.keep(out, n, raw)
	}
	out = c.End(out)
	var items []item
	var msgs []mark
	for _, m := range s.Messages {
		has := c.has
		if m.Type == "gemini" {
			has = c.fresh()
		}
		msgs = append(msgs, mark{m.ID, len(items)})
		items = append(items, m.items(has)...)
	}
	was := c.leaf()
	c.path, c.msgs = nil, msgs
	for len(c.path) < len(items) {
		id, ok := c.kids[node{c.leaf(), sum(items[len(c.path)].body)}]
		if !ok {
			return c.put(out, items[len(c.path):], n, raw)
		}
		c.path = append(c.path, id)
	}
	if c.leaf() == was {
		return c.keep(out, n, raw)
	}
	return c.move(out, n, raw)
}

// items returns what a message holds: an answer first, results one by one. has
// are the calls that have a result already.
func (m message) items(has map[string]bool) (out []item) {
	at := source.ISOTime(m.Timestamp)
	blocks, results := m.content()
	say := func(b session.Body) { out = append(out, item{at, b}) }
	switch m.Type {
	case "gemini":
		say(m.answer(blocks, at))
		for _, call := range m.Calls {
			_, res := parts(call.Result)
			for _, r := range res {
				if r.CallID == "" {
					r.CallID = callID(call.ID, call.Name)
				}
				r.Name = cmp.Or(r.Name, call.Name)
				r.IsError = r.IsError || call.Status == "error" || call.Status == "cancelled"
				results = append(results, r)
			}
		}
	case "user":
	default: // information for people
		return nil
	}
	for _, r := range results {
		if has != nil && has[r.CallID] {
			continue
		}
		if has != nil {
			has[r.CallID] = true
		}
		say(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{r}}, At: at})
	}
	if m.Type != "user" || len(blocks) == 0 {
		return out
	}
	said := llm.Message{Role: llm.User, Blocks: blocks}
	if strings.HasPrefix(said.Text(), "<session_context>") {
		say(session.CustomMessage{Type: "gemini.context", Blocks: blocks, At: at})
	} else {
		say(session.Message{Message: said, At: at})
	}
	return out
}

func (m message) content() ([]llm.Block, []llm.ToolResult) { return parts(m.Content) }

// answer is what the model said. Its thoughts, which are not sent again, come
// first, and its calls last.
func (m message) answer(content []llm.Block, at time.Time) session.Message {
	a := session.Message{At: at, Provider: "google", API: "google-generative-ai", Model: m.Model, Stop: llm.StopEnd}
	a.Role = llm.Assistant
	for _, t := range m.Thoughts {
		text := strings.TrimSpace(t.Description)
		if t.Subject != "" {
			text = strings.TrimSpace("**" + t.Subject + "** " + text)
		}
		a.Blocks = append(a.Blocks, llm.Thinking{Text: text})
	}
	a.Blocks = append(a.Blocks, content...)
	said := len(a.Calls()) > 0 // with its content
	for _, c := range m.Calls {
		if !said {
			a.Blocks = append(a.Blocks, llm.ToolCall{ID: callID(c.ID, c.Name), Name: c.Name, Args: source.Arguments(c.Args)})
		}
	}
	if len(a.Calls()) > 0 {
		a.Stop = llm.StopTool
	}
	if t := m.Tokens; t != nil {
		a.Usage = llm.Usage{Input: max(t.Input-t.Cached, 0), CacheRead: t.Cached, Output: t.Output + t.Thoughts}
	}
	return a
}

// callID is the id of a call as it is sent: the file has the tool before it.
func callID(id, name string) string { return strings.TrimPrefix(id, name+"__") }

// part is one of the API's parts.
type part struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
	Inline  *struct {
		MIME string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
	Call *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`

	other json.RawMessage // it cannot be read
}

// parts reads content: a text, a part, or a list of both. Images next to a
// result are what the tool has returned. Parts of other kinds are in the line
// that is carried.
func parts(raw json.RawMessage) (blocks []llm.Block, results []llm.ToolResult) {
	var list []part
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		list = oddParts(raw)
	}
	for _, p := range list {
		switch {
		case p.other != nil:
			blocks = append(blocks, llm.Other{Raw: p.other})
		case p.Call != nil:
			blocks = append(blocks, llm.ToolCall{ID: callID(p.Call.ID, p.Call.Name), Name: p.Call.Name, Args: source.Arguments(p.Call.Args)})
		case p.Response != nil:
			r := llm.ToolResult{CallID: callID(p.Response.ID, p.Response.Name), Name: p.Response.Name}
			r.Blocks, r.IsError = response(p.Response.Response)
			results = append(results, r)
		case p.Inline != nil && strings.HasPrefix(p.Inline.MIME, "image/"):
			img := llm.Image{MIME: p.Inline.MIME, Data: p.Inline.Data}
			if n := len(results); n > 0 {
				results[n-1].Blocks = append(results[n-1].Blocks, img)
			} else {
				blocks = append(blocks, img)
			}
		case p.Thought:
			blocks = append(blocks, llm.Thinking{Text: p.Text})
		case p.Text != "":
			blocks = append(blocks, llm.Text{Text: p.Text})
		}
	}
	return blocks, results
}

// oddParts reads content that is not a list of parts.
func oddParts(raw json.RawMessage) (out []part) {
	text, list := source.TextOrList(raw)
	switch {
	case text != "":
		return []part{{Text: text}}
	case len(raw) > 0 && raw[0] == '{':
		list = []json.RawMessage{raw}
	}
	for _, el := range list {
		var p part
		if el[0] == '"' {
			_ = json.Unmarshal(el, &p.Text)
		} else if json.Unmarshal(el, &p) != nil {
			p = part{other: el}
		}
		out = append(out, p)
	}
	return out
}

// response is what a tool has returned: an object with its output or its error,
// or anything else.
func response(raw json.RawMessage) (blocks []llm.Block, failed bool) {
	var r struct{ Output, Error *string }
	text := string(raw)
	if json.Unmarshal(raw, &r) == nil { // an output of another kind is shown as it is
		switch {
		case r.Output != nil:
			text = *r.Output
		case r.Error != nil:
			text, failed = *r.Error, true
		}
	}
	return []llm.Block{llm.Text{Text: text}}, failed
}

var table = crc64.MakeTable(crc64.ECMA)

// sum is the same for what says the same, whenever it was written and whatever
// it has cost.
func sum(b session.Body) uint64 {
	h := crc64.New(table)
	var blocks []llm.Block
	switch b := b.(type) {
	case session.Message:
		blocks = b.Blocks
		fmt.Fprint(h, b.Role)
	case session.CustomMessage:
		blocks = b.Blocks
		fmt.Fprint(h, b.Type)
	}
	for _, bl := range blocks {
		if c, ok := bl.(llm.ToolCall); ok {
			var args any
			_ = json.Unmarshal(c.Args, &args)
			c.Args, _ = json.Marshal(args)
			bl = c
		}
		data, _ := json.Marshal(bl)
		fmt.Fprintf(h, "%T%s", bl, data)
	}
	return h.Sum64()
}

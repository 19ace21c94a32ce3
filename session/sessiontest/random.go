package sessiontest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/session"
)

// AnyLog draws a log such as other programs write: with dead branches, absent,
// blank, dangling and later parents, repeated and missing ids, side and leaf
// records, resets, compactions and unknown kinds. Some logs are like that
// throughout, some now and then, some at their beginning. Its id is s1.
func AnyLog(t *rapid.T) []session.Record {
	recs := Log()
	n := rapid.IntRange(0, 25).Draw(t, "records")
	mood := rapid.SampledFrom([]string{"wild", "tame", "wild, then tame"}).Draw(t, "mood")
	for len(recs) <= n {
		wild := mood == "wild" || mood == "wild, then tame" && len(recs) < n/3 || rapid.IntRange(0, 14).Draw(t, "wild") == 0
		recs = append(recs, draw(t, recs, wild))
	}
	return recs
}

// AnyRecord draws a record that may follow recs.
func AnyRecord(t *rapid.T, recs []session.Record) session.Record { return draw(t, recs, true) }

// draw draws a record that may follow recs; a tame one continues the leaf.
func draw(t *rapid.T, recs []session.Record, wild bool) session.Record {
	r := session.Record{Seq: session.Seq(len(recs)) + 1, Time: Start.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "ms")) * time.Millisecond)}
	known := func(what string) string {
		return recs[rapid.IntRange(0, len(recs)-1).Draw(t, what)].ID // "" where it is the header's
	}
	r.ID = fmt.Sprintf("e%d", len(recs))
	roll := func(n int, what string) int {
		if !wild {
			return n
		}
		return rapid.IntRange(0, n).Draw(t, what)
	}
	switch roll(19, "id") {
	case 0:
		r.ID = known("again")
	case 1:
		r.ID = ""
	}
	s, err := session.Replay(recs[0].Body.(session.Header).ID, Yield(recs...))
	if err != nil {
		t.Fatalf("replay of %d records: %v", len(recs), err)
	}
	r.Parent = s.Leaf
	switch roll(19, "parent") {
	case 0, 1:
		r.Parent = known("branch")
	case 2:
		r.Parent = ""
	case 3:
		r.Parent = fmt.Sprintf("e%d", len(recs)+2)
	case 4:
		r.Parent = r.ID
	case 5, 6:
		r.Parent, r.Link = "", session.Absent
	case 7:
		r.Parent, r.Link = "", session.Blank
	}
	r.Side = roll(14, "side") == 0
	return drawBody(t, recs, r, wild)
}

// drawBody returns r with a body. A wild one may be a header, which has no id.
func drawBody(t *rapid.T, recs []session.Record, r session.Record, wild bool) session.Record {
	target := func() string {
		if rapid.IntRange(0, 4).Draw(t, "dangling") == 0 {
			return "zz"
		}
		return recs[rapid.IntRange(0, len(recs)-1).Draw(t, "target")].ID
	}
	text := rapid.SampledFrom([]string{"", "hi", "two\nlines", "🦀"}).Draw(t, "text")
	kinds := 20 // those that continue a branch
	if wild {
		kinds = 24
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0, 1, 2, 3, 4:
		r.Body = User(text)
	case 5, 6, 7, 8:
		m := Answer(text)
		if rapid.Bool().Draw(t, "used") {
			m = Used(rapid.IntRange(2, 999).Draw(t, "tokens"), m)
		}
		m.Provider, m.Model = rapid.SampledFrom([]string{"", "a", "openclaw"}).Draw(t, "provider"), rapid.SampledFrom([]string{"", "m", "gateway-injected"}).Draw(t, "model")
		m.Stop = rapid.SampledFrom([]llm.Stop{llm.StopEnd, llm.StopError, llm.StopAborted, llm.StopLength}).Draw(t, "stop")
		r.Body = m
	case 9:
		r.Body = Call(fmt.Sprintf("c%d", len(recs)), "read")
	case 10:
		r.Body = named(Result(fmt.Sprintf("c%d", len(recs)-1), text), map[string]string{fmt.Sprintf("c%d", len(recs)-1): "read"})
	case 11, 12:
		r.Body = session.Compaction{Summary: "sum", FirstKept: target(), Usage: llm.Usage{Output: rapid.IntRange(0, 2).Draw(t, "cost")}}
	case 13:
		r.Body = session.Undo{Target: target()}
	case 14:
		r.Body = session.Reset{Reason: "new"}
		if rapid.Bool().Draw(t, "keeps") {
			r.Body = session.Reset{Reason: "daily", FirstKept: target()}
		}
	case 21, 22:
		l := session.Leaf{Target: target()}
		if rapid.Bool().Draw(t, "appends") {
			l.AppendParent = target()
		}
		r.Body = l
	case 23:
		r.Body = session.Unknown{Type: "hologram"}
		r.Raw = unknownLine(r)
	case 15:
		r.Body = session.Title{Title: text}
	case 16:
		r.Body = session.ModelChange{Provider: "b", Model: "n"}
	case 17:
		r.Body = session.ThinkingChange{Level: "high"}
	case 18:
		r.Body = session.Label{Target: target(), Label: text}
	case 19:
		r.Body = session.Custom{Type: "x", Data: json.RawMessage(`{"a":1}`)}
		if rapid.Bool().Draw(t, "part") {
			r.Body = session.Partial{Offset: rapid.IntRange(0, 2).Draw(t, "offset"), Text: "so far"}
		}
	case 20:
		r.Body = session.Checkpoint{Summary: text, Covers: target(), Usage: llm.Usage{Input: len(text), Output: 1}}
	case 24:
		// A second header is no part of the tree and has no place in it.
		r.Body = session.Header{Version: session.Version, ID: "other", Key: "elsewhere"}
		r.ID, r.Parent, r.Link, r.Side = "", "", session.Given, false
	}
	return r
}

// unknownLine is the line of a record of an unknown kind.
func unknownLine(r session.Record) json.RawMessage {
	line := map[string]any{"type": "hologram", "timestamp": r.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "beam": len(r.ID)}
	if r.ID != "" {
		line["id"] = r.ID
	}
	switch {
	case r.Link == session.Blank:
		line["parentId"] = ""
	case r.Link == session.Given && r.Parent == "":
		line["parentId"] = nil
	case r.Link == session.Given:
		line["parentId"] = r.Parent
	}
	if r.Side {
		line["appendMode"] = "side"
	}
	raw, err := json.Marshal(line)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return raw
}

// AnyBodies draws the bodies of a log, sane or not: what models, tools, crashes
// and other programs put into one. Answers are by the given model or by no
// model.
func AnyBodies(t *rapid.T, provider, model string) []session.Body {
	var log []session.Body
	n := rapid.IntRange(0, 30).Draw(t, "n")
	for range n {
		b := anyBody(t, provider, model)
		if e, ok := b.(session.Edit); ok && e.Target == fmt.Sprint("e", n+1) {
			e.Target = "e1" // only earlier records are edited
			b = e
		}
		log = append(log, b)
	}
	return log
}

var (
	oddIDs   = []string{"c1", "c2", "c3", "", "bad id|é", "functions.read:0", strings.Repeat("x", 99), "a\xff"}
	oddNames = []string{"read", "list", "", "functions.read_file", "bad name!", "读文件", strings.Repeat("n", 201), "\xff", "--"}
	oddTexts = []string{"hi", "", " \n", "\x1c\u00a0", "ends with space \n", "\x00", "\xff\xfe", "\ufeff", "\u2028 \U0001F980", "long " + strings.Repeat("x", 5000)}
	oddArgs  = []string{`{}`, `{"a":1}`, `[1]`, `null`, `{broken`, "\xff", "{\"a\":\"\xff\"}", `{"s":"\ud83d"}`, `{"s":"\udc00\ud83d\ude00 \\ud800"}`, " {\"a\" : 1} ",
		strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300), `{"a":1}{"b":2}`, `"text"`, `{"n":1e999}`}
	oddImages = []llm.Image{
		{MIME: "image/png", Data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},
		{MIME: "image/jpg", Data: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"},
		{MIME: "", Data: "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"},
		{MIME: "image/gif", Data: "R0lGODlhAQABAIAAAAAAAP___yH5BAEAAAAALAAA\nAAABAAEAAAIBRAA7"},
		{MIME: "image/png", Data: ""}, {MIME: "image/png", Data: "AAAA"}, {MIME: "image/png", Data: "no base64!"}, {MIME: "image/heic", Data: "AA=="},
		{MIME: "image/png", Data: "data:,x"},
		{MIME: "image/png", Data: "iVBORw0KGgoAAAANSUhEUgAAJxAAAAABCAYAAAAfFcSJ"}, // 10,000 pixels wide
	}
)

func pick[T any](t *rapid.T, from []T, what string) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(t, what)]
}

// anyBody draws one body.
func anyBody(t *rapid.T, provider, model string) session.Body {
	id, text := pick(t, oddIDs, "call"), pick(t, oddTexts, "text")
	target := fmt.Sprint("e", rapid.IntRange(1, 30).Draw(t, "target"))
	switch rapid.IntRange(0, 13).Draw(t, "kind") {
	case 0, 1:
		m := User(text)
		if rapid.Bool().Draw(t, "image") {
			m.Blocks = append(m.Blocks, pick(t, oddImages, "picture"))
		}
		return m
	case 2, 3:
		return anyAuthor(t, Answer(text), provider, model)
	case 4, 5:
		m := Calls(llm.ToolCall{ID: id, Name: pick(t, oddNames, "name"), Args: json.RawMessage(pick(t, oddArgs, "args"))},
			llm.ToolCall{ID: "c2", Name: "list", Args: json.RawMessage(`{}`)})
		if rapid.Bool().Draw(t, "says") {
			m.Blocks = append(m.Blocks, llm.Text{Text: text})
		}
		return anyAuthor(t, m, provider, model)
	case 6, 7:
		return anyResult(t, id, text)
	case 8:
		return Compaction("SUM", target)
	case 9:
		return Undo(target)
	case 10:
		return session.Reset{Reason: "new", FirstKept: pick(t, []string{"", target}, "kept")}
	case 11:
		return session.Edit{Target: target, Drop: rapid.Bool().Draw(t, "drop"), Blocks: []llm.Block{llm.Text{Text: text}}}
	case 12:
		return session.Message{Message: llm.Message{Role: llm.System, Blocks: []llm.Block{llm.Text{Text: "sys"}}}}
	}
	return session.CustomMessage{Type: "x", Blocks: []llm.Block{llm.Text{Text: text}}}
}

// reasoning is the signature of thinking that came over OpenAI's Responses API.
const reasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}`

// anyAuthor returns m as an answer of the model or of no model, with or without
// thinking, complete or not.
func anyAuthor(t *rapid.T, m session.Message, provider, model string) session.Message {
	if rapid.Bool().Draw(t, "mine") {
		m = By(provider, model, m)
	}
	m.Stop = pick(t, []llm.Stop{llm.StopEnd, llm.StopTool, llm.StopError, llm.StopAborted, ""}, "stop")
	lead := func(th llm.Thinking) { m.Blocks = append([]llm.Block{th}, m.Blocks...) }
	if rapid.Bool().Draw(t, "thinks") {
		lead(llm.Thinking{Text: pick(t, []string{"hm", "", " "}, "thought"), Signature: pick(t, []string{"", "sig", reasoning}, "sig")})
	}
	if rapid.IntRange(0, 5).Draw(t, "redacted") == 0 {
		lead(llm.Thinking{Signature: "xx", Redacted: true})
	}
	if rapid.IntRange(0, 9).Draw(t, "afterthought") == 0 {
		m.Blocks = append(m.Blocks, llm.Thinking{Text: "hm", Signature: pick(t, []string{"late", reasoning}, "late")})
	}
	return m
}

// anyResult draws a result: good or failed, with texts, images or nothing.
func anyResult(t *rapid.T, id, text string) session.Message {
	r := llm.ToolResult{CallID: id, Name: pick(t, oddNames, "tool"), IsError: rapid.Bool().Draw(t, "failed")}
	for range rapid.IntRange(0, 2).Draw(t, "texts") {
		r.Blocks = append(r.Blocks, llm.Text{Text: text})
	}
	for range rapid.IntRange(0, 2).Draw(t, "pictures") {
		r.Blocks = append(r.Blocks, pick(t, oddImages, "picture"))
	}
	m := result(r)
	if rapid.Bool().Draw(t, "speaks") {
		m.Blocks = append(m.Blocks, llm.Text{Text: text}, llm.Other{Raw: json.RawMessage(`{}`)})
	}
	return m
}

// Seeds adds seeds to a fuzz target that rapid.MakeFuzz made: the same random
// bytes each time, enough for every draw, since one that runs out of bytes is
// skipped.
func Seeds(f *testing.F) {
	for n := range 24 {
		random := rand.NewChaCha8([32]byte{byte(n)})
		data := make([]byte, 64<<10)
		random.Read(data)
		f.Add(data)
	}
}

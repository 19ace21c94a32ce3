package window_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

func reports(prompt, output int, m session.Message) session.Message {
	m.Usage = llm.Usage{Input: prompt, Output: output}
	return m
}

// words is a text of n words.
func words(n int) string { return strings.TrimSpace(strings.Repeat("w ", n)) }

func TestWhatIsNoReference(t *testing.T) {
	b := window.Budget{Window: 10_000}
	p := window.Prompt{Provider: "a", Model: "m"}
	for _, c := range []struct {
		name string
		log  []session.Body
		ref  string
	}{
		{"the model asked", []session.Body{User(words(9)), By("a", "m", reports(500, 5, Answer("y"))), User("z")}, "e2"},
		{"another model", []session.Body{User(words(9)), By("a", "n", reports(500, 5, Answer("y"))), User("z")}, ""},
		{"another model since", []session.Body{User(words(9)), By("a", "m", reports(500, 5, Answer("y"))), User("z"), By("b", "m", reports(600, 5, Answer("y"))), User("z")}, "e2"},
		{"no usage", []session.Body{User(words(9)), By("a", "m", reports(0, 0, Answer("y"))), User("z")}, ""},
		{"above the window", []session.Body{User(words(9)), By("a", "m", reports(10_001, 5, Answer("y"))), User("z")}, ""},
		{"before a fold", []session.Body{User(words(9)), By("a", "m", reports(500, 5, Answer("y"))), Compaction("s", "e1"), User("z")}, ""},
		{"before a fold that was undone", []session.Body{User(words(9)), By("a", "m", reports(500, 5, Answer("y"))), Compaction("s", "e2"), By("a", "m", reports(400, 5, Answer("y"))), Undo("e3"), User("z")}, ""},
		{"behind a fold", []session.Body{User("x"), Compaction("s", "e1"), User("z"), By("a", "m", reports(500, 5, Answer("y"))), User("z")}, "e4"},
		{"far below what is sent: it was squeezed", []session.Body{User(words(300)), By("a", "m", reports(500, 5, Answer("y"))), User(words(9000)), By("a", "m", reports(700, 5, Answer("y"))), User("z")}, "e2"},
	} {
		if got := window.Weigh(Replay(t, c.log...), p, byWord{}, b.Window); got.Ref != c.ref {
			t.Errorf("%s: the estimate builds on %q, want %q", c.name, got.Ref, c.ref)
		}
	}
}

// A model whose tokens are 1.6 of ours is found out, and one wild report does
// not spoil it.
func TestRatioIsLearnt(t *testing.T) {
	var log []session.Body
	prompt := 1000
	for i := range 30 {
		log = append(log, User(words(200-4)))
		prompt += 320
		n := prompt
		if i == 17 {
			n += 5000
		}
		log = append(log, By("a", "m", reports(n, 10, Answer(words(6)))))
		prompt += 10
	}
	log = append(log, User(words(1000-4)))
	l := window.Weigh(Replay(t, log...), window.Prompt{Provider: "a", Model: "m"}, byWord{}, 0)
	if math.Abs(l.Ratio-1.6) > 0.15 {
		t.Errorf("ratio = %.2f, want about 1.6", l.Ratio)
	}
	if want := prompt + 1600; math.Abs(float64(l.Used-want)) > 0.02*float64(want) {
		t.Errorf("used = %d, want about %d", l.Used, want)
	}
}

// What a model thought is gone once the user speaks again; hidden reasoning
// never was in the context.
func TestThinkingIsNotKept(t *testing.T) {
	think := session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: words(400), Signature: "s"}, llm.Text{Text: "yes"}}}, Stop: llm.StopEnd}
	p := window.Prompt{Provider: "a", Model: "m"}
	for _, c := range []struct {
		name string
		a    session.Message
		want int
	}{
		{"thinking", By("a", "m", reports(100, 410, think)), 100 + 5 + 5},
		{"hidden reasoning", By("a", "m", reports(100, 9000, Answer("yes"))), 100 + 5 + 5},
	} {
		got := window.Weigh(Replay(t, User("x"), c.a, User("z")), p, byWord{}, 0).Used
		if got != c.want {
			t.Errorf("%s: used = %d, want %d", c.name, got, c.want)
		}
	}
}

// counting counts how many bytes were counted.
type counting struct{ bytes int }

func (c *counting) Count(text string) int { c.bytes += len(text); return len(text) / 4 }

func TestATurnCostsItsNewTextOnly(t *testing.T) {
	tok := &counting{}
	count := window.NewCounter(tok, 1)
	p := window.Prompt{System: strings.Repeat("system ", 100), Model: "m"}
	clock := &Clock{}
	s := Replay(t)
	total := 0
	for i := range 50 {
		for _, b := range []session.Body{User(fmt.Sprint(i, strings.Repeat(" question", 50))), Answer(strings.Repeat("answer ", 200))} {
			if err := s.Apply(s.Next(b, clock)); err != nil {
				t.Fatal(err)
			}
			total += len(b.(session.Message).Text())
		}
		for range 3 { // a turn measures often
			window.Measure(s, p, count, window.Budget{Window: 1 << 20})
		}
	}
	if limit := total + 2*len(p.System); tok.bytes > limit {
		t.Errorf("%d bytes were counted for a log of %d", tok.bytes, total)
	}
}

func TestImageCost(t *testing.T) {
	png := func(w, h uint32) []byte {
		b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, w), h)
	}
	jpeg := []byte("\xff\xd8\xff\xe1\x00\x06Exif\xff\xc0\x00\x11\x08\x01\x2c\x01\x90\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01")
	gif := []byte("GIF89a\x90\x01\x2c\x01\x00\x00\x00")
	vp8x := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), 0x8f, 0x01, 0, 0x2b, 0x01, 0)
	vp8l := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f"), binary.LittleEndian.AppendUint32(nil, 399|299<<14)...)
	vp8 := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a"), 0x90, 0x01, 0x2c, 0x01)
	for _, c := range []struct {
		name string
		data []byte
		want int
	}{
		{"small png", png(400, 300), 160},
		{"large png is scaled", png(4000, 3000), 1600},
		{"wide png is scaled", png(3136, 100), 105},
		{"jpeg behind its camera's data", jpeg, 160},
		{"gif", gif, 160},
		{"webp, extended", vp8x, 160},
		{"webp, lossless", append(vp8l, 0, 0, 0, 0, 0), 160},
		{"webp, lossy", vp8, 160},
		{"something else", []byte("%PDF-1.7 ..............................."), 1500},
		{"nothing", nil, 1500},
		{"a torn png", png(400, 300)[:18], 1500},
	} {
		im := llm.Image{MIME: "image/*", Data: base64.StdEncoding.EncodeToString(c.data)}
		if got := window.ImageCost(im); got != c.want {
			t.Errorf("%s: %d tokens, want %d", c.name, got, c.want)
		}
	}
}

func TestAnswerFits(t *testing.T) {
	for _, c := range []struct{ window, used, counted, want, got int }{
		{0, 0, 0, 8000, 8000},
		{200_000, 100_000, 100_000, 8000, 8000},
		{200_000, 100_000, 100_000, 0, 0},
		{200_000, 170_000, 0, 0, 30_000 - 250}, // a provider may choose more by itself
		{8000, 7000, 7000, 4096, 1000 - 350 - 200},
		{8000, 7000, 0, 4096, 1000 - 200},
		{8000, 7000, 0, 0, 1000 - 200},
		{1_000_000, 980_000, 1000, 64_000, 20_000 - 50 - 250},
		{8000, 9000, 9000, 4096, 256},
	} {
		if got := (window.Budget{Window: c.window, Used: c.used, Counted: c.counted}).Answer(c.want); got != c.got {
			t.Errorf("window %d, used %d, wanted %d: got %d, want %d", c.window, c.used, c.want, got, c.got)
		}
	}
}

func TestReserve(t *testing.T) {
	for _, c := range []struct{ window, output, want, got int }{
		{1_000_000, 128_000, 4000, 16_000},
		{200_000, 64_000, 4000, 16_000},
		{200_000, 8192, 4000, 8192},
		{200_000, 4096, 4000, 4096},
		{200_000, 2000, 4000, 4000}, // what the user wants is the least
		{200_000, 64_000, 30_000, 30_000},
		{128_000, 0, 4000, 12_800},
		{32_000, 0, 0, 3200},
		{32_000, 0, 4000, 4000},
		{8192, 0, 0, 1024},
		{8192, 0, 4000, 2048}, // never more than a quarter
		{4096, 0, 4000, 1024},
		{2000, 0, 4000, 500},
		{0, 0, 4000, 0},
	} {
		if got := window.Reserve(c.window, c.output, c.want); got != c.got {
			t.Errorf("of %d tokens, %d of them an answer at most, %d wanted: %d are kept free, want %d", c.window, c.output, c.want, got, c.got)
		}
	}
}

var flush = []window.Threshold{
	{Percent: 50, Text: "half", As: window.AsSystem},
	{Percent: 75, Text: "write memory/YYYY-MM-DD.md", As: window.AsSystem},
	{Percent: 90, Text: "now", As: window.AsMarked},
}

func TestDue(t *testing.T) {
	note := func(p int) session.Notice { return session.Notice{Percent: p, Text: "n", As: "system"} }
	for _, c := range []struct {
		name string
		used int
		log  []session.Body
		want int
	}{
		{"below all", 49, nil, 0},
		{"the first", 50, nil, 50},
		{"given once in a cycle", 60, []session.Body{User("q"), note(50)}, 0},
		{"the next", 75, []session.Body{User("q"), note(50)}, 75},
		{"those jumped over are not made up for", 95, []session.Body{User("q")}, 90},
		{"nor later, when there is less", 80, []session.Body{User("q"), note(90)}, 0},
		{"a fold begins a cycle", 55, []session.Body{User("q"), note(50), note(90), Compaction("s", "e1")}, 50},
		{"an undone fold was warned of", 95, []session.Body{User("q"), note(90), Compaction("s", "e1"), note(90), Undo("e3")}, 0},
	} {
		got, ok := window.Due(Replay(t, c.log...), window.Budget{Window: 100, Used: c.used}, flush)
		if got.Percent != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d %v, want %d", c.name, got.Percent, ok, c.want)
		}
	}
}

func TestNoticeIsDatedAndMarked(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	got := []session.Notice{flush[1].Notice(now), flush[2].Notice(now)}
	want := []session.Notice{
		{Percent: 75, Text: "write memory/2026-11-15.md", As: "system"},
		{Percent: 90, Text: "[SYSTEM: pre-compaction memory flush]\nnow", As: "marked"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Notices for the system stand at the end of every request while the window
// is that full; the messages never change for them.
func TestTail(t *testing.T) {
	half := session.Notice{Percent: 50, Text: "half", As: "system"}
	most := session.Notice{Percent: 75, Text: "most", As: "system"}
	once := session.Notice{Percent: 90, Text: "save", As: "system", Once: true}
	line := "[Context: 750/1k tokens (75%)]"
	for _, c := range []struct {
		name string
		used int
		log  []session.Body
		want string
	}{
		{"the line alone", 750, []session.Body{User("q")}, line},
		{"a notice of this turn", 750, []session.Body{User("q"), half}, line + "\nhalf"},
		{"through a turn's tools", 750, []session.Body{User("q"), half, Call("c", "read"), Result("c", "r")}, line + "\nhalf"},
		{"in the turns after it", 750, []session.Body{User("q"), half, Answer("a"), User("q"), Answer("a"), User("q")}, line + "\nhalf"},
		{"with the next one", 750, []session.Body{User("q"), half, Answer("a"), User("q"), most, Answer("a"), User("q")}, line + "\nhalf\nmost"},
		{"not below its percentage", 749, []session.Body{User("q"), half, most, Answer("a"), User("q")}, "[Context: 749/1k tokens (74%)]\nhalf"},
		{"below all", 100, []session.Body{User("q"), half, most, Answer("a"), User("q")}, "[Context: 100/1k tokens (10%)]"},
		{"not after a compaction, which begins a cycle", 750, []session.Body{User("q"), half, Answer("a"), Compaction("s", "e1"), User("q")}, line},
		{"what should have been a message, in its turn", 750, []session.Body{User("q"), once, Call("c", "read"), Result("c", "r")}, line + "\nsave"},
		{"and no longer", 950, []session.Body{User("q"), once, Answer("a"), User("q")}, "[Context: 950/1k tokens (95%)]"},
		{"more than fits", 2410, []session.Body{User("q")}, "[Context: 2.4k/1k tokens (100%)]"},
	} {
		s := Replay(t, c.log...)
		if got := window.Tail(s, window.Budget{Window: 1000, Used: c.used}, true); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		_, notices, _ := strings.Cut(c.want, "\n")
		if got := window.Tail(s, window.Budget{Window: 1000, Used: c.used}, false); got != notices {
			t.Errorf("%s, without the line: %q, want %q", c.name, got, notices)
		}
	}
}

// Each notice knows whether the model wrote to its memory after it, as far
// back as the log goes.
func TestNotices(t *testing.T) {
	note := func(p int) session.Notice { return session.Notice{Percent: p, Text: "n", As: "system"} }
	write := func(id string) session.Body {
		return Call(id, "write_file", `{"path":"memory/2026-11-15.md","content":"x"}`)
	}
	s := Replay(t, User("q"), note(50), write("a"), Result("a", "ok"), note(75), Answer("a"), Compaction("s", "e1"),
		User("q"), note(50), Call("b", "write_file", `{"path":"notes.md","content":"x"}`), Result("b", "ok"), Answer("a"), Compaction("s", "e1"),
		User("q"), note(51), note(91), write("c"), Failed("c", "disk full"), write("d"), Result("d", "ok"), note(92))
	var got []string
	for _, n := range window.Notices(s) {
		got = append(got, fmt.Sprint(n.Record.ID, " ", n.Percent, " ", n.Actioned))
	}
	want := []string{"e2 50 true", "e5 75 false", "e9 50 false", "e15 51 true", "e16 91 true", "e21 92 false"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSaved(t *testing.T) {
	note := session.Notice{Percent: 90, Text: "now", As: "marked"}
	write := Call("c", "write_file", `{"path":"memory/2026-11-15.md","content":"x"}`)
	for _, c := range []struct {
		name string
		log  []session.Body
		want bool
	}{
		{"written", []session.Body{User("q"), note, write, Result("c", "ok")}, true},
		{"failed", []session.Body{User("q"), note, write, Failed("c", "disk full")}, false},
		{"interrupted", []session.Body{User("q"), note, write}, false},
		{"before the notice", []session.Body{User("q"), write, Result("c", "ok"), note}, false},
		{"elsewhere", []session.Body{User("q"), note, Call("c", "write_file", `{"path":"notes.md","content":"x"}`), Result("c", "ok")}, false},
		{"in the cycle before", []session.Body{User("q"), note, write, Result("c", "ok"), Compaction("s", "e1")}, false},
	} {
		if got := window.Saved(Replay(t, c.log...)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNoReply(t *testing.T) {
	for text, want := range map[string]bool{
		"NO_REPLY": true, "no_reply": true, " No_Reply.\n": true, "`NO_REPLY`": true,
		"NO_REPLY because": false, "": false, "NO": false, "NO REPLY": false, "I say NO_REPLY": false,
	} {
		if got := window.IsNoReply(text); got != want {
			t.Errorf("IsNoReply(%q) = %v", text, got)
		}
	}
	for text, want := range map[string]bool{"": true, "n": true, "**No_": true, "NO_REPLY": true, "NO_REPLY.": true, "No,": false, "NO_REPLY b": false} {
		if got := window.MayBeNoReply(text); got != want {
			t.Errorf("MayBeNoReply(%q) = %v", text, got)
		}
	}
}

func TestExplain(t *testing.T) {
	s := Replay(t, User("old"), Compaction("the past", "e3"), User(words(10)), Call("c1", "read"), Result("c1", words(100)), Call("c2", "bash"), Result("c2", words(50)),
		By("a", "m", Answer(words(20))), Pin("e3"), User(words(5)))
	p := window.Prompt{Provider: "a", Model: "m", System: words(30), Tools: []llm.ToolSpec{{Name: "read", Description: words(8), Schema: json.RawMessage(`{}`)}}}
	got := window.Explain(s, p, byWord{}, window.Budget{Window: 1000})
	var parts []string
	sum := 0
	for _, part := range got.Parts {
		parts = append(parts, fmt.Sprint(part.Name, " ", part.Tokens, " ", part.Count))
		sum += part.Tokens
	}
	want := []string{"system 30 1", "tools 14 1", fmt.Sprint("summary ", len(strings.Fields(summary("the past")))+4, " 1"),
		"tool:read 108 1", "tool:bash 58 1", "assistant 44 3", "user 23 2"}
	if d := cmp.Diff(want, parts); d != "" {
		t.Error(d)
	}
	var items []string
	for _, item := range got.Largest {
		items = append(items, fmt.Sprintf("%d %s %d %s", item.Seq, item.Part, item.Tokens, item.Call.Name))
	}
	if d := cmp.Diff([]string{"6 tool:read 108 read", "8 tool:bash 58 bash", "9 assistant 24 ", "4 user 14 ", "5 assistant 10 "}, items); d != "" {
		t.Error(d)
	}
	if sum+got.Other != got.Budget.Used || got.Pinned != 14 || got.Pins != 1 || got.Compactions != 1 {
		t.Errorf("%+v", got)
	}
}

// Parts never add up to more than is used: a model that counts less than is
// counted here does not make a part of 1500 %.
func TestExplainOfAModelThatCountsLess(t *testing.T) {
	m := By("a", "m", Answer(words(20)))
	m.Usage = llm.Usage{Input: 100, Output: 21}
	s := Replay(t, User(words(200)), m, Pin("e1"))
	got := window.Explain(s, window.Prompt{Provider: "a", Model: "m", System: words(900)}, byWord{}, window.Budget{Window: 100})
	sum := got.Other
	for _, p := range got.Parts {
		sum += p.Tokens
	}
	if got.Other < 0 || sum != got.Budget.Used || got.Pinned > got.Budget.Used || got.Budget.Percent() > 100 {
		t.Errorf("%+v", got)
	}
}

// What the prompt grew by over a fold teaches nothing: it shrank as well.
func TestRatioIsNotLearntAcrossACompaction(t *testing.T) {
	report := func(prompt int, m session.Message) session.Message {
		m = By("a", "m", m)
		m.Usage = llm.Usage{Input: prompt, Output: 10}
		return m
	}
	s := Replay(t, User(words(1400)), report(1404, Call("c", "read")), Result("c", words(2000)), Compaction("s", "e2"), report(2800, Answer("ok")), User("go on"))
	if got := window.Weigh(s, window.Prompt{Provider: "a", Model: "m"}, byWord{}, 10_000).Ratio; got != 1 {
		t.Errorf("the ratio is %v", got)
	}
}

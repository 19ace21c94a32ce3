//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

// seed puts logs into the store of a home: each begins with its header.
func seed(t *testing.T, home string, logs ...[]session.Record) {
	t.Helper()
	st, err := sqlite.Open(filepath.Join(home, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, recs := range logs {
		if err := st.Append(context.Background(), recs[0].Body.(session.Header).ID, recs...); err != nil {
			t.Fatal(err)
		}
	}
}

// logOf returns a log with an id and a key.
func logOf(h session.Header, bodies ...session.Body) []session.Record {
	h.Version = session.Version
	return sessiontest.Log(append([]session.Body{h}, bodies...)...)
}

// told has turns run in a session, as a program would.
func (s *server) told(id string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		body, _ := json.Marshal(map[string]string{"text": text})
		next := events(s.t, s.ask("POST", "/v1/sessions/"+id+"/turns", string(body)).Body)
		for {
			ev, ok := next()
			if !ok || ev.Type == "error" {
				s.t.Fatalf("the turn ended with %v", ev)
			}
			if ev.Type == "done" {
				break
			}
		}
	}
}

// begun begins a session.
func (s *server) begun() string {
	s.t.Helper()
	var made struct{ ID string }
	s.get(201, "POST", "/v1/sessions", "", &made)
	return made.ID
}

// open opens a session in the page.
func (b *browser) open(id string) {
	b.t.Helper()
	b.js(fmt.Sprintf("location.hash = '#/s/%s'", url.PathEscape(id)))
	b.do(chromedp.WaitVisible(chromedp.CSS("#say")))
}

// draw returns a picture.
func draw(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What happens while an answer comes: stop, take back, a reload in the middle of
// a question, pictures, the output of a command, and a provider that is busy.
func pageTalk(t *testing.T, in context.Context) {
	slow, goOn := slowly(t)
	to, _ := url.Parse(slow)
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.FlushInterval = -1
	var busy atomic.Bool
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy.Load() {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(529)
			fmt.Fprint(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
			return
		}
		// The answer may begin before the proxy has seen the end of the body.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(model.Close)
	folder := t.TempDir()
	s := serving(t, t.TempDir(), folder, model.URL)
	b := browse(t, in, s)
	b.open(s.begun())

	// A message that waits is taken back; the answer is stopped, and continued.
	b.say("be slow")
	goOn <- "one "
	b.see(".item.live", "one")
	b.see("[role=status]", "")
	b.say("not this")
	b.see(".queued", "not this")
	b.click(".queued button", "Take back")
	b.until("document.activeElement.id === 'say' && say.value === 'not this' && !document.querySelector('.queued')")
	b.say("then this")
	b.see(".queued", "then this")
	b.click("button", "Stop")
	b.see(".notice-line", "stopped")
	b.until("say.value === 'then this'") // nothing is said after a stop by itself
	b.click(".resume", "Continue it")
	b.until("!document.querySelector('.resume') && document.querySelector('[role=status]').textContent === 'The answer is complete.'")

	// A question survives a reload. The answer brings the focus back.
	b.say(`call write_file {"path":"a.txt","content":"no"}`)
	b.see(".question", "+no")
	b.do(chromedp.Reload())
	b.see(".question", "+no")
	b.until("document.activeElement.matches('.question')")
	b.do(chromedp.WaitVisible(chromedp.CSS(".question button:enabled")), chromedp.SendKeys(chromedp.CSS(".question input"), "it is too early\r"))
	b.see(".item.tool", "it is too early")
	b.until("document.activeElement.id === 'say'")
	b.see(".item.assistant", "echo: call write_file")

	// What a command prints is seen while it runs.
	if err := syscall.Mkfifo(filepath.Join(folder, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The second question, too, cannot be answered by a click that was on its way.
	b.js(`early = -1; new MutationObserver((_, o) => {
		if (!document.querySelector('.question')) return;
		early = document.querySelectorAll('.question button:enabled').length;
		o.disconnect();
	}).observe(document.body, {childList: true, subtree: true})`)
	b.say(`call bash {"command":"echo before the gate; cat gate"}`)
	b.see(".question", "before the gate")
	if n := value[int](b, "early"); n != 0 {
		t.Errorf("%d buttons can be pressed as soon as a question is seen", n)
	}
	b.click(".question button:enabled", "Once")
	b.see(".output", "before the gate")
	gate, err := os.OpenFile(filepath.Join(folder, "gate"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(gate, "after the gate")
	gate.Close()
	b.see(".item.tool", "after the gate")
	b.until("!document.querySelector('.output')")

	// A provider that is busy.
	b.see(".item.assistant", "echo: call bash")
	busy.Store(true)
	b.say("hello again")
	b.see(".notice-line", "again in")
	busy.Store(false)
	b.see(".item.assistant", "echo: hello again")

	// Pictures: one is chosen, one is pasted, one is removed.
	data := draw(t)
	file := filepath.Join(t.TempDir(), "chosen.png")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{file}))
	b.until("document.querySelectorAll('.added img').length === 1")
	b.js(fmt.Sprintf(`{
		const dt = new DataTransfer();
		dt.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], "pasted.png", {type: "image/png"}));
		say.dispatchEvent(new ClipboardEvent("paste", {clipboardData: dt, bubbles: true, cancelable: true}));
	}`, base64.StdEncoding.EncodeToString(data)))
	b.until("document.querySelectorAll('.added img').length === 2")
	b.click("[aria-label='Remove chosen.png']", "Remove")
	b.until("document.querySelectorAll('.added img').length === 1")
	b.say("look at this")
	b.see(".item.user", "look at this")
	b.until("[...document.querySelectorAll('.item.user .picture img')].some(e => e.naturalWidth === 40)")
	b.until("!document.querySelector('.added')")
	b.see(".about", "last turn")
	b.see(".about", "in all")
}

// The past: a compaction, a branch, and the picture of the window.
func pagePast(t *testing.T, in context.Context) {
	model, _ := slowly(t)
	s := serving(t, t.TempDir(), t.TempDir(), model)
	b := browse(t, in, s)
	id := s.begun()
	for i := range 8 {
		s.told(id, fmt.Sprintf("Turn %d: the code of door %d is K-%d, and here are some more words about the harbour", i, i, 4711+i))
	}
	b.open(id)
	b.see(".item.user", "Turn 0:")

	// A compaction: planned, made, seen, opened in place, closed, and still there.
	b.click("#compact", "Compact")
	b.see(".panel", "Compact the earlier turns?")
	b.until("document.activeElement.matches('.panel h3')")
	b.click(".panel button", "Compact")
	b.see(".compacted", "were compacted")
	b.see(".compacted", "tokens became")
	b.until("document.activeElement.id === 'compact' && ![...document.querySelectorAll('.item.user')].some(e => e.innerText.includes('Turn 0:'))")
	b.click(".compacted summary", "The summary")
	b.see(".compacted .summary", "K-4711")
	b.click(".compacted button", "Show what it covers")
	b.see(".item.user.covered", "Turn 0:")
	b.until("document.querySelector('.covered').compareDocumentPosition(document.getElementById('compacted')) & Node.DOCUMENT_POSITION_FOLLOWING")
	b.until("![...document.querySelectorAll('.covered')].some(e => e.innerText.includes('Turn 7:'))")
	b.click(".compacted button", "Hide what it covers")
	b.until("!document.querySelector('.covered')")
	b.do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(".compacted")))

	// A record that a compaction covers can be linked to.
	b.js("location.hash += '/3'")
	b.see(".item.covered.found", "")

	// A branch: an earlier message is changed, and the other branch is taken again.
	b.js("[...document.querySelectorAll('.item.user')].find(e => e.innerText.includes('Turn 7:')).querySelector('button').click()")
	b.until("document.activeElement.id === 'say' && say.value.startsWith('Turn 7:')")
	b.say("Turn 7, said otherwise")
	b.see(".item.assistant", "echo: Turn 7, said otherwise")
	b.see(".item.user.dead", "Turn 7: the code")
	b.click("#branches", "Branches")
	b.see(".panel", "Turn 7: the code")
	b.until("document.activeElement.matches('.panel h3')")
	b.click(".panel button", "Switch")
	b.see(".item.user.dead", "Turn 7, said otherwise")
	b.until("[...document.querySelectorAll('.item.user:not(.dead)')].some(e => e.innerText.includes('Turn 7: the code'))")
	b.see(".panel", "Turn 7, said otherwise")
	b.click(".panel button", "Close")
	b.until("document.activeElement.id === 'branches'")

	// The picture shows what the API says.
	b.click(".tools a", "Window")
	b.do(chromedp.WaitVisible(chromedp.CSS(".plot canvas")))
	b.see(".window", "The next request")
	type figure struct {
		Seq, Tokens, Window, TokensAfter int
		Cost                             float64
		Kind                             string
	}
	var usage struct{ Steps, Marks []figure }
	s.get(200, "GET", "/v1/sessions/"+id+"/usage", "", &usage)
	var context struct{ Budget struct{ Window, Used int } }
	s.get(200, "GET", "/v1/sessions/"+id+"/context", "", &context)
	want := make([][]float64, 6)
	sum := 0.0
	for _, x := range usage.Steps {
		sum += x.Cost
		size := float64(x.Window)
		if size == 0 {
			size = float64(context.Budget.Window)
		}
		for i, v := range []float64{float64(x.Seq), float64(x.Tokens), size * 50 / 100, size * 75 / 100, size * 90 / 100, sum} {
			want[i] = append(want[i], v)
		}
	}
	b.until("document.querySelector('.plot').plot.data[2][0]")
	if got := value[[][]float64](b, "document.querySelector('.plot').plot.data"); len(usage.Steps) < 9 || !reflect.DeepEqual(got, want) {
		t.Errorf("the picture is of %v, want %v", got, want)
	}
	if len(usage.Marks) == 0 || usage.Marks[0].Kind != "compaction" {
		t.Errorf("the marks are %+v", usage.Marks)
	}
	b.click(".window summary", "As a table")
	b.until(fmt.Sprintf("document.querySelectorAll('.figures tbody tr').length === %d", len(usage.Steps)+len(usage.Marks)))
	rows := map[string]string{}
	for _, x := range value[[][]string](b, "[...document.querySelectorAll('.figures tbody tr')].map(r => [r.dataset.seq, r.cells[3].innerText])") {
		rows[x[0]] = x[1]
	}
	for _, x := range usage.Steps {
		if got := rows[fmt.Sprint(x.Seq)]; got != fmt.Sprint(x.Tokens) {
			t.Errorf("the table says %q of record %d, want %d", got, x.Seq, x.Tokens)
		}
	}
	b.see(".window h3", fmt.Sprintf("The next request: %d of", context.Budget.Used))
	b.picture("window-compaction")

	// Undone: everything is sent again.
	b.click(".tools a", "Conversation")
	b.click(".compacted button", "Undo")
	b.until("!document.querySelector('.compacted')")
	b.see(".item.undo", "Compaction undone")
	b.until("!document.querySelector('.covered')")
	b.see(".item.user", "Turn 0:")

	// What all sessions used.
	b.js("location.hash = '#/usage'")
	b.do(chromedp.WaitVisible(chromedp.CSS(".days canvas")))
	var all struct {
		Usage []struct{ Input, Output, CacheRead, CacheWrite float64 }
	}
	s.get(200, "GET", "/v1/usage?by=day", "", &all)
	total := 0.0
	for _, x := range all.Usage {
		total += x.Input + x.Output + x.CacheRead + x.CacheWrite
	}
	if got := value[float64](b, "document.querySelector('.days').plot.data[1].reduce((a, b) => a + b)"); got != total || total == 0 {
		t.Errorf("the days have %v tokens, want %v", got, total)
	}
}

// The list: filters, the trash, what is left out, and 10,000 sessions.
func pageList(t *testing.T, in context.Context) {
	home, folder := t.TempDir(), t.TempDir()
	one := func(id, key, title, cwd string, origin session.Origin) []session.Record {
		return logOf(session.Header{ID: session.ID(id), Key: session.Key(key), CWD: cwd, Origin: origin}, sessiontest.User("hello"), sessiontest.Answer("hi"), session.Title{Title: title})
	}
	logs := [][]session.Record{
		one("a1", "work:cli:ann", "By folder", folder, session.Origin{}),
		one("a2", "home:telegram:bob", "By channel", "/elsewhere", session.Origin{}),
		one("a3", "main:codex:x", "By source", "/elsewhere", session.Origin{Program: "codex", Path: "/nowhere/x.jsonl"}),
		one("a4", "main:codex:y", "A subagent", "/elsewhere", session.Origin{Program: "codex", Path: "/nowhere/y.jsonl", Mark: session.Subagent}),
		one("a5", "main:codex:z", "Put away", "/elsewhere", session.Origin{Program: "codex", Path: "/nowhere/z.jsonl", Mark: session.Archived}),
	}
	for i := range manySessions {
		recs := one(fmt.Sprintf("m%d", i), fmt.Sprintf("many:cli:%d", i), fmt.Sprintf("Number %05d", i), "/many", session.Origin{})
		for k := range recs {
			recs[k].Time = recs[k].Time.AddDate(-1, 0, 0) // older than the others
		}
		logs = append(logs, recs)
	}
	seed(t, home, logs...)
	s := serving(t, home, folder, "http://127.0.0.1:9")
	b := browse(t, in, s)
	names := func() []string {
		return value[[]string](b, "[...document.querySelectorAll('.list .name')].map(e => e.innerText)")
	}
	shows := func(what string, want ...string) {
		t.Helper()
		data, _ := json.Marshal(want)
		b.until(fmt.Sprintf("JSON.stringify([...document.querySelectorAll('.list .name')].map(e => e.innerText).sort()) === %q", data))
	}
	set := func(label, text string) {
		t.Helper()
		b.js(fmt.Sprintf(`{ const f = [...document.querySelectorAll('.filters label')].find(e => e.textContent.trim().startsWith(%q)).querySelector('input, select');
			f.focus(); if (f.type === 'checkbox') f.click(); else { f.value = %q; f.dispatchEvent(new Event('change', {bubbles: true})); } }`, label, text))
	}
	b.see(".list .name", "By folder")
	b.see(".list .about", "archived")
	if got := names(); len(got) > 60 || strings.Contains(strings.Join(got, "\n"), "A subagent") {
		t.Errorf("at first %d rows are in the page: %q", len(got), got)
	}
	b.click(".filters summary", "Filters")
	set("Folder", folder)
	shows("the folder", "By folder")
	b.see(".filters summary", "(1)")
	set("Folder", "")
	set("Agent", "home")
	shows("the agent", "By channel")
	set("Agent", "")
	set("Channel", "telegram")
	shows("the channel", "By channel")
	set("Channel", "")
	set("From", "codex")
	shows("the source", "By source", "Put away")
	set("Subagents", "")
	shows("all", "A subagent", "By source", "Put away")
	set("Subagents", "")
	set("From", "")

	// Of all sessions, those in view are in the page.
	b.see(".list .name", "Number ")
	b.until("document.querySelector('.list').scrollTop = 1e9")
	for _, rows := range []int{200, 400, 700} {
		b.until(fmt.Sprintf("(document.querySelector('.list').scrollTop = 1e9) && document.querySelector('.list ul').clientHeight >= %d*56", rows))
		if n := len(names()); n > 60 {
			t.Errorf("%d rows are in the page", n)
		}
	}
	b.do(chromedp.SendKeys(chromedp.CSS(".narrow"), "number 00042"))
	shows("the text", "Number 00042")
	b.js("document.querySelector('.narrow').value = ''")
	b.do(chromedp.SendKeys(chromedp.CSS(".narrow"), "by "))
	shows("the text", "By channel", "By folder", "By source")

	// The trash.
	b.click(".row a", "By folder")
	b.do(chromedp.WaitVisible(chromedp.CSS("#say")))
	b.click(".tools button", "Delete")
	b.see(".toast", "is in the trash")
	b.until("document.activeElement.innerText === 'Undo'")
	b.click(".toast button", "Close")
	shows("without it", "By channel", "By source")
	set("In the trash", "")
	shows("the trash", "By folder")
	b.click(".row button", "Restore")
	b.see(".toast", "is back")
	set("In the trash", "")
	shows("with it", "By channel", "By folder", "By source")
}

const manySessions = 1000

// A session with 100,000 records.
func pageLong(t *testing.T, in context.Context) {
	home := t.TempDir()
	const records = 100_000
	bodies := make([]session.Body, 0, records)
	for i := 2; i <= records; i++ {
		if i%2 == 0 {
			bodies = append(bodies, sessiontest.User(fmt.Sprintf("Question %d\n\n%s", i, strings.Repeat("a few words more. ", i%40))))
		} else {
			bodies = append(bodies, sessiontest.Answer(fmt.Sprintf("Answer %d\n\n- one\n- two", i)))
		}
	}
	seed(t, home, logOf(session.Header{ID: "long", Key: "main:cli:long"}, bodies...))
	s := serving(t, home, t.TempDir(), "http://127.0.0.1:9")
	b := browse(t, in, s)
	b.js("performance.clearResourceTimings()")
	b.open("long")
	b.see(".item", fmt.Sprintf("Answer %d", records-1))
	b.see(".item", fmt.Sprintf("Question %d", records))
	bounded := func() {
		t.Helper()
		if n := value[int](b, "document.querySelectorAll('.item').length"); n < 40 || n > 250 {
			t.Errorf("%d items are in the page", n)
		}
	}
	bounded()
	type sum struct{ Requests, Bytes int }
	if got := value[sum](b, "(r => ({requests: r.length, bytes: r.reduce((n, x) => n + x.transferSize, 0)}))(performance.getEntriesByType('resource'))"); got.Requests > 12 || got.Bytes > 500_000 {
		t.Errorf("opening takes %+v", got)
	}

	// Upwards: what is in view stays where it is while more comes before it.
	b.until("document.querySelector('.scroll').scrollTop > 1000")
	for range 4 {
		moved := value[[]float64](b, `new Promise(done => {
			const box = document.querySelector('.scroll'), first = box.querySelector('.item').id;
			box.scrollTop = 500;
			const seen = document.elementFromPoint(box.getBoundingClientRect().left + box.clientWidth / 2, box.getBoundingClientRect().top + 200).closest('.item');
			const was = seen.getBoundingClientRect().top;
			const look = () => {
				if (box.querySelector('.item').id === first) return void requestAnimationFrame(look);
				requestAnimationFrame(() => requestAnimationFrame(() => done([was, seen.getBoundingClientRect().top, box.scrollTop])));
			};
			look();
		})`)
		if d := moved[0] - moved[1]; d > 1 || d < -1 {
			t.Errorf("what is in view moved from %v to %v", moved[0], moved[1])
		}
		bounded()
	}

	// To the beginning, and back to the end.
	b.js("{ const r = document.querySelector('.scrub input'); r.value = 1; r.dispatchEvent(new Event('change', {bubbles: true})); }")
	b.see(".item", "Question 2")
	b.until("document.querySelector('.scroll').scrollTop < 50")
	bounded()
	for range 4 { // downwards
		b.until(`(() => { const box = document.querySelector('.scroll'), last = [...box.querySelectorAll('.item')].pop();
			if (window.seenLast && window.seenLast !== last.id) { delete window.seenLast; return true; }
			if (!window.seenLast) { window.seenLast = last.id; box.scrollTop = 1e9; }
		})()`)
		bounded()
	}
	b.js("{ const r = document.querySelector('.scrub input'); r.value = 50000; r.dispatchEvent(new Event('change', {bubbles: true})); }")
	b.see(".item.found", "Question 50000")
	b.until("Math.abs(document.querySelector('.found').getBoundingClientRect().top - document.querySelector('.scroll').getBoundingClientRect().top) < 20")
	b.click(".latest", "To the latest")
	b.see(".item", fmt.Sprintf("Question %d", records))
	b.until("(e => e.scrollHeight - e.scrollTop - e.clientHeight < 60)(document.querySelector('.scroll'))")
	bounded()
}

// payloads are what someone would write who wants the page to do something.
var payloads = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<img src="https://evil.example/x.png">`, `<svg onload=alert(1)><script>alert(1)</script></svg>`,
	`<iframe src="https://evil.example"></iframe>`, `<iframe srcdoc="<script>alert(1)</script>">`, `<style>@import "https://evil.example/x.css"; body{display:none}</style>`,
	`<link rel=stylesheet href="https://evil.example/x.css">`, `<meta http-equiv=refresh content="0;url=https://evil.example">`, `<base href="https://evil.example/">`,
	`<form action="https://evil.example"><input name=a></form>`, `<object data="https://evil.example/x"></object>`, `<a href="javascript:alert(1)" onclick=alert(1)>x</a>`,
	`[click](javascript:alert(1))`, `[click](data:text/html,<script>alert(1)</script>)`, `[click](vbscript:x)`, `![x](https://evil.example/x.png)`, `![x](javascript:alert(1))`,
	`[a]: javascript:alert(1)` + "\n\n[a]", `<javascript:alert(1)>`, `"><script>alert(1)</script>`, `'-alert(1)-'`, "${alert(1)}", "</textarea><script>alert(1)</script>",
	"\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\ \x1b[2J\x1b[H", "abc\u202egnp.exe\u202c \u2066x\u2069 \u200f \u2028 \u2029 \u0000 \u0085",
	"https://evil.example/seen www.evil.example mail@evil.example",
}

// A transcript that is full of such things does no harm.
func pageHostile(t *testing.T, in context.Context) {
	home := t.TempDir()
	all := strings.Join(payloads, "\n\n")
	var bodies []session.Body
	for i, p := range payloads {
		args, _ := json.Marshal(map[string]string{"path": p, p: p, "content": p, "command": p})
		id := fmt.Sprintf("c%d", i)
		m := sessiontest.By(p, p, sessiontest.Call(id, p, string(args)))
		m.Blocks = append([]llm.Block{llm.Thinking{Text: p}, llm.Text{Text: p}}, m.Blocks...)
		bodies = append(bodies, sessiontest.User(p), m, sessiontest.Result(id, p+"\n"+all))
	}
	for _, tool := range []string{"write_file", "edit_file", "bash"} {
		args, _ := json.Marshal(map[string]string{"path": all, "content": all, "old": all, "new": all, "command": all})
		bodies = append(bodies, sessiontest.Call("t"+tool, tool, string(args)), sessiontest.Result("t"+tool, "replaced\n@@ -1 +1 @@\n+"+all))
	}
	picture := base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><image href="https://evil.example/x.png"/></svg>`))
	for _, mime := range append([]string{"image/svg+xml", "text/html", "image/png", `image/png" onerror="alert(1)`}, payloads...) {
		m := sessiontest.User("a picture")
		m.Blocks = append(m.Blocks, llm.Image{MIME: mime, Data: picture}, llm.Image{MIME: mime, Data: `"><script>alert(1)</script>`})
		bodies = append(bodies, m)
	}
	long := strings.Repeat("x", 10<<20)
	bodies = append(bodies, sessiontest.User(long), sessiontest.Answer(long), sessiontest.Call("long", "bash", `{"command":"`+long+`"}`), sessiontest.Result("long", long),
		sessiontest.Answer(strings.Repeat("> ", 100_000)), sessiontest.Answer(strings.Repeat("*a_ ", 100_000)), sessiontest.Answer(strings.Repeat("- ", 100_000)), sessiontest.Answer(strings.Repeat("[", 100_000)),
		session.Compaction{Summary: all, FirstKept: "e1", TokensBefore: 9, TokensAfter: 3}, session.Notice{Percent: 50, Text: all}, session.Shell{Command: all, Output: all},
		session.CustomMessage{Blocks: []llm.Block{llm.Text{Text: all}}}, session.BranchSummary{Summary: all}, session.ModelChange{Provider: all, Model: all}, session.Title{Title: all})
	logs := [][]session.Record{logOf(session.Header{ID: "bad", Key: session.Key("main:" + strings.ReplaceAll(payloads[0], ":", "") + ":x"), CWD: all}, bodies...)}
	for i, p := range payloads {
		logs = append(logs, logOf(session.Header{ID: session.ID(fmt.Sprintf("t%d", i)), Key: "main:cli:x", CWD: p, Origin: session.Origin{Program: p}}, sessiontest.User(p), session.Title{Title: p}))
	}
	seed(t, home, logs...)
	s := serving(t, home, t.TempDir(), "http://127.0.0.1:9")
	b := browse(t, in, s)
	never(b, page.FrameNavigated, func(ev page.EventFrameNavigated) string {
		if !strings.HasPrefix(ev.Frame.URL, s.url) && !strings.HasPrefix(ev.Frame.URL, "about:") {
			return "a frame shows " + ev.Frame.URL
		}
		return ""
	})
	clean := func(where string) {
		t.Helper()
		const bad = `[...document.querySelectorAll('#app script, #app iframe, #app object, #app style, #app link, #app meta, #app base, #app svg, #app [onerror], #app [onload], #app [onclick], #app [srcdoc], #app .text img, #app .text form')].map(e => e.outerHTML)
			.concat([...document.querySelectorAll('#app [href]')].map(e => e.getAttribute('href')).filter(h => !/^(#|https?:|mailto:|\/v1\/|$)/.test(h)))
			.concat([...document.querySelectorAll('#app [src]')].map(e => e.getAttribute('src')).filter(h => !/^\/v1\//.test(h)))`
		if got := value[[]string](b, bad); len(got) > 0 {
			t.Errorf("%s has %.500q", where, got)
		}
		const hides = `(document.body.innerText + document.title + [...document.querySelectorAll('[aria-label], [title], [alt]')].map(e => e.ariaLabel + e.title + e.alt).join('')).match(/[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/)?.[0].codePointAt(0) || 0`
		if got := value[int](b, hides); got != 0 {
			t.Errorf("%s shows the character U+%04X", where, got)
		}
	}
	b.see(".list .name", "<script>alert(1)</script>")
	clean("the list")
	b.open("bad")
	b.see(".item.shell", "<script>")
	b.js("document.querySelectorAll('details').forEach(d => d.open = true)")
	clean("the end")
	for _, seq := range []int{1, 30, 60, 90, 110} {
		b.js(fmt.Sprintf("location.hash = '#/s/bad/%d'", seq))
		b.until(fmt.Sprintf("document.querySelector('#r%d, #r%d')", seq, seq+1))
		b.js("document.querySelectorAll('details').forEach(d => d.open = true)")
		clean(fmt.Sprintf("record %d", seq))
	}
	b.see(".item", "red")
	for _, hash := range []string{"#/search/script", "#/usage", "#/s/bad/window", "#/s/%ff%fe", "#/%", "#/search/" + url.PathEscape(payloads[1]), "#/s/t22"} {
		b.js(fmt.Sprintf("location.hash = %q", hash))
		b.until("document.querySelector('main') && ![...document.querySelectorAll('[role=status]')].some(e => /…$/.test(e.innerText))  || document.querySelector('.toast.bad')")
		clean(hash)
	}
	b.open("t0") // and the page goes on working
	b.see("h2", "<script>alert(1)</script>")
}

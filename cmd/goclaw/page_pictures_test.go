//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// harbour is a session of some hours: its window fills, and is compacted.
func harbour() []session.Record {
	used := func(prompt, output int, m session.Message) session.Message {
		m = sessiontest.By("anthropic", "claude-sonnet-4-5", m)
		m.Usage = llm.Usage{Input: 900, CacheRead: prompt - 900, Output: output}
		return m
	}
	var bodies []session.Body
	tokens := 9_000
	turn := func(ask, answer string, grows int) {
		bodies = append(bodies, sessiontest.User(ask), used(tokens+grows, 600, sessiontest.Answer(answer)))
		tokens += grows
	}
	bodies = append(bodies, session.Title{Title: "Tide tables for the harbour"})
	work := []string{"Read the tide tables and say what they have in common", "The tests of the parser fail on Windows", "Why is the second column empty?", "Write the importer for the old format", "Compare both formats", "Profile the importer", "Which stations are missing?"}
	for i, ask := range work {
		turn(ask, "Done: see the files below. The stations are read in their own time zones.", 13_000+1_500*i)
		switch i {
		case 3:
			bodies = append(bodies, session.Notice{Percent: 50, Text: "Half of the window is used."})
		case 5:
			bodies = append(bodies, session.Checkpoint{Summary: "The importer reads both formats.", Covers: fmt.Sprintf("e%d", len(bodies)), Tokens: tokens}, session.Notice{Percent: 75, Text: "Three quarters of the window are used."})
		}
	}
	keep := len(bodies) + 1
	turn("Now the documentation", "It is in docs/tides.md.", 21_000)
	bodies = append(bodies, session.Compaction{Summary: "## Task\nRead tide tables of all stations.\n\n## Done\n- the importer reads both formats\n- times are kept in UTC\n\n## Open\n- the station *Old Pier* has no table", FirstKept: fmt.Sprintf("e%d", keep), TokensBefore: tokens, TokensAfter: 31_000})
	tokens = 31_000
	turn("Which station has no table yet?", "**Old Pier**: its table was never published. I would leave it out, and say so in the log.", 4_000)
	bodies = append(bodies, sessiontest.User("Do that, and keep the time in UTC"),
		used(38_000, 420, sessiontest.Call("c1", "edit_file", `{"path":"tides.go","old":"...","new":"..."}`)),
		sessiontest.Result("c1", "replaced 1 time in \"tides.go\"\n@@ -41,7 +41,10 @@\n func Load(s Station) (Table, error) {\n-\tt, err := read(s.File, time.Local)\n+\tif s.File == \"\" {\n+\t\tslog.Warn(\"no table was published\", \"station\", s.Name)\n+\t\treturn Table{}, ErrNoTable\n+\t}\n+\tt, err := read(s.File, time.UTC)\n \tif err != nil {\n \t\treturn Table{}, err\n \t}\n"),
		used(39_500, 180, sessiontest.Call("c2", "bash", `{"command":"go test ./..."}`)),
		sessiontest.Result("c2", "ok  \tharbour\t0.412s\nok  \tharbour/tides\t1.038s\n[exit code 0]"),
		used(40_200, 260, sessiontest.Answer("Stations without a table are left out, with a warning:\n\n| station | table | times |\n|---|---|---|\n| Lighthouse | yes | UTC |\n| North Quay | yes | UTC |\n| Old Pier | **no** | – |\n\nThe tests pass.")))
	recs := logOf(session.Header{ID: "harbour", Key: "main:cli:harbour", CWD: "/home/ana/harbour"}, bodies...)
	for i := range recs {
		recs[i].Time = recs[i].Time.Add(9*time.Hour + time.Duration(i)*7*time.Minute)
	}
	return recs
}

// pagePictures shows the views that the README shows; make screenshots saves
// them.
func pagePictures(t *testing.T, in context.Context) {
	home := t.TempDir()
	logs := [][]session.Record{harbour()}
	for i, title := range []string{"Release notes for 2.4", "Why does the cache miss?", "A birthday present for Ana", "Move the blog to another host"} {
		logs = append(logs, logOf(session.Header{ID: session.ID(fmt.Sprintf("s%d", i)), Key: session.Key(fmt.Sprintf("main:cli:%d", i)), CWD: "/home/ana/" + []string{"app", "app", "notes", "blog"}[i]}, sessiontest.User("hello"), sessiontest.Answer("hi"), session.Title{Title: title}))
	}
	seed(t, home, logs...)
	s := serving(t, home, t.TempDir(), "http://127.0.0.1:9")
	b := browse(t, in, s)
	b.theme("light")
	b.size(1100, 760)
	b.open("harbour")
	b.see(".item.assistant td", "Old Pier")
	b.see(".diff .plus", "time.UTC")
	b.until("(e => e.scrollHeight - e.scrollTop - e.clientHeight < 60)(document.querySelector('.scroll'))")
	b.js("[...document.querySelectorAll('.item.user')].pop().scrollIntoView()")
	b.picture("page-conversation")
	b.js("location.hash += '/window'")
	b.do(chromedp.WaitVisible(chromedp.CSS(".plot canvas")))
	b.see(".window", "The next request")
	b.until("document.querySelector('.plot').plot.data[2][0] > 0")
	b.picture("page-window")
}

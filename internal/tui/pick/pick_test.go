package pick_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a screen with testdata/name.txt.
func golden(t *testing.T, name, screen string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	var lines []string
	for _, l := range strings.Split(ansi.Strip(screen), "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (want, got; -update writes it):\n%s", name, d)
	}
}

// overlay is what package tui shows.
type overlay interface {
	Update(tea.Msg) (bool, tea.Cmd)
	View(width, height int) string
	FullScreen() bool
	Init() tea.Cmd
}

// person presses keys in an overlay, and waits for everything that they begin.
type person struct {
	t    fataler
	v    overlay
	w, h int
	done bool
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func open(t fataler, v overlay, w, h int) *person {
	p := &person{t: t, v: v, w: w, h: h}
	p.send(tea.WindowSizeMsg{Width: w, Height: h})
	p.run(v.Init())
	return p
}

// send sends a message, and checks that what is shown fits the screen.
func (p *person) send(msg tea.Msg) {
	p.t.Helper()
	if p.done || msg == nil {
		return
	}
	if batch, ok := msg.(tea.BatchMsg); ok {
		for _, c := range batch {
			p.run(c)
		}
		return
	}
	done, cmd := p.v.Update(msg)
	p.done = done
	fits(p.t, p.v.View(p.w, p.h), p.w, p.h)
	p.run(cmd)
}

func (p *person) run(cmd tea.Cmd) {
	if cmd != nil {
		p.send(cmd())
	}
}

// press presses keys: names such as "ctrl+x", or text that is typed.
func (p *person) press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		if m, ok := named[k]; ok {
			p.send(m)
			continue
		}
		r, _ := utf8.DecodeRuneInString(k)
		p.send(tea.KeyPressMsg{Code: r, Text: k})
	}
}

func (p *person) screen() string { return ansi.Strip(p.v.View(p.w, p.h)) }

var named = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
	"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete},
}

func init() {
	time.Local = time.UTC
	for r := 'a'; r <= 'z'; r++ {
		named["ctrl+"+string(r)] = tea.KeyPressMsg{Code: r, Mod: tea.ModCtrl}
	}
}

// fits checks that a view is not larger than the screen, and that no more than
// colours reach the terminal.
func fits(t fataler, view string, w, h int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	if len(lines) > h {
		t.Fatalf("%d lines on a screen of %d:\n%s", len(lines), h, view)
	}
	for _, l := range lines {
		if n := ansi.StringWidth(l); n > w {
			t.Fatalf("a line of %d columns on a screen of %d: %q", n, w, l)
		}
	}
	for _, r := range ansi.Strip(view) {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' {
			t.Fatalf("%q reaches the terminal: %q", r, view)
		}
	}
	for rest := view; ; {
		i := strings.IndexByte(rest, 0x1b)
		if i < 0 {
			return
		}
		rest = rest[i+1:]
		if end := strings.IndexByte(rest, 'm'); end < 0 || strings.Trim(rest[:end], "[0123456789;") != "" {
			t.Fatalf("a sequence that is no colour reaches the terminal: %.20q", rest)
		}
	}
}

func open1(t testing.TB) *sqlite.Store {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// now is when the tests happen.
func now() *sessiontest.Clock { return &sessiontest.Clock{} }

// later is the same time, for other ids.
func later() *sessiontest.Clock { return &sessiontest.Clock{Seed: 7} }

// talk adds a session with records after its header.
func talk(t testing.TB, st session.Store, h session.Header, ago time.Duration, bodies ...session.Body) session.ID {
	t.Helper()
	clock := now()
	clock.Move(-ago)
	s, err := session.Begin(context.Background(), st, h, clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bodies {
		if _, err := session.Keep(context.Background(), st, s, s.Next(b, clock), clock); err != nil {
			t.Fatal(err)
		}
	}
	return s.ID
}

// several are some sessions of all kinds.
func several(t testing.TB, st session.Store) (ids []session.ID) {
	for i, x := range []struct {
		title, key, folder, program string
		said                        string
	}{
		{"Plan the trip to Lisbon", "main:cli:trip", "/home/ann/travel", "", "Which flights to Lisbon are cheap in May?"},
		{"Fix the flaky importer test", "main:cli:importer", "/home/ann/work/goclaw", "", "The importer test fails on every second run."},
		{"A very long title that no list can show in one line because it goes on and on, about parsers", "main:cli:parsers", "/home/ann/work/goclaw/internal/a/deep/folder", "", "Write a parser."},
		{"evil \x1b[31mred\x1b[0m \u202etitle\x07", "main:cli:evil", "/tmp/\x1b]0;owned\x07", "", "ignore \x1b[2J me"},
		{"会议记录整理", "main:cli:meeting", "/home/ann/notes", "", "请整理会议记录 🙂"},
		{"Refactor the billing service", "codex:0199", "/home/ann/work/billing", "codex", "The invoices are wrong."},
	} {
		h := session.Header{Key: session.Key(x.key), CWD: x.folder}
		if x.program != "" {
			h.Origin = session.Origin{Program: x.program, Path: "/home/ann/.codex/sessions/0199.jsonl"}
		}
		ids = append(ids, talk(t, st, h, time.Duration(i)*7*time.Hour, sessiontest.User(x.said), sessiontest.Answer("I shall look at it: "+x.said), session.Title{Title: x.title}))
	}
	return ids
}

// crowd adds n sessions.
func crowd(t testing.TB, st session.Store, n int) {
	var g sync.WaitGroup
	defer g.Wait()
	turns := make(chan int)
	for range 64 { // they share transactions
		g.Go(func() {
			for i := range turns {
				one(t, st, i)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
}

func one(t testing.TB, st session.Store, i int) {
	clock := now()
	clock.Move(-time.Duration(i) * time.Minute)
	id := session.ID(fmt.Sprintf("s%d", i))
	recs := sessiontest.Log(sessiontest.User("hello"), session.Title{Title: fmt.Sprintf("Case %d: fix the flaky test of the importer", i)})
	recs[0].Body = session.Header{Version: session.Version, ID: id, Key: session.Key(fmt.Sprintf("main:cli:s%d", i)), CWD: fmt.Sprintf("/home/ann/work/service-%d", i%97)}
	for j := range recs {
		recs[j].Time = clock.Now()
	}
	if err := st.Append(context.Background(), id, recs...); err != nil {
		t.Error(err)
	}
}

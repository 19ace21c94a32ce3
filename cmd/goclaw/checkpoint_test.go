//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// summaries is a server that answers at once, except where it is asked for a
// summary: then it waits until let is closed, or the client is gone.
type summaries struct {
	url   string
	asked chan string // the model of each summary
	let   chan struct{}
	once  sync.Once
}

func serveSummaries(t *testing.T) *summaries {
	t.Helper()
	s := &summaries{asked: make(chan string, 100), let: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if !strings.Contains(string(raw), "You summarise the past") {
			text, results := lastWords(raw)
			anthropicAnswer(w, text, results)
			return
		}
		_, model, _ := strings.Cut(string(raw), `"model":"`)
		model, _, _ = strings.Cut(model, `"`)
		s.asked <- model
		select {
		case <-s.let:
			anthropicAnswer(w, `{"summary":"the user said hello several times and was answered each time","topics":["hello"]}`, true)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(s.release)
	s.url = srv.URL
	return s
}

func (s *summaries) release() { s.once.Do(func() { close(s.let) }) }

// wait returns the model of the next summary.
func (s *summaries) wait(t *testing.T) string {
	t.Helper()
	select {
	case m := <-s.asked:
		return m
	case <-time.After(testPatience):
		t.Fatal("nobody asked for a summary")
		return ""
	}
}

// ask says something and returns when ask has ended and nobody holds its
// output open.
func (s *summaries) ask(t *testing.T, home, text string) {
	t.Helper()
	cmd, out, errOut := child(t, home, "ask", text)
	cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+s.url)
	if err := cmd.Run(); err != nil || out.String() != "echo: "+text+"\n" {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
}

const soon = `{"session": {"checkpoint": {"turnThreshold": 2, "minTokensForGen": 0}}}`

// until waits for something that another process does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > testPatience {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// lateHolder returns the process that makes the checkpoint of the session, 0 if
// there is none.
func lateHolder(t *testing.T, st session.Store, id session.ID) int {
	t.Helper()
	release, err := st.Lock(context.Background(), "background\x00"+string(id), "the test")
	var held *session.HeldError
	switch {
	case errors.As(err, &held):
		return held.PID
	case err != nil:
		t.Fatal(err)
	}
	release()
	return 0
}

// TestAskLeavesTheCheckpoint: ask does not wait for a checkpoint, which the
// small model of the vendor makes in a process of its own; that process can be
// killed, and the next one does its work.
func TestAskLeavesTheCheckpoint(t *testing.T) {
	home, err := os.MkdirTemp("", "late")
	if err != nil {
		t.Fatal(err)
	}
	// The last process may still be closing its files.
	t.Cleanup(func() { until(t, "everything is let go of", func() bool { return os.RemoveAll(home) == nil }) })
	put(t, home, "home/config.json", soon)
	s := serveSummaries(t)
	s.ask(t, home, "one")
	s.ask(t, home, "two") // ends although the summary does not come
	if m := s.wait(t); m != "claude-haiku-5-5" {
		t.Errorf("%s is asked for the checkpoint, want the small model", m)
	}
	st, err := sqlite.Open(filepath.Join(home, "home", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	in, err := session.Current(t.Context(), st, "main:cli:user")
	if err != nil {
		t.Fatal(err)
	}
	first := lateHolder(t, st, in.ID)
	if first == 0 {
		t.Fatal("no process makes the checkpoint")
	}
	if group, err := syscall.Getpgid(first); err != nil || group != first {
		t.Errorf("it is of the group %d (%v): a Ctrl-C for ask would end it", group, err)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the killed process lets go", func() bool { return lateHolder(t, st, in.ID) != first })
	s.ask(t, home, "three")
	s.wait(t)
	s.release()
	until(t, "the checkpoint", func() bool {
		return strings.Contains(spawn(t, home, "sessions", "export", "main:cli:user"), `"type":"checkpoint"`)
	})
	until(t, "the process ends", func() bool { return lateHolder(t, st, in.ID) == 0 })
	log := spawn(t, home, "sessions", "export", "main:cli:user")
	if n := strings.Count(log, `"type":"checkpoint"`); n != 1 {
		t.Errorf("%d checkpoints, want 1:\n%s", n, log)
	}
	if n := len(s.asked); n != 0 {
		t.Errorf("%d more summaries were asked for", n)
	}
}

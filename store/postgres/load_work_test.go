//go:build unix

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/provider/anthropic"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

const (
	loadWorkers  = 6                // turns at a time in a process
	loadSessions = 12               // that all processes share
	loadFresh    = 15 * time.Second // after which all go on to new ones
)

// worker is a process under load.
type worker struct {
	job
	store  *Store
	runner *runner.Runner
	diary  *os.File
	asked  atomic.Int64
}

// work is what a process does: it asks questions until its input ends. Before
// each it notes in its diary that it asks, and after it what came of it.
func work(t *testing.T, conf string) {
	w := &worker{}
	must(t, json.Unmarshal([]byte(conf), &w.job))
	var err error
	w.store, err = Open(bg, w.DSN, Options{})
	must(t, err)
	w.diary, err = os.OpenFile(filepath.Join(w.Dir, w.Name+".diary"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	marks, err := os.OpenFile(filepath.Join(w.Dir, "marks"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	env := agent.Env{
		Provider: anthropic.New(anthropic.Config{BaseURL: w.Model, APIKey: "k"}),
		Prompt:   window.Prompt{Provider: "anthropic", Model: "claude-sonnet-4-5", System: "Answer."},
		Tools:    marking{marks, w.Name},
		Budget:   window.Budget{Window: 4000},
		Tokens:   byWord{},
		Compact:  &compact.Options{},
	}
	w.runner = runner.New(runner.Options{Store: w.store, Who: w.Name, Wait: 5 * time.Second,
		Env: func(context.Context, *session.Session) (agent.Env, error) { return env, nil }})
	stop := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(stop) }()
	var wg sync.WaitGroup
	for range loadWorkers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.ask()
			}
		})
	}
	wg.Wait()
	must(t, w.runner.Close(bg))
	must(t, w.store.Close())
}

// ask asks one question in one of the sessions; sometimes it first has the
// session continue what was interrupted.
func (w *worker) ask() {
	key := session.Key(fmt.Sprintf("load:cli:%d-%d", time.Since(w.Begin)/loadFresh, rand.IntN(loadSessions)))
	n := fmt.Sprintf("%s.%d", w.Name, w.asked.Add(1))
	if rand.IntN(4) == 0 {
		if s, err := w.runner.Peek(bg, key); err == nil {
			if _, ok := runner.InterruptedIn(s); ok {
				err := w.turn(key, llm.Message{}, nil)
				fmt.Fprintf(w.diary, "resumed %s %s\n", key, oneLine(err))
			}
		}
	}
	text := fmt.Sprintf("question %s: %d tools", n, rand.IntN(4))
	if rand.IntN(12) == 0 {
		text += ", slowly"
	}
	fmt.Fprintf(w.diary, "ask %s\n", n)
	said := ""
	err := w.turn(key, llm.UserText(text), &said)
	switch {
	case errors.Is(err, session.ErrHeld):
		fmt.Fprintf(w.diary, "held %s %s\n", n, oneLine(err))
	case err != nil:
		fmt.Fprintf(w.diary, "failed %s %s\n", n, oneLine(err))
	case !strings.HasPrefix(said, "answer "+n+"."):
		fmt.Fprintf(w.diary, "wrong %s %q\n", n, said)
	default:
		fmt.Fprintf(w.diary, "done %s\n", n)
	}
}

// turn runs a turn to its end. said is what was recorded last as an answer.
func (w *worker) turn(key session.Key, in llm.Message, said *string) error {
	for ev, err := range w.runner.Run(bg, key, in) {
		if err != nil {
			return err
		}
		if r, ok := ev.(agent.Recorded); ok && said != nil {
			if m, ok := r.Record.Body.(session.Message); ok && m.Role == llm.Assistant {
				*said = m.Text()
			}
		}
	}
	return nil
}

func oneLine(err error) string {
	if err == nil {
		return "well"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// byWord counts words, and takes them for tokens.
type byWord struct{}

func (byWord) Count(text string) int { return len(strings.Fields(text)) }

// marking is a tool that leaves a mark in a file each time it runs.
type marking struct {
	file *os.File
	who  string
}

func (marking) Specs() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "mark", Description: "leaves a mark", Schema: []byte(`{"type":"object"}`)}}
}

func (m marking) Run(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
	_, err := fmt.Fprintln(m.file, c.ID, m.who)
	time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
	return llm.Result(c, "marked "+c.ID), err
}

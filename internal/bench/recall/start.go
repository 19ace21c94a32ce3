package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// What a search from the command line may take, from the start of the process
// to its end, at the median.
const (
	startRuns  = 20
	smallStart = 60 * time.Millisecond
	codeStart  = 200 * time.Millisecond
	codeBytes  = 40_000_000
)

// fromStart measures the real program: each search is a process of its own.
func fromStart(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-start")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "goclaw")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/goclaw")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("the program cannot be built: %w", err)
	}
	w := newWriter()
	c := newCoder()
	short := func(sessions int) func(add func([]session.Record) error) (size int, err error) {
		return func(add func([]session.Record) error) (size int, err error) {
			for i := 0; i < sessions && err == nil; i++ {
				err = add(w.session(i, perSession, &size))
			}
			return size, err
		}
	}
	var wrong []string
	for _, s := range []struct {
		name     string
		limit    time.Duration
		fill     func(add func([]session.Record) error) (size int, err error)
		question func() string
	}{
		{"1,000 short messages", smallStart, short(20), w.question},
		{"10,000 short messages", smallStart, short(200), w.question},
		{"40 MB of coding transcripts", codeStart, func(add func([]session.Record) error) (size int, err error) {
			for i := 0; size < codeBytes && err == nil; i++ {
				err = add(c.session(i, &size))
			}
			return size, err
		}, c.question},
	} {
		home := filepath.Join(dir, "home")
		size, index, err := fillHome(ctx, home, s.fill)
		if err != nil {
			return err
		}
		wall, cpu, err := searches(ctx, program, home, s.question)
		if err != nil {
			return err
		}
		fmt.Printf("search from the start of the process, %s (%.1f MB; index without vectors %.1f %%): median %v, p95 %v, processor time %v; limit %v\n",
			s.name, mb(size), 100*float64(index)/float64(size), wall[len(wall)/2].Round(100*time.Microsecond), wall[len(wall)*95/100].Round(100*time.Microsecond),
			cpu.Round(100*time.Microsecond), s.limit)
		if got := wall[len(wall)/2]; got > s.limit {
			wrong = append(wrong, fmt.Sprintf("%s: %v, limit %v", s.name, got.Round(100*time.Microsecond), s.limit))
		}
		if share := 100 * float64(index) / float64(size); share > maxIndexShare {
			wrong = append(wrong, fmt.Sprintf("%s: the index has %.1f %% of the text, limit %d %%", s.name, share, maxIndexShare))
		}
		if err := os.RemoveAll(home); err != nil {
			return err
		}
	}
	if wrong != nil {
		return errors.New("not kept: " + strings.Join(wrong, "; "))
	}
	return nil
}

// maxIndexShare is how large the index without vectors may be, in percent of the
// text.
const maxIndexShare = 60

// fillHome makes a home of goclaw with sessions, an index of them and vectors,
// and returns the sizes of the text and of the index without vectors.
func fillHome(ctx context.Context, home string, fill func(add func([]session.Record) error) (int, error)) (size int, index int64, err error) {
	if err := os.MkdirAll(filepath.Join(home, "workspace"), 0o700); err != nil {
		return 0, 0, err
	}
	st, err := sqlite.Open(filepath.Join(home, "sessions.db"))
	if err != nil {
		return 0, 0, err
	}
	defer st.Close()
	size, err = fill(func(recs []session.Record) error {
		return st.Append(ctx, recs[0].Body.(session.Header).ID, recs...)
	})
	if err != nil {
		return 0, 0, err
	}
	ix, err := recall.Open(recall.Options{Store: st, Path: filepath.Join(home, "index.db"), Embedder: asLocal{}})
	if err != nil {
		return 0, 0, err
	}
	defer ix.Close()
	if err := ix.Sync(ctx); err != nil {
		return 0, 0, err
	}
	if index, err = ix.Size(); err != nil {
		return 0, 0, err
	}
	_, err = ix.Embed(ctx)
	return size, index, err
}

// asLocal makes vectors in no time that pass for those of the local model.
type asLocal struct{ standIn }

func (asLocal) Name() string { return recall.Local{}.Name() }

// searches runs the program, once for each question, and returns how long it
// took, ascending, and the average of the processor time.
func searches(ctx context.Context, program, home string, question func() string) (wall []time.Duration, cpu time.Duration, err error) {
	for i := range startRuns + 1 {
		cmd := exec.CommandContext(ctx, program, "search", "--", question())
		cmd.Env = []string{"GOCLAW_HOME=" + home, "HOME=" + home, "GOCLAW_WORKSPACE=" + filepath.Join(home, "workspace")}
		var out, fail bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &fail
		begin := time.Now()
		if err := cmd.Run(); err != nil {
			return nil, 0, fmt.Errorf("%v: %w: %s", cmd.Args, err, fail.String())
		}
		if i == 0 {
			continue // the files come into the cache of the system
		}
		wall = append(wall, time.Since(begin))
		if !strings.Contains(out.String(), "goclaw sessions show") {
			return nil, 0, fmt.Errorf("%v found nothing: %s%s", cmd.Args, out.String(), fail.String())
		}
		cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / startRuns
	}
	slices.Sort(wall)
	return wall, cpu, nil
}

// coder invents transcripts of coding agents: short requests, answers, and
// long tool output with code, paths and logs.
type coder struct {
	*writer
	names []string // identifiers
	zipf  *rand.Zipf
}

func newCoder() *coder {
	c := &coder{writer: newWriter()}
	seen := map[string]bool{}
	for len(c.names) < vocabulary {
		var b strings.Builder
		for i := range 1 + c.rng.IntN(3) {
			w := c.words[c.rng.IntN(4000)]
			if i > 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			b.WriteString(w)
		}
		if !seen[b.String()] {
			seen[b.String()] = true
			c.names = append(c.names, b.String())
		}
	}
	c.zipf = rand.NewZipf(c.rng, 1.1, 20, vocabulary-1)
	return c
}

func (c *coder) name() string { return c.names[c.zipf.Uint64()] }

// output returns about n lines as a tool prints them.
func (c *coder) output(n int) string {
	var b strings.Builder
	for i := range n {
		switch c.rng.IntN(6) {
		case 0:
			fmt.Fprintf(&b, "internal/%s/%s.go:%d: %s\n", c.name(), c.name(), c.rng.IntN(900), c.text(6))
		case 1:
			fmt.Fprintf(&b, "%6d\tif err := %s.%s(%s, %d); err != nil {\n%6d\t\treturn fmt.Errorf(\"%s: %%w\", err)\n", i, c.name(), c.name(), c.name(), c.rng.IntN(64), i+1, c.text(3))
		case 2:
			fmt.Fprintf(&b, "%6d\t%s, %s := %s(ctx, %s.%s)\n", i, c.name(), c.name(), c.name(), c.name(), c.name())
		case 3:
			fmt.Fprintf(&b, "2026-01-%02dT%02d:%02d:%02dZ INFO %s %s=%d commit=%07x\n", 1+c.rng.IntN(28), c.rng.IntN(24), c.rng.IntN(60), c.rng.IntN(60), c.text(4), c.name(), c.rng.IntN(100000), c.rng.Uint32()>>4)
		case 4:
			fmt.Fprintf(&b, "\t// %s\n", c.text(10))
		default:
			fmt.Fprintf(&b, "\t\t%s: %s{%s: %q},\n", c.name(), c.name(), c.name(), c.name())
		}
	}
	return b.String()
}

// question asks for an identifier with some words around it.
func (c *coder) question() string {
	return c.text(2) + " " + c.names[asked+c.rng.IntN(2000)] + " " + c.words[asked+c.rng.IntN(2000)]
}

// session returns a session of 100 messages, and adds the size of its text.
func (c *coder) session(i int, size *int) []session.Record {
	id := session.ID(fmt.Sprintf("code-%06d", i))
	at := time.Unix(1_700_000_000+int64(i)*7200, 0).UTC()
	recs := []session.Record{{Seq: 1, Time: at, Body: session.Header{Version: session.Version, ID: id, Key: session.Key("main:code:" + string(id))}}}
	for j := range 100 {
		at = at.Add(20 * time.Second)
		var m llm.Message
		call := fmt.Sprintf("call-%d-%d", i, j)
		switch j % 4 {
		case 0:
			m = llm.UserText(c.text(8 + c.rng.IntN(30)))
		case 1, 3:
			m = llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: c.text(10+c.rng.IntN(60)) + " `" + c.name() + "`."}}}
		default:
			m = llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: call, Name: "bash", Blocks: []llm.Block{llm.Text{Text: c.output(10 + c.rng.IntN(190))}}}}}
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case llm.Text:
				*size += len(b.Text)
			case llm.ToolResult:
				*size += len(b.Blocks[0].(llm.Text).Text)
			}
		}
		last := recs[len(recs)-1]
		recs = append(recs, session.Record{Seq: last.Seq + 1, ID: fmt.Sprintf("%08x", c.rng.Uint32()), Parent: last.ID, Time: at, Body: session.Message{Message: m, At: at}})
	}
	return recs
}

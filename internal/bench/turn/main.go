//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Command turn measures what a turn and a start cost: the overhead of a turn
// on a long history, the start of the program with many sessions in the store,
// and its resident size. It prints the limits next to the figures and exits with
// 1 if one does not hold.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/internal/bench/overhead"
	"goclaw/internal/bench/share"
	"goclaw/internal/tui/tuitest"
	"goclaw/session"
	"goclaw/store/sqlite"
	"goclaw/store/storetest"
)

func main() {
	had := share.Begin()
	ok, err := run()
	fmt.Println(had())
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/turn:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

const (
	sessions = 10_000 // in the store that the program starts with
	tries    = 15
)

type row struct {
	what  string
	got   float64
	unit  string
	limit float64
}

func run() (bool, error) {
	dir, err := os.MkdirTemp("", "bench-turn")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	var rows []row
	for _, step := range []func(string) ([]row, error){turns, starts} {
		rs, err := step(dir)
		if err != nil {
			return false, err
		}
		rows = append(rows, rs...)
	}
	ok := true
	fmt.Printf("%-64s %10s %10s\n", "", "measured", "limit")
	for _, r := range rows {
		mark := ""
		if r.limit > 0 && r.got > r.limit {
			ok, mark = false, "  too much"
		}
		limit := ""
		if r.limit > 0 {
			limit = fmt.Sprintf("%.0f %s", r.limit, r.unit)
		}
		fmt.Printf("%-64s %10s %10s%s\n", r.what, fmt.Sprintf("%.1f %s", r.got, r.unit), limit, mark)
	}
	return ok, nil
}

// turns measures the overhead of a turn.
func turns(dir string) ([]row, error) {
	st, err := sqlite.Open(filepath.Join(dir, "turns", "sessions.db"))
	if err != nil {
		return nil, err
	}
	defer st.Close()
	before, after, _, err := overhead.Turns(st, dir, 3*tries)
	if err != nil {
		return nil, err
	}
	fastest := least(before, after)
	b, a := median(before), median(after)
	return []row{
		{fmt.Sprintf("turn on %dk tokens: input to request on the wire", overhead.History/1000), b, "ms", 0},
		{fmt.Sprintf("turn on %dk tokens: end of answer to its record", overhead.History/1000), a, "ms", 0},
		{fmt.Sprintf("turn on %dk tokens: overhead in all", overhead.History/1000), a + b, "ms", 5},
		{"  the fastest", fastest, "ms", 0},
	}, nil
}

// least is the least sum of two times of the same turn. It says more than the
// median where other programs use the machine.
func least(before, after []time.Duration) float64 {
	d := before[0] + after[0]
	for i := range before {
		d = min(d, before[i]+after[i])
	}
	return float64(d.Microseconds()) / 1000
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Microseconds()) / 1000
}

// starts measures the program from outside, with a store of many sessions.
func starts(dir string) ([]row, error) {
	bin := filepath.Join(dir, "goclaw")
	build := exec.Command("go", "build", "-o", bin, "./cmd/goclaw")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	if err := fill(small, 20); err != nil {
		return nil, err
	}
	if err := fill(large, sessions); err != nil {
		return nil, err
	}
	list, err := timed(bin, small, "sessions", "--json")
	if err != nil {
		return nil, err
	}
	all, err := timed(bin, large, "sessions", "--json")
	if err != nil {
		return nil, err
	}
	// The first search makes the index.
	for _, home := range []string{small, large} {
		cmd := exec.Command(bin, "search", "anything")
		cmd.Env = environ(home)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("goclaw search: %w: %s", err, out)
		}
	}
	var ds []time.Duration
	for range tries {
		took, _, err := chat(bin, large, false)
		if err != nil {
			return nil, err
		}
		ds = append(ds, took)
	}
	_, rss, err := chat(bin, small, true)
	if err != nil {
		return nil, err
	}
	return []row{
		{"goclaw sessions --json, 20 sessions, from process start", list, "ms", 30},
		{fmt.Sprintf("goclaw sessions --json, %d sessions, from process start", sessions), all, "ms", 0},
		{fmt.Sprintf("start to prompt, %d sessions in the store", sessions), median(ds), "ms", 50},
		{"  the fastest", float64(slices.Min(ds).Microseconds()) / 1000, "ms", 0},
		{"resident size of an idle chat after a turn", rss, "MB", 60},
	}, nil
}

func fill(home string, n int) error {
	st, err := sqlite.Open(filepath.Join(home, "sessions.db"))
	if err != nil {
		return err
	}
	defer st.Close()
	ctx := context.Background()
	for i := range n {
		var recs []session.Record
		for r := range storetest.Conversation(uint64(i+1), 6) {
			recs = append(recs, r)
		}
		if err := st.Append(ctx, recs[0].Body.(session.Header).ID, recs...); err != nil {
			return err
		}
	}
	return nil
}

func environ(home string) []string {
	return []string{"GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
}

// timed returns the median wall time of a command.
func timed(bin, home string, args ...string) (float64, error) {
	var ds []time.Duration
	for range tries {
		cmd := exec.Command(bin, args...)
		cmd.Env = environ(home)
		begin := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("goclaw %s: %w: %s", strings.Join(args, " "), err, out)
		}
		ds = append(ds, time.Since(begin))
	}
	return median(ds), nil
}

// chat starts a chat on a terminal and returns the time until the prompt
// appears. With turn, it sends a message, waits until the chat is idle, and
// returns the resident size as well.
func chat(bin, home string, turn bool) (took time.Duration, mb float64, err error) {
	t, err := tuitest.Open(100, 40)
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	cmd := exec.Command(bin)
	cmd.Env, cmd.Dir = environ(home), home
	begin := time.Now()
	if err := t.Start(cmd); err != nil {
		return 0, 0, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if !t.UntilCells(20*time.Second, tuitest.Resting) {
		return 0, 0, fmt.Errorf("no prompt appeared; the terminal shows\n%s", t.Screen())
	}
	took = time.Since(begin)
	if !turn {
		return took, 0, nil
	}
	if err := t.Send("hello\r"); err != nil {
		return 0, 0, err
	}
	time.Sleep(12 * time.Second) // one turn, and then idle
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return took, 0, nil // not on Linux: no size
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kb); err == nil {
			return took, kb / 1024, nil
		}
	}
	return took, 0, nil
}

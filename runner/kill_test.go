package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

// A child of this test runs a turn with tool calls, to which the user adds a
// message, and kills itself with
// SIGKILL before or after its nth append.
const (
	envDir  = "GOCLAW_KILL_DIR"
	envKind = "GOCLAW_KILL_STORE"
	envAt   = "GOCLAW_KILL_AT" // "before 3"
)

func TestMain(m *testing.M) {
	if os.Getenv(envDir) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

func openKind(kind, dir string) (session.Store, error) {
	if kind == "jsonl" {
		return jsonl.Open(dir, jsonl.Options{})
	}
	return sqlite.Open(filepath.Join(dir, "sessions.db"))
}

// deadly kills the process around an append.
type deadly struct {
	session.Store
	before bool
	left   int
}

func (d *deadly) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	d.left--
	if d.before && d.left == 0 {
		die()
	}
	if err := d.Store.Append(ctx, id, recs...); err != nil {
		return err
	}
	fmt.Println("ack", recs[0].ID, recs[0].Seq)
	if !d.before && d.left == 0 {
		die()
	}
	return nil
}

func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	select {}
}

// marks are tools that leave a line for each run in a file.
type marks struct{ file string }

func (marks) Specs() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "mark", Schema: []byte(`{"type":"object"}`)}}
}

func (m marks) Run(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	f, err := os.OpenFile(m.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return llm.ToolResult{}, err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, c.ID)
	return llm.Result(c, "marked"), err
}

func child() {
	dir := os.Getenv(envDir)
	st, err := openKind(os.Getenv(envKind), dir)
	if err != nil {
		panic(err)
	}
	when, n, _ := strings.Cut(os.Getenv(envAt), " ")
	at, err := strconv.Atoi(n)
	if err != nil {
		panic(err)
	}
	call := func(id string) llm.ToolCall { return llm.ToolCall{ID: id, Name: "mark", Args: []byte("{}")} }
	model := llmtest.New(llmtest.Answer(call("c1"), call("c2")), llmtest.Answer(call("c3")), llmtest.Say("all done"))
	r := withTools(&deadly{Store: st, before: when == "before", left: at}, model, dir)
	s, err := r.Load(context.Background(), key)
	if err != nil {
		panic(err)
	}
	added := false
	steer := func() (m llm.Message) { // after the first results
		if marked, _ := os.ReadFile(filepath.Join(dir, "marks")); len(marked) > 0 && !added {
			m, added = llm.UserText("only one more"), true
		}
		return m
	}
	for _, err := range r.RunSteered(context.Background(), s.ID, llm.UserText("mark three"), steer) {
		if err != nil {
			panic(err)
		}
	}
	fmt.Println("over")
}

func withTools(st session.Store, model llm.Provider, dir string) *runner.Runner {
	return newRunner(st, model, func(o *runner.Options) {
		env := o.Env
		o.Env = func(ctx context.Context, s *session.Session) (agent.Env, error) {
			e, err := env(ctx, s)
			e.Tools = marks{filepath.Join(dir, "marks")}
			return e, err
		}
	})
}

// TestKilledAtEveryStep kills a turn before and after each of its appends,
// and shows: what was acknowledged is there, no tool runs twice, and the next
// turn is accepted by the strict validator.
func TestKilledAtEveryStep(t *testing.T) {
	for _, kind := range []string{"sqlite", "jsonl"} {
		steps := 0
		for n := 1; ; n++ {
			over := false
			for _, when := range []string{"before", "after"} {
				t.Run(fmt.Sprintf("%s %s append %d", kind, when, n), func(t *testing.T) {
					over = killAt(t, kind, fmt.Sprintf("%s %d", when, n))
				})
				steps++
			}
			if over || t.Failed() {
				break
			}
		}
		// header, question, answer, two results, a message, answer, result, answer, title
		if steps < 20 {
			t.Errorf("%s: %d steps, want at least 20", kind, steps)
		}
	}
}

func killAt(t *testing.T, kind, at string) (over bool) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envDir+"="+dir, envKind+"="+kind, envAt+"="+at)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if over = strings.Contains(string(out), "over"); !over && err == nil {
		t.Fatal("the child was not killed and did not finish")
	}

	st, err := openKind(kind, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ctx := context.Background()
	s := load(t, st)
	have := map[string]bool{"": true}
	for rec, err := range st.Read(ctx, s.ID, 0) {
		if err != nil {
			t.Errorf("damage: %v", err)
		}
		have[rec.ID] = true
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSpace(line), " "); f[0] == "ack" && !have[f[1]] {
			t.Errorf("record %s was acknowledged and is lost", f[1])
		}
	}

	// llmtest.Model refuses what the strict validator refuses.
	model := llmtest.New(llmtest.Say("good"))
	if said := turn(t, withTools(st, model, dir), "what happened?"); said != "good" {
		t.Errorf("the next turn said %q", said)
	}
	ran, err := os.ReadFile(filepath.Join(dir, "marks"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		if n := strings.Count(string(ran), id); n > 1 {
			t.Errorf("tool %s ran %d times", id, n)
		}
	}
	return over
}

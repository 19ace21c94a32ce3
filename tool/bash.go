package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/internal/secrets"
	"goclaw/llm"
)

type bash struct {
	dir, shell string
	env        []string
	fence      Fence
	timeout    time.Duration
	max        int
	sandbox    Sandbox
	noSandbox  func() string // why there is none here
	mode       func() Mode
	grace      time.Duration                        // from asking a group to end to killing it
	linger     time.Duration                        // from the shell's end to the end of listening
	also       io.Writer                            // gets all output as well; nil: nobody
	alarm      func(time.Duration) <-chan time.Time // time.After

	mu    sync.Mutex
	bwrap *string           // nil: not looked for yet
	pipes map[*os.File]bool // still open: something in the background may write to them
}

func newBash(dir string, o Options, mode func() Mode) *bash {
	env := secrets.Environment(o.Env)
	if variable(env, "PATH") == "" {
		env = append(env, "PATH="+systemPath)
	}
	b := &bash{
		dir: dir,
		// No one is there to type: no pager, no prompt.
		env:     append(env, "PWD="+dir, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"),
		shell:   o.Shell,
		fence:   o.Fence,
		timeout: o.BashTimeout,
		max:     o.MaxOutput,
		sandbox: o.Sandbox, mode: mode,
		grace:  2 * time.Second,
		linger: 250 * time.Millisecond,
		alarm:  time.After,
		pipes:  map[*os.File]bool{},
	}
	b.noSandbox = b.lacks
	if b.shell == "" {
		b.shell = lookShell(variable(env, "PATH"))
	}
	return b
}

func (b *bash) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "bash",
		Description: fmt.Sprintf("Run a shell command in the workspace. Returns stdout and stderr together, and the exit code. The user is asked first. "+
			"There is no input to read. It ends after %d seconds or timeout, with what it left in the background.",
			int(b.timeout.Seconds())),
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "the command, as for bash -c"},
    "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 600, "description": "seconds"}
  },
  "required": ["command"],
  "additionalProperties": false
}`),
	}
}

func (*bash) Mutates(llm.ToolCall) bool { return true }

func (b *bash) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct {
		Command string
		Timeout float64
	}](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if strings.ContainsRune(a.Command, 0) {
		return llm.Failed(call, "the command holds a NUL byte and cannot be run"), nil
	}
	if b.shell == "" {
		return llm.Failed(call, "there is no bash on this system; use the file tools"), nil
	}
	timeout := b.timeout
	if a.Timeout > 0 {
		timeout = time.Duration(a.Timeout * float64(time.Second))
	}
	return b.run(ctx, call, a.Command, timeout)
}

// Request implements Guarded. A command that cannot be run is not asked about.
func (b *bash) Request(call llm.ToolCall) (r Request, needed bool) {
	a, err := args[struct{ Command string }](call)
	if err != nil || b.shell == "" || strings.ContainsRune(a.Command, 0) {
		return Request{}, false
	}
	return Request{
		Tool: call.Name, Command: a.Command, Dir: b.dir, Rule: ruleFor(a.Command),
		Private: b.fence.names(a.Command, b.dir, b.env),
	}, true
}

// markName is the variable that tells the processes of a command from others.
const markName = "GOCLAW_COMMAND"

// run runs command until its shell ends, or the time is up, or ctx is done.
// Nothing of the command's group outlives it. What has left the group (setsid) is
// ended with a command that is made to end; after one that ends by itself it goes
// on, as daemons do, and its output is read and dropped so that it does not die
// of a closed pipe. If this process is killed while the command runs, all of it
// ends too.
func (b *bash) run(ctx context.Context, call llm.ToolCall, command string, timeout time.Duration) (llm.ToolResult, error) {
	c := b.confinement()
	if c.Refused {
		return llm.Failed(call, "not run: commands must run in a sandbox, and there is none here: "+c.Missing), nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return llm.Failed(call, fmt.Sprintf("the command could not be started: %v", err)), nil
	}
	mark := markName + "=" + rand.Text()
	cmd := exec.Command(b.shell, "-c", command)
	cmd.Dir, cmd.Env = b.dir, append(slices.Clone(b.env), mark)
	cmd.Stdout, cmd.Stderr = w, w // files: Wait waits for the shell alone
	slip, err := leash(cmd, mark, func() error { return b.start(cmd, c) })
	w.Close()
	if err != nil {
		r.Close()
		return llm.Failed(call, fmt.Sprintf("the command could not be started: %v", err)), nil
	}
	defer slip()
	out := newCapture(b.max)
	defer out.tell(llm.ProgressOf(ctx).Output)()
	var to io.Writer = out
	if b.also != nil {
		to = io.MultiWriter(out, b.also)
	}
	silent := b.listen(r, to)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		err = cmd.Wait()
	}()

	var why string
	select {
	case <-exited:
	case <-b.alarm(timeout):
		why = fmt.Sprintf("ended after %s, when its time was up", timeout)
	case <-ctx.Done():
		why = "interrupted"
	}
	if why != "" {
		endGroup(cmd, b.grace, silent)
		endStrays(mark)
		if !within(exited, b.grace) {
			// Killed but not gone: blocked in a system call.
			return llm.Failed(call, withNote(out.String(), "["+why+"; it does not end]")), ctx.Err()
		}
	}
	left := b.leftovers(cmd, silent)
	status, failed := ended(cmd, why, err)
	text := out.String()
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	res := llm.Result(call, withNote(text, "["+status+left+c.blame(text)+"]"))
	res.IsError = failed
	return res, ctx.Err()
}

// leftovers ends what a command whose shell has ended left in its group, and
// says what became of it.
func (b *bash) leftovers(cmd *exec.Cmd, silent <-chan struct{}) string {
	began := time.Now()
	held := !within(silent, b.linger)
	note, left := "", alive(cmd.Process.Pid)
	for left && time.Since(began) < b.linger { // it may be about to end
		time.Sleep(b.linger / 50)
		left = alive(cmd.Process.Pid)
	}
	if left {
		endGroup(cmd, b.grace, silent)
		note = "; what it had left in the background was ended"
		held = !within(silent, b.linger)
	}
	if held {
		note += "; something it started still runs on its own, what that prints is not shown"
	}
	return note
}

// ended says how a command ended: why it was made to, or by itself, for which
// Wait returned err.
func ended(cmd *exec.Cmd, why string, err error) (status string, failed bool) {
	var exit *exec.ExitError
	switch code, signal := ending(cmd.ProcessState); {
	case why != "":
		return why, true
	case err != nil && !errors.As(err, &exit):
		return err.Error(), true
	case signal != "":
		return fmt.Sprintf("exit code %d, killed by a signal: %s", code, signal), true
	default:
		return fmt.Sprintf("exit code %d", code), code != 0
	}
}

// listen copies r to out until its last writer is gone. The channel it returns
// is closed then.
func (b *bash) listen(r *os.File, out io.Writer) <-chan struct{} {
	b.mu.Lock()
	b.pipes[r] = true
	b.mu.Unlock()
	silent := make(chan struct{})
	go func() {
		defer close(silent)
		io.Copy(out, r) // ends at EOF, or when close closes r
		r.Close()
		b.mu.Lock()
		delete(b.pipes, r)
		b.mu.Unlock()
	}()
	return silent
}

// close stops listening to what runs in the background.
func (b *bash) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := range b.pipes {
		r.Close()
	}
}

// within reports whether c is closed within d. It counts steps, so that a pause
// of the whole machine is one of them, however long it was.
func within(c <-chan struct{}, d time.Duration) bool {
	const steps = 25
	t := time.NewTicker(d / steps)
	defer t.Stop()
	for range steps {
		select {
		case <-c:
			return true
		case <-t.C:
		}
	}
	return false
}

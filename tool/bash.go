package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	grace      time.Duration // from asking a group to end to killing it
	linger     time.Duration // from the shell's end to the end of listening

	mu    sync.Mutex
	pipes map[*os.File]bool // still open: something in the background may write to them
}

func newBash(dir string, o Options) *bash {
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
		grace:   2 * time.Second,
		linger:  250 * time.Millisecond,
		pipes:   map[*os.File]bool{},
	}
	if b.shell == "" {
		b.shell = lookShell(variable(env, "PATH"))
	}
	return b
}

func (b *bash) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "bash",
		Description: fmt.Sprintf("Run a shell command in the workspace and return its output (stdout and stderr together) and exit code. "+
			"The user is asked first. There is no input to read. A command is ended after %d seconds unless timeout says otherwise.",
			int(b.timeout.Seconds())),
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "the command, as for bash -c"},
    "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 600, "description": "seconds after which the command is ended"}
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

// run runs command until its shell ends, or the time is up, or ctx is done.
// What the command leaves in the background keeps running, and its output is
// read and dropped so that it does not die of a closed pipe. If this process is
// killed while the command runs, the command ends too.
func (b *bash) run(ctx context.Context, call llm.ToolCall, command string, timeout time.Duration) (llm.ToolResult, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return llm.Failed(call, fmt.Sprintf("the command could not be started: %v", err)), nil
	}
	cmd := exec.Command(b.shell, "-c", command)
	cmd.Dir, cmd.Env = b.dir, b.env
	cmd.Stdout, cmd.Stderr = w, w // files: Wait waits for the shell alone
	slip, err := leash(cmd)
	w.Close()
	if err != nil {
		r.Close()
		return llm.Failed(call, fmt.Sprintf("the command could not be started: %v", err)), nil
	}
	defer slip()
	out := newCapture(b.max)
	silent := b.listen(r, out)
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var why string
	select {
	case err = <-exited:
	case <-timer.C:
		why = fmt.Sprintf("ended after %s, when its time was up", timeout)
	case <-ctx.Done():
		why = "interrupted"
	}
	if why != "" {
		endGroup(cmd, b.grace, silent)
		select {
		case err = <-exited:
		case <-time.After(b.grace):
			// Killed but not gone: blocked in a system call.
			return llm.Failed(call, withNote(out.String(), "["+why+"; it does not end]")), ctx.Err()
		}
	}
	held := !within(silent, b.linger)

	text := out.String()
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	res := llm.Result(call, "")
	status := ""
	var exit *exec.ExitError
	switch code, signal := ending(cmd.ProcessState); {
	case why != "":
		status, res.IsError = why, true
	case err != nil && !errors.As(err, &exit):
		status, res.IsError = err.Error(), true
	case signal != "":
		status, res.IsError = fmt.Sprintf("exit code %d, killed by a signal: %s", code, signal), true
	default:
		status, res.IsError = fmt.Sprintf("exit code %d", code), code != 0
	}
	if held {
		status += "; something it started still runs in the background, what that prints is not shown"
	}
	res.Blocks = []llm.Block{llm.Text{Text: withNote(text, "["+status+"]")}}
	return res, ctx.Err()
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

func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

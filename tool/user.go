package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"goclaw/internal/text"
	"goclaw/llm"
)

// What follows is for the user of a Set, who needs no permission.

// Files visits the files and folders of the workspace, folders before what is in
// them. It leaves out what git ignores and what is private, as grep does.
func (s *Set) Files(ctx context.Context, visit func(path string, folder bool) error) error {
	v := &walker{
		ctx: ctx, w: s.ws, fence: s.ws.fence.survey(), left: maxWalked,
		visit: func(path string) error { return visit(path, false) },
		enter: func(folder string) error { return visit(folder, true) },
	}
	err := v.below(".")
	if errors.Is(err, errMany) {
		return nil
	}
	return err
}

// ReadFile reads a file of the workspace that has at most max bytes. What is
// private is refused.
func (s *Set) ReadFile(path string, max int) ([]byte, error) {
	rel, err := s.ws.rel(path)
	if err != nil {
		return nil, err
	}
	f, info, err := s.ws.open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > int64(max) {
		return nil, fmt.Errorf("it has %s", text.Bytes(info.Size()))
	}
	return io.ReadAll(io.LimitReader(f, int64(max)))
}

// Shell runs a command of the user's own in dir: without a question, a sandbox or
// a limit of time. output gets what it prints as that comes; the result is what
// the model would be told of it. The error is ctx's.
func Shell(ctx context.Context, dir string, env []string, command string, output io.Writer) (result llm.ToolResult, err error) {
	b := newBash(dir, Options{Env: env, MaxOutput: defaultMaxOutput}, func() Mode { return ModeAsk })
	b.env = append(env[:len(env):len(env)], "PWD="+dir, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")
	b.also = output
	defer b.close()
	if b.shell == "" {
		return llm.ToolResult{}, errors.New("there is no bash on this system")
	}
	const long = 24 * time.Hour
	return b.run(ctx, llm.ToolCall{Name: "bash"}, command, long)
}

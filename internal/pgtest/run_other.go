//go:build !linux

package pgtest

import (
	"os"
	"os/exec"
)

func as(*exec.Cmd, int, int) {}

func run(cmd *exec.Cmd) (end func(), ended <-chan error, err error) {
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait(); close(done) }()
	return func() { _ = cmd.Process.Signal(os.Interrupt) }, done, nil
}

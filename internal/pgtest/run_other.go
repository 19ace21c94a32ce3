//go:build !linux

package pgtest

import (
	"errors"
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

func runUntil(cmd *exec.Cmd, _ signal) (end func(), ended <-chan error, err error) { return run(cmd) }

func apart(*exec.Cmd) {}

type signal = int

const kill, stop, cont = 9, 19, 18

func signalAll(int, int) error { return errors.New("pgtest: signals are sent on Linux only") }

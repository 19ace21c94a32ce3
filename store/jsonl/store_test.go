package jsonl

import (
	"testing"

	"goclaw/session"
	"goclaw/store/storetest"
)

var layouts = []Layout{OpenClaw, Claw0New, Claw0Old}

func TestMain(m *testing.M) {
	storetest.Main(m, func(dir string) (session.Store, error) { return Open(dir, Options{}) })
}

func TestStore(t *testing.T) {
	for _, y := range layouts {
		t.Run(y.String(), func(t *testing.T) {
			storetest.Run(t, func(dir string) (session.Store, error) { return Open(dir, Options{Layout: y}) })
		})
	}
}

func TestProcesses(t *testing.T) {
	storetest.Processes(t, func(dir string) (session.Store, error) { return Open(dir, Options{}) })
}

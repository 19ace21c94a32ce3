package tool

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A daemon goes on after a command that ended by itself. One that was made to
// end takes it along.
func TestDaemon(t *testing.T) {
	daemon := `setsid bash -c 'echo $$ > p; sleep 300; true' & while [ ! -s p ]; do sleep 0.01; done; echo started`
	t.Run("ended by itself", func(t *testing.T) {
		s := open(t, Options{Ask: yes}, nil)
		contains(t, ok(t, s, "bash", o{"command": daemon}), "started\n", "[exit code 0; something it started still runs on its own")
		p := pid(t, filepath.Join(s.ws.dir, "p"))
		if !lives(p) {
			t.Error("it did not go on")
		}
		for _, stray := range strays(fmt.Sprintf("PWD=%s\x00", s.ws.dir)) {
			syscall.Kill(stray, syscall.SIGKILL)
		}
		gone(t, p)
	})
	t.Run("time was up", func(t *testing.T) {
		s := open(t, Options{Ask: yes}, nil)
		s.bash.grace = 10 * time.Second // a shell that is slow to end does not count as deaf
		alarm(t, s, "ready")
		fails(t, s, "bash", o{"command": daemon + `; setsid bash -c 'echo > ready; exec sleep 300'; true`, "timeout": 2}, "started\n", "[ended after 2s, when its time was up]")
		gone(t, pid(t, filepath.Join(s.ws.dir, "p")))
		gone(t, strays(fmt.Sprintf("PWD=%s\x00", s.ws.dir))...)
	})
}

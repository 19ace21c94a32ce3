package transcript_test

import (
	"testing"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/window"
)

// TestSqueezedIsNotCompacted: only agent.Compacting says that the past is
// compacted; before it, results may only be cut.
func TestSqueezedIsNotCompacted(t *testing.T) {
	for to, want := range map[window.Squeeze]string{
		window.Results: "too long for the model: asking again with shorter tool results",
		window.Compact: "too long for the model: asking again with less",
		window.Tight:   "too long for the model: asking again with shorter tool results",
	} {
		if got := transcript.Event(agent.Squeezed{To: to}); got != want {
			t.Errorf("%v: got %q, want %q", to, got, want)
		}
	}
	if got, want := transcript.Event(agent.Compacting{}), "the window is full: compacting the past"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

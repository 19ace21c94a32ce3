package repl

import (
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
)

// The spinner never takes a second line, which could not be cleared.
func TestSpinnerFitsTheTerminal(t *testing.T) {
	for _, label := range []string{"waiting for openrouter/some-vendor/with-a-very-long-model-name-2026", "東京の天気を待っています東京の天気を待っています", "thinking"} {
		for _, width := range []int{20, 40, 80} {
			for _, took := range []time.Duration{0, 1234 * time.Second} {
				line := spinner(3, label, took, width)
				if w := displaywidth.String(line); w >= width {
					t.Errorf("at %d columns the spinner has %d: %q", width, w, line)
				}
				if took > 0 && !strings.HasSuffix(line, " 1234s") {
					t.Errorf("at %d columns the time is gone: %q", width, line)
				}
			}
		}
	}
}

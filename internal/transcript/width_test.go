package transcript_test

import (
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
)

// Nothing in a list is wider than the terminal, in whatever script it is.
func TestListsFitTheTerminal(t *testing.T) {
	rows := [][]string{
		{"KEY", "TITLE", "MODEL", "TURNS", "CONTEXT", "LAST USED", "FROM"},
		{"main:cli:user", "Trip", "offline/offline", "3", "1.7k", "now", "goclaw"},
		{"agent:main:telegram:group:-1001234567:topic:42", "東京の天気はどうですか、明日の天気も", "openrouter/some-vendor-with-a-very-long-name", "1234", "156k", "10 months ago", "claude-code"},
	}
	for _, width := range []int{20, 24, 40, 60, 80, 100, 120} {
		for _, line := range transcript.Table(rows, transcript.Style{}, width) {
			if w := displaywidth.String(line); w > width {
				t.Errorf("at %d columns a line has %d: %q", width, w, line)
			}
		}
	}
	narrow := strings.Join(transcript.Table(rows, transcript.Style{}, 40), "\n")
	if !strings.Contains(narrow, "KEY") || !strings.Contains(narrow, "TITLE") || !strings.Contains(narrow, "main:cli:user") {
		t.Errorf("at 40 columns key and title are not there:\n%s", narrow)
	}
	if all := transcript.Table(rows, transcript.Style{}, 0); !strings.HasSuffix(all[2], "claude-code") || strings.Contains(strings.Join(all, ""), "…") {
		t.Errorf("without a limit something is cut:\n%s", strings.Join(all, "\n"))
	}
	for _, n := range []int{1, 2, 5, 9} {
		for _, text := range []string{"東京の天気は", "abcdefghijkl", "a 東 b 京 c", "ok"} {
			if got := transcript.OneLine(text, n); displaywidth.String(got) > n {
				t.Errorf("OneLine(%q, %d) = %q, %d columns", text, n, got, displaywidth.String(got))
			}
		}
	}
}

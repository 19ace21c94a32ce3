package transcript_test

import (
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"goclaw/internal/transcript"
)

func grid(text string, width int) string {
	lines := strings.Split(text, "\n")
	if !transcript.IsGrid(lines) {
		return "no table"
	}
	return strings.Join(transcript.Grid(lines, width, func(s string) string { return s }, transcript.Style{}), "\n")
}

func TestGrid(t *testing.T) {
	const sizes = "| Name | Size | State |\n|:--|--:|:-:|\n| a | 12 | ok |\n| long name | 3 | broken |"
	for name, c := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"aligned": {sizes, 80, "Name      │ Size │ State\n──────────┼──────┼───────\na         │   12 │   ok\nlong name │    3 │ broken"},
		"narrow": {"| What | Why |\n|---|---|\n| one two three | four five six |", 20,
			"What     │ Why\n─────────┼──────────\none two  │ four five\nthree    │ six"},
		"a long word":  {"| a | b |\n|---|---|\n| abcdefghijklmnop | x |", 12, "a        │ b\n─────────┼──\nabcdefgh │ x\nijklmnop │"},
		"too narrow":   {"| one | two | three | four |\n|---|---|---|---|\n| 12345 | 67890 | abcdef | ghijkl |\n| x | | y | z |", 20, "one: 12345\ntwo: 67890\nthree: abcdef\nfour: ghijkl\n\none: x\nthree: y\nfour: z"},
		"escaped bar":  {"| a |\n|---|\n| x \\| y |", 80, "a\n─────\nx | y"},
		"ragged":       {"| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |", 80, "a │ b │\n──┼───┼──\n1 │   │\n1 │ 2 │ 3"},
		"wide letters": {"| 天気 | x |\n|---|---|\n| 東京 | 晴れ |", 80, "天気 │ x\n─────┼─────\n東京 │ 晴れ"},
		"no rule":      {"| a | b |\n| c | d |", 80, "no table"},
		"other rule":   {"| a | b |\n|---|", 80, "no table"},
		"one line":     {"| a | b |", 80, "no table"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, grid(c.text, c.width)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for width := 1; width < 60; width++ {
		for _, line := range strings.Split(grid(sizes, width), "\n") {
			if w := displaywidth.String(line); w > max(width, len("broken")+len("State: ")) {
				t.Errorf("at %d columns a line has %d: %q", width, w, line)
			}
		}
	}
}

// A cell's colour does not run into its neighbours when it is wrapped.
func TestGridColours(t *testing.T) {
	red := transcript.Style{Colour: true}.Red
	lines := transcript.Grid([]string{"| a | b |", "|---|---|", "| one two three | x |"}, 13, red, transcript.Style{Colour: true})
	for _, line := range lines[2:] {
		if n := strings.Count(line, "m"); n == 0 || strings.Count(line, "0m") < 1 {
			t.Errorf("a line is not painted by itself: %q", line)
		}
		if at := strings.Index(line, "│"); strings.LastIndex(line[:at], "31m") > strings.LastIndex(line[:at], "0m") {
			t.Errorf("the bar has the colour of the cell: %q", line)
		}
	}
}

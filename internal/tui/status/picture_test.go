package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"goclaw/compact"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/status"
	"goclaw/llm"
	"goclaw/window"
)

var breakdown = window.Breakdown{
	Budget: window.Budget{Window: 200_000, Reserve: 16_000, Used: 152_000},
	Parts: []window.Part{
		{Name: "system", Tokens: 3_100, Count: 1}, {Name: "AGENTS.md", Tokens: 1_400, Count: 1}, {Name: "tools", Tokens: 7_500, Count: 11}, {Name: "summary", Tokens: 2_800, Count: 1},
		{Name: "tool:read", Tokens: 61_000, Count: 40}, {Name: "tool:bash", Tokens: 33_000, Count: 31}, {Name: "assistant", Tokens: 20_000, Count: 52},
		{Name: "user", Tokens: 12_000, Count: 19}, {Name: "tool:grep", Tokens: 6_000, Count: 9}, {Name: "tool:glob", Tokens: 2_000, Count: 2}, {Name: "tool:fetch\x1b[2J", Tokens: 1_200, Count: 1}, {Name: "notice", Tokens: 300, Count: 1},
	},
	Other: 1_700, Pinned: 1_200, Pins: 2, Compactions: 1, Warned: true, Cost: 4.2, Spent: llm.Usage{Input: 1_900_000, Output: 81_000},
	Largest: []window.Item{
		{Seq: 132, Part: "tool:read", Tokens: 24_000, Call: llm.ToolCall{Name: "read", Args: json.RawMessage(`{"path":"internal/inherit/testdata/openclaw/sessions.json"}`)}},
		{Seq: 98, Part: "tool:bash", Tokens: 12_300, Call: llm.ToolCall{Name: "bash", Args: json.RawMessage(`{"command":"go test ./...\nrm \u001b[2J"}`)}},
		{Seq: 12, Part: "user", Tokens: 4_100, Text: "Here is the log of the crash:\n\npanic: 磁盘已满，无法写入记录"},
		{Seq: 13, Part: "user", Tokens: 100, Text: "not shown"},
	},
}

var report = func() compact.Report {
	r := compact.Report{Compacted: 92, Kept: 14, Before: 152_000, After: 41_000, Asks: true, Cost: llm.Usage{Input: 121_000, Output: 4_000}, Pinned: 1, Summary: 3_900, Former: 2_800,
		Open: []string{"make the tests pass on macOS"}, Lost: []string{"e4711", "10.0.0.7", "host-17"}}
	r.Cost.Cost.Total = 0.42
	for i := range 24 {
		t := compact.Turn{Seq: 0, Text: fmt.Sprintf("Now fix problem %d in the importer\x1b[2J, please, and tell me why it was there", i), Tokens: 5_000 + 100*i}
		t.Seq += 2
		for range i {
			t.Seq += 9
		}
		if i >= 20 {
			t.Stays = t.Tokens
		}
		if i == 3 {
			t.Pinned = 1
		}
		r.Turns = append(r.Turns, t)
	}
	r.Before = 12_000 + r.Former
	r.After = 12_000 + r.Summary
	for _, t := range r.Turns {
		r.Before += t.Tokens
		r.After += t.Stays
	}
	return r
}()

// shown is what the terminal gets of lines.
func shown(lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, terminal.Text(l))
	}
	return out
}

func TestWindowPicture(t *testing.T) {
	for _, width := range []int{80, 40} {
		golden(t, fmt.Sprintf("window-%d", width), shown(status.Window(breakdown, "anthropic/claude-sonnet-4-5", width, transcript.Style{})))
	}
	golden(t, "window-80-colour", shown(status.Window(breakdown, "anthropic/claude-sonnet-4-5", 80, transcript.Style{Colour: true})))
	unknown := breakdown
	unknown.Budget.Window, unknown.Budget.Reserve = 0, 0
	golden(t, "window-unknown", shown(status.Window(unknown, "ollama/qwen3", 80, transcript.Style{})))
}

func TestCompactionPicture(t *testing.T) {
	b := window.Budget{Window: 200_000}
	for _, width := range []int{80, 40} {
		golden(t, fmt.Sprintf("compaction-%d", width), shown(status.Compaction(report, b, width, transcript.Style{})))
	}
	golden(t, "compaction-80-colour", shown(status.Compaction(report, b, 80, transcript.Style{Colour: true})))
	cheap := report
	cheap.Asks, cheap.From, cheap.Cost, cheap.Lost, cheap.Open, cheap.Pinned = false, "e7", llm.Usage{}, nil, nil, 0
	golden(t, "compaction-checkpoint", shown(status.Compaction(cheap, window.Budget{}, 80, transcript.Style{})))
	larger := report
	larger.After = larger.Before + 1
	if got := strings.Join(status.Compaction(larger, b, 80, transcript.Style{}), " "); strings.Contains(got, "before") && strings.Contains(got, "█") {
		t.Errorf("a picture of a compaction that gains nothing: %q", got)
	}
}

// Nothing is wider than the terminal, and colours change no text.
func TestPicturesFit(t *testing.T) {
	for width := 24; width < 200; width++ {
		for _, colour := range []bool{false, true} {
			st := transcript.Style{Colour: colour}
			narrow(t, shown(status.Window(breakdown, "anthropic/claude-sonnet-4-5", width, st)), width)
			narrow(t, shown(status.Compaction(report, window.Budget{Window: 200_000}, width, st)), width)
		}
	}
}

// The bar and the legend have the figures that goclaw context --json prints.
func TestWindowPictureHasTheFigures(t *testing.T) {
	got := strings.Join(status.Window(breakdown, "m", 80, transcript.Style{}), "\n")
	for _, p := range breakdown.Parts[:6] {
		if !strings.Contains(got, window.Short(p.Tokens)) {
			t.Errorf("%s: %s is not shown in\n%s", p.Name, window.Short(p.Tokens), got)
		}
	}
	bar := strings.Split(got, "\n")[1]
	if n := strings.Count(bar, "R"); n != 41 { // 102.2k of 200k in 80 cells
		t.Errorf("%d cells of results in %s", n, bar)
	}
}

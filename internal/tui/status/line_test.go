package status_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"goclaw/internal/repl"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/status"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares lines with testdata/name.txt.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	file, got := filepath.Join("testdata", name+".txt"), strings.Join(lines, "\n")+"\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (want, got; -update writes it):\n%s", name, d)
	}
}

// narrow fails if a line is wider than width.
func narrow(t *testing.T, lines []string, width int) {
	t.Helper()
	for _, l := range lines {
		if n := (displaywidth.Options{ControlSequences: true}).String(l); n > width {
			t.Errorf("%d columns at a width of %d: %q", n, width, l)
		}
	}
}

var busy = repl.Status{
	Model: "anthropic/claude-sonnet-4-5", Folder: "~/code/goclaw/internal/tui", Title: "Why does the store lose a record when the disk is full?",
	Mode: "edits", Used: 152_000, Window: 200_000, Last: 0.0321, Total: 4.2, Priced: true, Background: "checkpoint",
}

func TestStatusLine(t *testing.T) {
	quiet := busy
	quiet.Used, quiet.Background, quiet.Mode, quiet.Title = 31_000, "", "ask", "main:cli:user"
	compacted := busy
	compacted.Used, compacted.Background, compacted.Compacted = 61_000, "", 82_400
	unknown := repl.Status{Model: "ollama/qwen3", Folder: "~", Title: "main:cli:user", Mode: "all", Used: 900}
	fresh := repl.Status{Model: "offline", Folder: "/srv", Title: "main:cli:user", Mode: "plan"}
	cjk := busy
	cjk.Title, cjk.Folder = "为什么磁盘满时存储会丢失记录？请解释一下原因并修复它", "~/项目/目录/很长的名字很长的名字"
	var lines []string
	for _, c := range []struct {
		name  string
		s     repl.Status
		queue int
	}{{"busy", busy, 2}, {"quiet", quiet, 0}, {"compacted", compacted, 2}, {"unknown window and price", unknown, 0}, {"not measured yet", fresh, 0}, {"wide characters", cjk, 2}} {
		for _, width := range []int{140, 80, 40} {
			drawn := status.Line(c.s, c.queue, "? for help", width, transcript.Style{})
			lines = append(lines, "--- "+c.name+", "+map[int]string{140: "140", 80: "80", 40: "40"}[width])
			lines = append(lines, drawn...)
		}
	}
	golden(t, "line", lines)
}

// At every width there is something to see, in at most two lines, none too wide,
// with and without colours.
func TestStatusLineFits(t *testing.T) {
	sgr := regexp.MustCompile("\x1b\\[[0-9;]*m")
	hostile := busy
	hostile.Title, hostile.Folder, hostile.Model = "a\x1b[31mred\nb\u202ec\x07", "/tmp/\x1b]0;t\x07", "x/\x9b31my"
	for _, s := range []repl.Status{busy, {}, hostile, {Used: 1 << 30, Window: 10, Title: "👩‍👧 नमस्ते"}} {
		for width := 1; width < 220; width++ {
			bare, painted := status.Line(s, 2, "? for help", width, transcript.Style{}), status.Line(s, 2, "? for help", width, transcript.Style{Colour: true})
			narrow(t, bare, width)
			narrow(t, painted, width)
			if len(bare) > 2 {
				t.Errorf("%d lines at a width of %d", len(bare), width)
			}
			text := strings.Join(bare, "\n")
			if got := sgr.ReplaceAllString(strings.Join(painted, "\n"), ""); got != text {
				t.Errorf("with colours %q, without %q", got, text)
			}
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && terminal.Hidden(r) }) {
				t.Errorf("a control character at a width of %d: %q", width, text)
			}
		}
	}
}

func TestStatusLineColours(t *testing.T) {
	for used, want := range map[int]string{10: "\x1b[32m", 50: "\x1b[33m", 75: "\x1b[31m", 95: "\x1b[1m\x1b[31m"} {
		s := repl.Status{Model: "m", Used: used, Window: 100}
		if got := strings.Join(status.Line(s, 0, "", 80, transcript.Style{Colour: true}), "\n"); !strings.Contains(got, want) {
			t.Errorf("%d%%: %q has no %q", used, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		used, size, cells int
		want              string
	}{
		{0, 100, 20, "░░░░░░░░░░│░░░░│░░│░"},
		{1, 1000, 20, "█░░░░░░░░░│░░░░│░░│░"},
		{52, 100, 20, "██████████▓░░░░│░░│░"},
		{49, 100, 20, "█████████░│░░░░│░░│░"},
		{55, 100, 20, "██████████▓░░░░│░░│░"},
		{80, 100, 20, "██████████▓████▓░░│░"},
		{300, 100, 20, "██████████▓████▓██▓█"},
		{76, 100, 5, "██▓▓│"},
		{5, 0, 4, "█░││"},
	} {
		if got := status.Bar(c.used, c.size, c.cells); got != c.want {
			t.Errorf("%d of %d in %d cells: got %s, want %s", c.used, c.size, c.cells, got, c.want)
		}
	}
}

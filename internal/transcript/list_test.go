package transcript

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"goclaw/session"
)

func listedRows(now time.Time) []Row {
	at := func(d time.Duration) time.Time { return now.Add(-d) }
	mirror := session.Origin{Program: "claude-code", Path: "/x"}
	archived := mirror
	archived.Mark = session.Archived
	return []Row{
		{Info: session.Info{Key: "main:cli:user", ID: "01995f1e-aaaa-7000", Title: "Trip to Rome", Turns: 3, Used: 12000, Updated: at(time.Second), CWD: "/srv/app", Provider: "anthropic", Model: "claude-sonnet-4-5"}, Window: 200000, Open: true},
		{Info: session.Info{Key: "claude:a-long-folder:8d06b908-0663-4b02-8388-2e1d5337e2e0", ID: "8d06b908", Title: "東京の天気はどうですか、明日の天気もおしえてください", Turns: 1234, Used: 156000, Updated: at(2 * time.Hour), CWD: "/srv/deep/below/a/very-long-folder-name/with/app", Provider: "openrouter", Model: "some-vendor-with-a-very-long-name", Origin: mirror}, Window: 200000},
		{Info: session.Info{Key: "main:cli:user", ID: "01995f1e-bbbb-7000", Turns: 1, Used: 900, Updated: at(400 * 24 * time.Hour), Provider: "p", Model: "m"}},
		{Info: session.Info{Key: "codex:w:01a1df71-99a8-7072-8679-a9f5966ff672", ID: "c1", Title: "Put away", Updated: at(50 * time.Hour), Origin: archived}},
	}
}

// A list fits every terminal, and numbers, age, turns and how full it is are
// whole in it. Without a terminal nothing is cut.
func TestSessions(t *testing.T) {
	now := time.Now()
	rows := listedRows(now)
	for _, width := range []int{24, 40, 60, 71, 72, 80, 100, 120, 160, 200} {
		out := Sessions(rows, now, Style{}, width)
		all := strings.Join(out, "\n")
		for _, line := range out {
			if w := displaywidth.String(line); w > width {
				t.Errorf("at %d columns a line has %d: %q", width, w, line)
			}
		}
		for _, want := range []string{`(?m)^1\* `, `(?m)^2 `, `(?m)^3 `, `(?m)^4 `, `\b1234\b`, `\b6%`, `\b78%`, `\b2h\b`, `Trip to Rome|Trip to R…`, `\[archived\] `, `main:cli:user`} {
			if !regexp.MustCompile(want).MatchString(all) {
				t.Errorf("at %d columns %s is not in:\n%s", width, want, all)
			}
		}
		if width >= 40 && !strings.Contains(all, "/app") {
			t.Errorf("at %d columns no folder is in:\n%s", width, all)
		}
	}
	want := []string{
		"#   KEY                                                        TITLE                                               TURNS  CONTEXT   LAST USED      FOLDER                                         MODEL                                         FROM",
		"1*  main:cli:user (01995f1e-a)                                 Trip to Rome                                        3      12k 6%    now            /srv/app                                       anthropic/claude-sonnet-4-5                   goclaw",
		"2   claude:a-long-folder:8d06b908-0663-4b02-8388-2e1d5337e2e0  東京の天気はどうですか、明日の天気もおしえてください  1234   156k 78%  2h ago         /srv/deep/below/a/very-long-folder-name/with/app  openrouter/some-vendor-with-a-very-long-name  claude-code",
	}
	got := Sessions(rows, now, Style{}, 0)
	squash := func(lines []string) (out []string) {
		for _, l := range lines {
			out = append(out, strings.Join(strings.Fields(l), " "))
		}
		return out
	}
	if diff := cmp.Diff(squash(want), squash(got[:3])); diff != "" {
		t.Errorf("without a terminal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"1* Trip to Rome", "   now, 3 turns, 6%, /srv/app",
		"2 東京の天気はどうですか、明日の天気も…", "  2h, 1234 turns, 78%, …er-name/with/app",
		"3 main:cli:user", "  13mo, 1 turn, 900",
		"4 [archived] Put away", "  2d, 0 turns",
	}, Sessions(rows, now, Style{}, 40)); diff != "" {
		t.Errorf("at 40 columns (-want +got):\n%s", diff)
	}
}

package pick_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"goclaw/internal/tui/pick"
)

func models() pick.TableOptions {
	o := pick.TableOptions{Title: "Choose a model", At: 3, More: []string{"12 older models are not shown: /model all, or goclaw models --all", "not usable now: 38 of openai (OPENAI_API_KEY)"}}
	o.Rows = [][]string{{" ", "#", "MODEL", "WINDOW", "$ IN", "$ OUT", "THINKING"}}
	for i, m := range []string{"anthropic/claude-opus-5", "anthropic/claude-sonnet-5", "anthropic/claude-sonnet-4-5", "ollama/evil\x1b[2J", "offline"} {
		mark := ""
		if i == 2 {
			mark = "*"
		}
		o.Rows = append(o.Rows, []string{mark, fmt.Sprint(i + 1), m, "200k", "3.00", "15.00", "off to max"})
	}
	return o
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want int
	}{
		{[]string{"enter"}, 3}, {[]string{"esc"}, 0}, {[]string{"up", "enter"}, 2}, {[]string{"opus", "enter"}, 1}, {[]string{"snt45", "enter"}, 3},
		{[]string{"zzz", "enter", "esc"}, 0}, {[]string{"end", "enter"}, 5},
	} {
		v := pick.NewTable(models())
		p := open(t, v, 80, 24)
		p.press(c.keys...)
		if v.Choice() != c.want || !p.done {
			t.Errorf("%q: done %v, chose %d, want %d", c.keys, p.done, v.Choice(), c.want)
		}
	}
	golden(t, "table-80x24", open(t, pick.NewTable(models()), 80, 24).screen())
	golden(t, "table-40x20", open(t, pick.NewTable(models()), 40, 20).screen())
	rapid.Check(t, func(rt *rapid.T) {
		p := open(rt, pick.NewTable(models()), rapid.IntRange(1, 90).Draw(rt, "width"), rapid.IntRange(1, 30).Draw(rt, "height"))
		p.press(rapid.SliceOfN(rapid.SampledFrom([]string{"up", "down", "end", "home", "pgdown", "a", "o", "backspace"}), 0, 8).Draw(rt, "keys")...)
	})
}

package transcript_test

import (
	"strings"
	"testing"

	"goclaw/internal/transcript"
)

func TestWrap(t *testing.T) {
	red := transcript.Style{Colour: true}.Red
	for name, c := range map[string]struct{ text, want string }{
		"short":           {"ten cells.", "ten cells."},
		"words":           {"one two three four five", "one two\nthree four\nfive"},
		"lines":           {"one two three\n\nfour five six", "one two\nthree\n\nfour five\nsix"},
		"exactly as wide": {"four fives four fives", "four fives\nfour fives"},
		"indented":        {"  one two three", "  one two\n  three"},
		"list":            {"- one two three\n10. one two", "- one two\n  three\n10. one\n    two"},
		"spaces":          {"a   b   c   d", "a   b   c\nd"},
		"too long":        {"see /a/very/long/path ok and on", "see\n/a/very/long/path ok\nand on"},
		"too long first":  {"/a/very/long/path ok on", "/a/very/long/path ok\non"},
		"cjk":             {"東京の天気はどうですか", "東京の天気\nはどうです\nか"},
		"cjk punctuation": {"東京の天気。東京", "東京の天\n気。東京"},
		"cjk brackets":    {"東京の天「気」", "東京の天\n「気」"},
		"mixed":           {"go 東京 today", "go 東京\ntoday"},
		"emoji":           {"👩‍👩‍👧 👍🏽 🇩🇪 ❤️ x", "👩‍👩‍👧 👍🏽 🇩🇪\n❤️ x"},
		"painted":         {red("one two") + " three", red("one two") + "\nthree"},
		"painted inside":  {red("one two three"), red("one two\nthree")},
		"fence":           {"```\na long line of code\n```\none two three", "```\na long line of code\n```\none two\nthree"},
		"open fence":      {"~~~ sh\na long line of code", "~~~ sh\na long line of code"},
		"code by indent":  {"so:\n\n    a long line of code\n\ta long line of code", "so:\n\n    a long line of code\n\ta long line of code"},
		"deep list":       {"- a\n\n    - one two three", "- a\n\n    - one\ntwo three"},
		"indented note":   {"     12 one two", "     12\n     one\n     two"},
		"no table":        {"| one | two | three |", "| one | two | three |"},
	} {
		if got := transcript.Wrap(c.text, 10); got != c.want {
			t.Errorf("%s: got\n%q, want\n%q", name, got, c.want)
		}
		if got := transcript.Wrap(c.text, 0); got != c.text {
			t.Errorf("%s: where there is no terminal, %q becomes %q", name, c.text, got)
		}
		if got, want := strings.Join(strings.Fields(transcript.Wrap(c.text, 10)), ""), strings.Join(strings.Fields(c.text), ""); got != want {
			t.Errorf("%s: %q is lost or added to: %q", name, want, got)
		}
	}
}

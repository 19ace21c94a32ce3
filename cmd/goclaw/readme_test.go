//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeTranscript holds the conversation in the README against the
// program: what is typed there gives what is shown there, apart from times and the ids of sessions.
func TestReadmeTranscript(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	time := regexp.MustCompile(`\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ\(\w+,UTC\)|\d\d:\d\d)?|[0-9a-f]{8}-[0-9a-f-]{27}|offlinein~/\w+|←\d+lines?:/show\d+`)
	// Without its white space, since lines wrap at the edge of the screen.
	plain := func(s string) string { return time.ReplaceAllString(strings.Join(strings.Fields(s), ""), "TIME") }
	home, played := t.TempDir(), 0
	for _, block := range regexp.MustCompile("(?s)```\n\\$ goclaw --plain\n(.*?)\n```").FindAllStringSubmatch(string(data), -1) {
		played++
		p, cmd := sit(t, home, "xterm", "--plain")
		var seen []string
		for line := range strings.SplitSeq(block[1], "\n") {
			seen = append(seen, strings.Replace(line, "│ ", "> ", 1)) // plain lines show quotes as they came
			if typed, ok := strings.CutPrefix(line, "> "); ok {
				p.See("\n>")
				p.Press(typed + "\r")
			}
		}
		want := plain(strings.Join(seen, "\n")) + ">"
		p.Await("the transcript "+want, func(s string, _, _ int) bool { return plain(s) == want })
		cmd.Process.Kill()
		exits(t, cmd)
	}
	if played != 2 {
		t.Errorf("%d conversations were played, want 2", played)
	}
}

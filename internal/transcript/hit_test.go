package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

	"goclaw/recall"
)

// TestHitTime: what was said is shown in the reader's zone, a file of a day
// with that day.
func TestHitTime(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.FixedZone("there", -11*3600)
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	got := Hit(1, recall.Hit{Key: "k", Seq: 2, Role: recall.User, Time: at, Text: "falcon"}, "falcon", Style{}, 80)
	if !strings.Contains(got, "2026-07-31 23:00") {
		t.Errorf("a message: %s", got)
	}
	got = Hit(1, recall.Hit{File: "memory/2026-08-01.md", Line: 3, Time: at.Truncate(24 * time.Hour), Text: "falcon"}, "falcon", Style{}, 80)
	if !strings.Contains(got, "  2026-08-01\n") {
		t.Errorf("a note: %s", got)
	}
}

// TestHitNear: a hit that holds no word of the query is marked.
func TestHitNear(t *testing.T) {
	h := recall.Hit{Key: "k", Seq: 2, Role: recall.User, Text: "Note: falcon"}
	if got := Hit(1, h, "falcon", Style{}, 80); strings.Contains(got, "near a match") || !strings.Contains(got, "Note: falcon") {
		t.Errorf("a match: %s", got)
	}
	h.Near = true
	if got := Hit(1, h, "hawk", Style{}, 80); !strings.Contains(got, "near a match") {
		t.Errorf("a neighbour: %s", got)
	}
	h = recall.Hit{Key: "agent:main:webchat:direct:reset", Seq: 12345, Role: recall.Assistant, Text: "falcon", Near: true}
	head, _, _ := strings.Cut(Hit(10, h, "hawk", Style{}, 40), "\n")
	if displaywidth.String(head) > 40 || !strings.HasSuffix(head, "  near") {
		t.Errorf("a neighbour in 40 columns: %q", head)
	}
}

// longHit is a hit with a match in the middle of much output.
func longHit() recall.Hit {
	lines := make([]string, 300)
	for i := range lines {
		lines[i] = fmt.Sprintf("step %d", i+1)
	}
	lines[99] = "東京の天気は falcon と言う " + strings.Repeat("長い", 60)
	lines[199] = "one" + strings.Repeat("x", 500) + " falcon " + strings.Repeat("y", 500)
	return recall.Hit{Session: "s", Key: "main:cli:user", Seq: 7, Role: recall.Output, Text: strings.Join(lines, "\n"), Also: []string{"s#9", "t#3", "t#5", "u#1"}}
}

// TestHitFits: hits, groups and opened hits fit the terminal, are painted there,
// and nowhere else.
func TestHitFits(t *testing.T) {
	h := longHit()
	for _, columns := range []int{0, 30, 60, 80, 120} {
		for _, st := range []Style{{}, {Colour: columns > 0}} {
			for name, got := range map[string]string{
				"hit":    Hit(1, h, "falcon", st, columns),
				"group":  Group(1, recall.Groups([]recall.Hit{h})[0], "falcon", st, columns, time.Now()),
				"opened": Opened(h, "falcon", st, columns),
			} {
				plain := painted.ReplaceAllString(got, "")
				if (plain != got) != st.Colour {
					t.Errorf("%s, %d columns: painted is %v", name, columns, plain != got)
				}
				if !strings.Contains(got, st.Paint("1;33", "falcon")) {
					t.Errorf("%s, %d columns: falcon is not marked in %q", name, columns, got)
				}
				for _, line := range strings.Split(plain, "\n") {
					if w := displaywidth.String(line); columns > 0 && w > columns && !strings.Contains(line, "xxxx") && !strings.Contains(line, "yyyy") {
						t.Errorf("%s, %d columns: %d in %q", name, columns, w, line)
					}
				}
			}
		}
	}
}

// TestHitLines: the matching lines have their numbers, and it is said where else
// the same was said.
func TestHitLines(t *testing.T) {
	got := Hit(1, longHit(), "falcon", Style{}, 100)
	for _, want := range []string{"\n    100: 東京の天気は falcon と言う", "\n       …\n    200: … falcon", "and 4 more like it in 2 other sessions"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	note := recall.Hit{File: "memory/a.md", Line: 10, Lines: 300, Text: longHit().Text}
	if got := Hit(1, note, "falcon", Style{}, 100); !strings.Contains(got, "\n    109: 東京") {
		t.Errorf("the lines of a file are %s", got)
	}
}

// TestOpened: a short hit is shown whole, a long one around what matches, and
// one that only is near a match from its beginning.
func TestOpened(t *testing.T) {
	h := longHit()
	got := Opened(h, "falcon", Style{}, 0)
	for want, is := range map[string]bool{" 95: step 95\n": true, "\n105: step 105\n": true, "step 106": false, "step 94": false, "\n   …\n195: step 195\n": true, "  1: step 1\n": false} {
		if strings.Contains(got, want) != is {
			t.Errorf("%q shown is %v in %s", want, !is, got)
		}
	}
	if got := Opened(h, "walrus", Style{}, 0); !strings.HasPrefix(got, "  1: step 1\n") || strings.Contains(got, "step 7") {
		t.Errorf("without a match: %s", got)
	}
	h.Text = "\tone falcon\n\ttwo"
	if got := Opened(h, "falcon", Style{}, 0); got != "1: \tone falcon\n2: \ttwo" {
		t.Errorf("a short one: %q", got)
	}
	h.Text = "falcon"
	if got := Opened(h, "falcon", Style{}, 0); got != "falcon" {
		t.Errorf("one line: %q", got)
	}
}

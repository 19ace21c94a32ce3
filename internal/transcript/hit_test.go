package transcript

import (
	"strings"
	"testing"
	"time"

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
}

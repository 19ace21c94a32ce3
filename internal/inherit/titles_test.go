package inherit_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"goclaw/internal/naming"
)

// TestTitlesOfImportedFixtures: no session of a real program is listed without a
// title, or with an id or a program's own words for one.
func TestTitlesOfImportedFixtures(t *testing.T) {
	st := openStore(t, t.TempDir())
	take(t, st, nil, false, unpacked(t))
	uuid := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`)
	n := 0
	for in, err := range naming.List(context.Background(), st, naming.Choice{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		switch title := in.Title; {
		case title == "" || uuid.MatchString(title):
			t.Errorf("%s has the title %q", in.Key, title)
		case strings.HasPrefix(title, "<") || strings.HasPrefix(title, "/") || strings.Contains(title, "message_id"):
			t.Errorf("%s has the title %q of a program", in.Key, title)
		}
	}
	if n < 80 {
		t.Errorf("%d sessions, want at least 80", n)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every number that show and search print is one to fork at.
func TestForkAtEveryNumber(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, text := range []string{"remember that the harbour opens at nine", "what did I say about the harbour?", "the ferry leaves the harbour at ten"} {
		typed(t, home, "ask", "--model", "offline", text)
	}
	var shown struct {
		Branch []struct {
			Seq int
			ID  string
		}
	}
	if err := json.Unmarshal([]byte(typed(t, home, "sessions", "show", "main", "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, r := range shown.Branch {
		ids[fmt.Sprint(r.Seq)] = r.ID
	}
	refs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ +(\d+)  `).FindAllStringSubmatch(typed(t, home, "sessions", "show", "main", "--records"), -1) {
		refs[m[1]] = true
	}
	if len(refs) != len(ids) || len(ids) < 8 {
		t.Fatalf("show prints %d numbers of %d records", len(refs), len(ids))
	}
	for _, m := range regexp.MustCompile(`(?:record|--around) (\d+)`).FindAllStringSubmatch(typed(t, home, "search", "--model", "offline", "harbour"), -1) {
		if ids[m[1]] == "" {
			t.Errorf("search prints record %s, which show does not", m[1])
		}
		refs[m[1]] = true
	}
	for _, n := range slices.Collect(maps.Keys(refs)) {
		refs[ids[n]] = true
	}
	for at := range refs {
		want := ids[at]
		if want == "" {
			want = at // an id
		}
		key := fmt.Sprintf("fork:cli:%s", at)
		typed(t, home, "sessions", "fork", "main:cli:user", key, "--at", at)
		lines := strings.Split(strings.TrimSpace(typed(t, home, "sessions", "export", key)), "\n")
		var last struct{ ID string }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.ID != want {
			t.Errorf("a fork at %s ends with record %q, %v, want %q", at, last.ID, err, want)
		}
	}
}

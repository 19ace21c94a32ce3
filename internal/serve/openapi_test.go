package serve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/store/memory"
)

// noBackend is a Backend that nobody asks anything.
type noBackend struct{ Backend }

func (noBackend) Store() session.Store                           { return memory.New() }
func (noBackend) Record(session.Record) (json.RawMessage, error) { return nil, nil }

// The document has every route, and no other.
func TestDocumentIsWhole(t *testing.T) {
	s := New(Options{Backend: noBackend{}, Token: "x"})
	want := map[string]bool{}
	for _, r := range s.routes {
		if strings.HasPrefix(r, "/") || strings.HasSuffix(r, " /login") { // not for programs
			continue
		}
		want[r] = true
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for path, ops := range doc.Paths {
		for method := range ops {
			if method != "parameters" {
				got[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Errorf("the document has\n%s\nand the server\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

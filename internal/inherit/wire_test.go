package inherit_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/fixtures"
	"goclaw/internal/inherit"
	"goclaw/provider/anthropic"
	"goclaw/session"
	"goclaw/window"
)

// Sessions that real programs wrote, held against the requests that these
// programs really sent: testdata/real-programs.tar.zst has a folder for each
// program and version, with its files and a wire.jsonl.
//
// To hold a program against its requests, write one test that calls heldToWire
// with the folder and one wired for each of its sessions: the test fails for
// a session that has none. If a difference is meant, add a line to differences
// and to the table "Intended differences" of docs/design/inherit.md, and name it in
// the wired: the test fails for a difference that has nothing to do, and for one
// that the page does not list.

// wired says which request a session's context equals.
type wired struct {
	session string // what only its reference (path#part) or its log's id contains
	line    int    // of wire.jsonl, counted from 1; 0: none, see never
	differs []string
	never   string // why no request has its context
}

// difference is a way in which what we send differs from what the program sent,
// and is meant to. Each function takes away what only that side has.
type difference struct {
	theirs, ours func(items []string) []string
}

// differences are the meant ones, by the name that the page has them under.
var differences = map[string]difference{}

// without returns a function that leaves out the items that drop selects.
func without(drop func(item string) bool) func([]string) []string {
	return func(items []string) []string {
		return slices.DeleteFunc(slices.Clone(items), drop)
	}
}

// replaced returns a function that puts new in the place of old in all items.
func replaced(old, new string) func([]string) []string {
	return func(items []string) []string {
		out := slices.Clone(items)
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], old, new)
		}
		return out
	}
}

// heldToWire imports a folder of the archive and compares the context of each
// session, as it would be sent to its own model, with the request that is said
// to equal it. The context may go on with the answer to that request.
func heldToWire(t *testing.T, folder string, want ...wired) {
	t.Helper()
	dir := filepath.Join(realPrograms(t), filepath.FromSlash(folder))
	requests := fixtures.Wire(t, filepath.Join(dir, "wire.jsonl"))
	if err := os.Remove(filepath.Join(dir, "wire.jsonl")); err != nil {
		t.Fatal(err)
	}
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, dir)
	for _, p := range cat.Problems {
		t.Errorf("%s: %s", p.Path, p.What)
	}
	met := make([]int, len(want))
	for _, o := range rep.Outcomes {
		ref := o.Ref() + " " + string(o.Log)
		if o.State != inherit.New && o.State != inherit.Copy || o.Damaged > 0 {
			t.Errorf("%s: %s, %d damaged, %v", ref, o.State, o.Damaged, o.Err)
			continue
		}
		i := slices.IndexFunc(want, func(w wired) bool { return strings.Contains(ref, w.session) })
		if i < 0 {
			t.Errorf("%s (%s) is held against no request", ref, o.Key)
			continue
		}
		if met[i]++; want[i].line == 0 {
			if want[i].never == "" {
				t.Errorf("%s: neither a request nor why there is none", ref)
			}
			continue
		}
		t.Run(want[i].session, func(t *testing.T) {
			holdAgainst(t, st, o.Log, requests[want[i].line-1], want[i].differs)
		})
	}
	for i, n := range met {
		if n != 1 {
			t.Errorf("%s: %d sessions, want 1", want[i].session, n)
		}
	}
}

// realPrograms unpacks the files of real programs.
func realPrograms(t testing.TB) string { return fixtures.Unpack(t, "testdata/real-programs.tar.zst") }

// sentOf returns what would be sent of a session, to its own model, in the form
// of the API that the program used.
func sentOf(t testing.TB, st session.Store, log session.ID, api string) []string {
	t.Helper()
	s, err := session.Open(context.Background(), st, log)
	if err != nil {
		t.Fatal(err)
	}
	model, _ := s.LastModel()
	req := window.Build(s, window.Prompt{Provider: model.Provider, Model: model.Model}, window.Loose)
	if api != "messages" {
		return fixtures.Items(req)
	}
	body, err := anthropic.New(anthropic.Config{}).Body(req)
	if err != nil {
		t.Fatal(err)
	}
	return fixtures.ReadRequest(t, body).Items
}

func holdAgainst(t *testing.T, st session.Store, log session.ID, request fixtures.Request, differs []string) {
	t.Helper()
	theirs, ours := request.Items, sentOf(t, st, log, request.API)
	for _, name := range differs {
		d, ok := differences[name]
		if !ok {
			t.Fatalf("%q is not one of differences", name)
		}
		some := false
		for _, side := range []struct {
			items *[]string
			cut   func([]string) []string
		}{{&theirs, d.theirs}, {&ours, d.ours}} {
			if side.cut == nil {
				continue
			}
			was := *side.items
			*side.items = side.cut(was)
			some = some || !slices.Equal(was, *side.items)
		}
		if !some {
			t.Errorf("there is no difference of the kind %q", name)
		}
	}
	if n := len(theirs); len(ours) > n && !slices.ContainsFunc(ours[n:], notAnswered) {
		ours = ours[:n]
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("%s: the context differs from the request (-theirs +ours):\n%s", log, diff)
	}
}

// notAnswered reports whether an item is no part of an answer.
func notAnswered(item string) bool {
	kind, _, _ := strings.Cut(item, " ")
	return kind != "assistant" && kind != "thinking" && kind != "call"
}

// TestMeantDifferences: each difference is explained on the page, and no other.
func TestMeantDifferences(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/inherit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Intended differences\n")
	part, _, _ = strings.Cut(part, "\n## ")
	listed := map[string]bool{}
	for line := range strings.Lines(part) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			if name := strings.Trim(cells[1], " *"); strings.Contains(cells[1], "**") {
				listed[name] = true
			}
		}
	}
	for name := range differences {
		if !listed[name] {
			t.Errorf("%q is not on the page", name)
		}
	}
	for name := range listed {
		if _, ok := differences[name]; !ok {
			t.Errorf("%q is on the page, but is not one of differences", name)
		}
	}
}

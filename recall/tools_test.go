package recall

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"goclaw/llm"
)

// call runs one of the tools, and returns what the model reads.
func call(t testing.TB, ix *Index, tool, args string) string {
	t.Helper()
	return callIn(t.Context(), t, ix, tool, args)
}

func callIn(ctx context.Context, t testing.TB, ix *Index, tool, args string) string {
	t.Helper()
	for _, x := range ix.Tools() {
		if x.Spec().Name != tool {
			continue
		}
		res, err := x.Run(ctx, llm.ToolCall{ID: "1", Name: tool, Args: []byte(args)})
		if err != nil {
			t.Fatal(err)
		}
		return res.Text()
	}
	t.Fatalf("there is no %s", tool)
	return ""
}

// TestReadLong: of what does not fit, the end of a session and the record that
// was asked for are read.
func TestReadLong(t *testing.T) {
	w := worlds["memory"](t, Options{})
	for i := range 60 { // records 2 to 61
		say(t, w, "big", fmt.Sprintf("user: message %d %s", i+2, strings.Repeat("lorem ipsum ", 217)))
	}
	cited := regexp.MustCompile(`(?m)^big#(\d+) `)
	for _, c := range []struct{ args, want, notes string }{
		{`{"session":"main:cli:big"}`, "57 58 59 60 61", "[4 before did not fit: read around 57 for them]"},
		{`{"session":"big#33","messages":20}`, "31 32 33 34 35", "[18 before did not fit: read around 31 for them]\n[18 after did not fit: read around 35 for them]"},
		{`{"session":"big#33","messages":1}`, "32 33 34", ""},
		{`{"session":"big","around":"2"}`, "2 3 4 5 6", ""},
		{`{"session":"big#2","messages":20}`, "2 3 4 5 6", "[16 after did not fit: read around 6 for them]"},
		{`{"session":"big","around":"1"}`, "2 3 4 5", ""}, // which says nothing
	} {
		text := call(t, w.ix, "session_read", c.args)
		var got, notes []string
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "[") {
				notes = append(notes, line)
			}
		}
		if g := strings.Join(got, " "); g != c.want || strings.Join(notes, "\n") != c.notes || len(text) > maxResult+200 {
			t.Errorf("%s: %d bytes, records %s and %q, want %s and %q", c.args, len(text), g, notes, c.want, c.notes)
		}
	}
}

// TestGetLong: what is cut says which lines are there.
func TestGetLong(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line no. %d\n", i+1)
	}
	write(t, dir+"/MEMORY.md", b.String())
	write(t, dir+"/memory/even.md", strings.Repeat(strings.Repeat("x", 99)+"\n", 200)) // cut right after a line
	w := worlds["memory"](t, Options{Workspace: dir})
	text := call(t, w.ix, "memory_get", `{"file":"MEMORY.md","from":100,"lines":100000}`)
	lines := strings.Split(text, "\n")
	last := ""
	if n := len(lines); n >= 2 {
		last = strings.TrimPrefix(lines[n-2], "line no. ")
	}
	if want := "[lines 100 to " + last + " of 5000]"; lines[len(lines)-1] != want || lines[0] != "line no. 100" {
		t.Errorf("the last line is %q and the note %q", last, lines[len(lines)-1])
	}
	text = call(t, w.ix, "memory_get", `{"file":"memory/even.md","lines":200}`)
	if n := strings.Count(text, "xxx\n"); n != 120 || !strings.HasSuffix(text, "\n[lines 1 to 120 of 200]") {
		t.Errorf("%d lines: %q", n, text[len(text)-40:])
	}
}

// TestAskedHere: the question that is just being asked is no answer, and lifts
// nothing beside it. Whatever else has its words is one.
func TestAskedHere(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	say(t, w, "old", "user: Quokkabrot", "assistant: what about it?")
	say(t, w, "fact", "assistant: hm, well", "assistant: we talked of many things, and one of them was that the numbat is an animal that eats termites all day long and sleeps at night", "assistant: fine")
	say(t, w, "here", "assistant: hello there, what can I do for you today?", "user: good morning, and thank you for being here with me", "user: numbat?", "assistant: let me look into it for you, one moment please")
	ctx := Asking(t.Context(), "here")
	cites := func(text string) (out []string) {
		for line := range strings.SplitSeq(text, "\n") {
			out = append(out, strings.Fields(line)[0])
		}
		return out
	}
	got := cites(callIn(ctx, t, w.ix, "session_search", `{"query":"numbat"}`))
	for _, g := range got {
		if strings.HasPrefix(g, "here#") {
			t.Errorf("the question itself, or what is beside it: %v", got)
		}
	}
	if len(got) == 0 || got[0] != "fact#3" {
		t.Errorf("found %v, want fact#3 first", got)
	}
	// Another asks, or nobody: what was said here is found.
	for _, ctx := range []context.Context{t.Context(), Asking(t.Context(), "old"), Asking(t.Context(), "nobody")} {
		if got := callIn(ctx, t, w.ix, "session_search", `{"query":"numbat"}`); !strings.Contains(got, "here#4 ") {
			t.Errorf("asked elsewhere: %s", got)
		}
	}
	say(t, w, "here", "user: Quokkabrot")
	if got := callIn(ctx, t, w.ix, "session_search", `{"query":"Quokkabrot"}`); !strings.Contains(got, "old#2 ") || strings.Contains(got, "here#") {
		t.Errorf("said before, word for word: %s", got)
	}
	// As it stands.
	say(t, w, "old", "user: was that it")
	say(t, w, "here", "user: was that it?")
	if got := cites(callIn(ctx, t, w.ix, "session_search", `{"query":"was that it"}`)); len(got) != 1 || got[0] != "old#4" {
		t.Errorf("as it stands: %v", got)
	}
}

// TestNothingAsItStands: what has no word for the index is said to have been
// looked for otherwise, also if it was not found.
func TestNothingAsItStands(t *testing.T) {
	w := worlds["memory"](t, Options{})
	say(t, w, "a", "user: hello")
	const want = "nothing that was said fits: no word of it is in the index, and it was looked for as it stands"
	for _, query := range []string{"🎉", "AND"} {
		if got := call(t, w.ix, "session_search", `{"query":"`+query+`"}`); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

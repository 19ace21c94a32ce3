package recall

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/recall/internal/postings"
	"goclaw/session"
)

// held appends a session with a header of its own.
func held(t *testing.T, st session.Store, h session.Header, messages ...llm.Message) {
	t.Helper()
	h.Version = session.Version
	recs := []session.Record{{Seq: 1, Time: start, Body: h}}
	for i, m := range messages {
		at := start.Add(time.Duration(i+1) * time.Minute)
		r := session.Record{Seq: session.Seq(i + 2), ID: string(h.ID) + string(rune('a'+i)), Time: at, Body: session.Message{Message: m, At: at}}
		if i > 0 {
			r.Parent = string(h.ID) + string(rune('a'+i-1))
		}
		recs = append(recs, r)
	}
	if err := st.Append(t.Context(), h.ID, recs...); err != nil {
		t.Fatal(err)
	}
}

func calls(id, name, args string) llm.Message {
	return llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.ToolCall{ID: id, Name: name, Args: []byte(args)}}}
}

// answers is a result as most programs write it: without the tool's name.
func answers(id, text string) llm.Message {
	return llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: id, Blocks: []llm.Block{llm.Text{Text: text}}}}}
}

// TestFoldersSourcesTools: sessions are found by the folder they worked in and
// the program they are of, messages by the tools they call and answer.
func TestFoldersSourcesTools(t *testing.T) {
	dir := t.TempDir()
	project, link := filepath.Join(dir, "project"), filepath.Join(dir, "link")
	if err := os.MkdirAll(filepath.Join(project, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(project, link); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, w *world) {
		held(t, w, session.Header{ID: "a", Key: "main:cli:a", CWD: project},
			llm.UserText("what does falcon.go say"), calls("c1", "Read", `{"path":"falcon.go"}`), answers("c1", "package falcon // one"), llm.AssistantText("it is the falcon package"))
		held(t, w, session.Header{ID: "b", Key: "ops:cli:b", CWD: filepath.Join(project, "sub"), Origin: session.Origin{Program: "claude-code", Path: "/x/b.jsonl", ID: "b"}},
			calls("c1", "Bash", `{"command":"ls falcon"}`), answers("c1", "falcon two"))
		held(t, w, session.Header{ID: "c", Key: "main:cli:c", CWD: project + "-other"}, llm.UserText("falcon three"))
		held(t, w, session.Header{ID: "d", Key: "main:cli:d"}, llm.UserText("falcon four"), llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Result(llm.ToolCall{ID: "x", Name: "bash"}, "falcon five")}})
		for _, c := range []struct {
			q    Query
			want string
		}{
			{Query{Folder: project}, "a#2 a#3 a#4 a#5 b#2 b#3"},
			{Query{Folder: link + "/"}, "a#2 a#3 a#4 a#5 b#2 b#3"},
			{Query{Folder: link + "/sub"}, "b#2 b#3"},
			{Query{Folder: "/"}, "a#2 a#3 a#4 a#5 b#2 b#3 c#2"},
			{Query{Source: "Claude-Code"}, "b#2 b#3"},
			{Query{Source: "goclaw"}, "a#2 a#3 a#4 a#5 c#2 d#2 d#3"},
			{Query{Tool: "bash"}, "b#2 b#3 d#3"},
			{Query{Tool: "READ"}, "a#3 a#4"},
			{Query{Tool: "bash", Source: "goclaw"}, "d#3"},
			{Query{Tool: "bash", Role: Output, Folder: project}, "b#3"},
			{Query{Agent: "ops", Role: Assistant}, "b#2"},
			{Query{Agent: "ops", Source: "goclaw"}, ""},
			{Query{Tool: "bash", Since: start.Add(2 * time.Minute)}, "b#3 d#3"},
		} {
			c.q.Text = "falcon"
			got := map[string]bool{}
			res, err := w.ix.Search(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range res.Hits {
				got[h.Cite()] = true
				for _, also := range h.Also {
					got[also] = true
				}
			}
			want := map[string]bool{}
			for _, cite := range strings.Fields(c.want) {
				want[cite] = true
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%+v (-want +got):\n%s", c.q, d)
			}
		}
		for _, c := range []struct {
			q    Query
			want string
		}{
			{Query{Agent: "nobody"}, `there is no agent "nobody"; there are main, ops`},
			{Query{Source: "cursor"}, `there is no session from "cursor"; there are goclaw, claude-code`},
			{Query{Folder: dir + "/proj"}, `no session worked in "` + dir + `/proj"; there are ` + project},
			{Query{Tool: "bosh"}, `no tool "bosh" was ever called; there are bash, read`},
		} {
			c.q.Text = "falcon"
			_, err := w.ix.Search(t.Context(), c.q)
			names, values, _ := strings.Cut(c.want, "; there are ")
			if !errors.Is(err, session.ErrNotFound) || !strings.HasPrefix(err.Error(), names+"; there are ") {
				t.Errorf("%+v: %v, want %s", c.q, err, c.want)
				continue
			}
			for _, v := range strings.Split(values, ", ") {
				if !strings.Contains(err.Error(), v) {
					t.Errorf("%v does not name %s", err, v)
				}
			}
		}
	})
}

// TestFilteredWhileRanking: what a filter allows is found however much ranks
// before it.
func TestFilteredWhileRanking(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		var many []string
		for i := range 400 {
			many = append(many, "user: falcon falcon falcon "+strings.Repeat("x", i+1))
		}
		say(t, w, "many", many...)
		long := "the falcon, " + strings.Repeat("and much else besides ", 50)
		held(t, w, session.Header{ID: "few", Key: "main:cli:few", CWD: "/srv/few", Origin: session.Origin{Program: "codex", Path: "/x", ID: "few"}},
			calls("c1", "exec", `{"command":"true"}`), answers("c1", long))
		for _, q := range []Query{{Folder: "/srv"}, {Source: "codex"}, {Tool: "exec"}, {Role: Output}} {
			q.Text, q.Limit = "falcon", 3
			if got := find(t, w.ix, q); len(got) == 0 || got[0] != "few#3" {
				t.Errorf("%+v finds %v", q, got)
			}
		}
	})
}

// TestCallsBefore: a result is known by its tool although the index reads it
// later than the call.
func TestCallsBefore(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		held(t, w, session.Header{ID: "a", Key: "main:cli:a"}, calls("c1", "exec", `{"command":"cat pelican"}`))
		if got := find(t, w.ix, Query{Text: "pelican", Tool: "exec"}); len(got) != 1 {
			t.Fatalf("the call is not found: %v", got)
		}
		if err := w.ix.messages.flush(t.Context(), mustMissing(t, w), 1); err != nil {
			t.Fatal(err)
		}
		m := answers("c1", "a pelican in its nest")
		if err := w.Append(t.Context(), "a", session.Record{Seq: 3, ID: "r3", Parent: "aa", Time: start, Body: session.Message{Message: m}}); err != nil {
			t.Fatal(err)
		}
		got := find(t, w.ix, Query{Text: "pelican nest", Tool: "exec", Role: Output})
		if d := cmp.Diff([]string{"a#3"}, got); d != "" {
			t.Error(d)
		}
	})
}

func mustMissing(t *testing.T, w *world) []postings.Part {
	t.Helper()
	missing, _, err := w.ix.messages.missing()
	if err != nil {
		t.Fatal(err)
	}
	return missing
}

// TestUntil: a span ends with the day, month or year that is named.
func TestUntil(t *testing.T) {
	now := time.Date(2026, 8, 20, 12, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-08-02":       "2026-08-03T00:00:00Z",
		"2026-08":          "2026-09-01T00:00:00Z",
		"2025":             "2026-01-01T00:00:00Z",
		"yesterday":        "2026-08-20T00:00:00Z",
		"2026-08-02 15:04": "2026-08-02T15:04:00Z",
		"12h":              "2026-08-20T00:30:00Z",
		"120m":             "2026-08-20T10:30:00Z",
	} {
		var q Query
		if err := (Filter{Until: text}).Apply(t.Context(), nil, now, &q); err != nil || q.Until.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v, want %s", text, q.Until.Format(time.RFC3339), err, want)
		}
	}
	for f, want := range map[Filter]string{
		{Until: "soon"}: `until takes a date like 2026-08-01`,
		{Since: "soon"}: `since takes a date like 2026-08-01`,
		{Role: "king"}:  `role must be user, assistant, tool or summary, not "king"`,
		{Since: "2026-08-05", Until: "2026-08-04"}: `until must be later than since: "2026-08-04" is not after "2026-08-05"`,
	} {
		err := f.Apply(t.Context(), nil, now, new(Query))
		var wrong *FilterError
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// TestDashes: text that begins with a dash is text.
func TestDashes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		say(t, w, "one", "user: we merge with --no-ff here", "assistant: and list with -la", "user: nothing else")
		first(t, w.ix, "--no-ff", "one#2")
		first(t, w.ix, "-la", "one#3")
		for _, q := range []string{"-", "--", "---", "-1", "--=", "-- --"} {
			find(t, w.ix, Query{Text: q})
		}
	})
}

package recall

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/recall/internal/words"
	"goclaw/session"
)

func TestMoment(t *testing.T) {
	zone := time.FixedZone("there", -4*3600)
	now := time.Date(2026, 8, 20, 12, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"2026-08-02":           "2026-08-02T00:00:00-04:00",
		" 2026-08-02 ":         "2026-08-02T00:00:00-04:00",
		"2026-08-02 15:04":     "2026-08-02T15:04:00-04:00",
		"2026-08-02T15:04:05":  "2026-08-02T15:04:05-04:00",
		"2026-08-02T15:04:00Z": "2026-08-02T15:04:00Z",
		"2026-08-02t15:04:00z": "2026-08-02T15:04:00Z",
		"2026-07":              "2026-07-01T00:00:00-04:00",
		"2025":                 "2025-01-01T00:00:00-04:00",
		"today":                "2026-08-20T00:00:00-04:00",
		"Yesterday":            "2026-08-19T00:00:00-04:00",
		"90m":                  "2026-08-20T11:00:00-04:00",
		"12h":                  "2026-08-20T00:30:00-04:00",
		"7d":                   "2026-08-13T12:30:00-04:00",
		"3 days ago":           "2026-08-17T12:30:00-04:00",
		"2w":                   "2026-08-06T12:30:00-04:00",
		"2 months":             "2026-06-20T12:30:00-04:00",
		"1y":                   "2025-08-20T12:30:00-04:00",
		"99999h":               "2015-03-24T21:30:00-04:00",
		"soon":                 "",
		"":                     "",
		"-7d":                  "",
		"7":                    "",
		"7x":                   "",
		"999999999999d":        "",
		"2026-02-30":           "",
		"2026-13-01":           "",
	} {
		got, err := Moment(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken for %v", text, got)
			}
			continue
		}
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v, want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
}

// histories is a store with two logs of one key, and one of another.
func histories(t *testing.T, w *world) {
	say(t, w, "old", "user: the falcon of old")
	say(t, w, "other", "user: the falcon of others")
	at := start.Add(24 * time.Hour)
	recs := []session.Record{
		{Seq: 1, Time: at, Body: session.Header{Version: session.Version, ID: "new", Key: "main:cli:old"}},
		{Seq: 2, ID: "new-2", Time: at, Body: session.Message{Message: llm.UserText("the falcon of today"), At: at}},
	}
	if err := w.Append(t.Context(), "new", recs...); err != nil {
		t.Fatal(err)
	}
}

// TestWithin: a key is its whole history, an id is one log, for people and
// for models.
func TestWithin(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		histories(t, w)
		var tool Tool
		for _, x := range w.ix.Tools() {
			if x.Spec().Name == "session_search" {
				tool = x
			}
		}
		for _, c := range []struct {
			ref  string
			want map[string]bool
		}{
			{"main:cli:old", map[string]bool{"old#2": true, "new#2": true}},
			{"main:cli:ol", map[string]bool{"old#2": true, "new#2": true}},
			{"old", map[string]bool{"old#2": true}},
			{"new", map[string]bool{"new#2": true}},
			{"ne", map[string]bool{"new#2": true}},
			{"new#2", map[string]bool{"new#2": true}},
			{"other", map[string]bool{"other#2": true}},
		} {
			q := Query{Text: "falcon"}
			if err := q.Within(t.Context(), w, c.ref); err != nil {
				t.Errorf("%s: %v", c.ref, err)
			}
			got := map[string]bool{}
			for _, cite := range find(t, w.ix, q) {
				got[cite] = true
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.ref, d)
			}
			args, _ := json.Marshal(map[string]string{"query": "falcon", "session": c.ref})
			res, err := tool.Run(t.Context(), llm.ToolCall{Args: args})
			if err != nil {
				t.Fatal(err)
			}
			got = map[string]bool{}
			for line := range strings.Lines(res.Text()) {
				cite, _, _ := strings.Cut(line, " ")
				got[cite] = true
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("session_search in %s (-want +got):\n%s", c.ref, d)
			}
		}
		for _, ref := range []string{"", "main:cli", "nobody", "nobody#2"} {
			q := Query{Text: "falcon"}
			if err := q.Within(t.Context(), w, ref); err == nil {
				t.Errorf("%q is taken for %+v", ref, q)
			}
		}
	})
}

// TestZone: tools ask and answer in the zone of the searcher, and a
// file of a day is of that day in every zone.
func TestZone(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/memory/2026-08-01.md", "the falcon landed\n")
	for hours, want := range map[int][2]string{ // it was said at 10:02 UTC
		0:   {"a#2  2026-08-01 10:02 user: the falcon landed", "2026-08-01"},
		-11: {"a#2  2026-07-31 23:02 user: the falcon landed", "2026-07-31"},
		14:  {"a#2  2026-08-02 00:02 user: the falcon landed", "2026-08-02"},
	} {
		zone := time.FixedZone("there", hours*3600)
		w := worlds["memory"](t, Options{Workspace: dir, Now: func() time.Time { return start.AddDate(0, 0, 7).In(zone) }})
		say(t, w, "a", "user: the falcon landed")
		tools := map[string]Tool{}
		for _, x := range w.ix.Tools() {
			tools[x.Spec().Name] = x
		}
		day, err := time.Parse(time.DateOnly, want[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ tool, args, want string }{
			{"session_search", `{"query":"falcon","since":"` + want[1] + `"}`, want[0]},
			{"session_search", `{"query":"falcon","since":"` + day.AddDate(0, 0, 1).Format(time.DateOnly) + `"}`, "nothing that was said fits"},
			{"session_read", `{"session":"a"}`, want[0]},
		} {
			res, err := tools[c.tool].Run(t.Context(), llm.ToolCall{Args: []byte(c.args)})
			if err != nil || res.Text() != c.want {
				t.Errorf("%+d h: %s %s: %q, %v, want %q", hours, c.tool, c.args, res.Text(), err, c.want)
			}
		}
		for since, found := range map[string]int{"2026-08-01": 1, "2026-08-01 18:00": 1, "2026-08-02": 0} {
			q := Query{Text: "falcon", Memory: true}
			if q.Since, err = Moment(since, start.In(zone)); err != nil {
				t.Fatal(err)
			}
			if got := find(t, w.ix, q); len(got) != found {
				t.Errorf("%+d h: the file of 2026-08-01 since %s: %v", hours, since, got)
			}
		}
	}
}

// TestDaysOfTheZone: days that a question names are days where it is asked. A
// file of a day is of that day wherever.
func TestDaysOfTheZone(t *testing.T) {
	for _, hours := range []int{-9, 0, 9} {
		zone := time.FixedZone("there", hours*3600)
		now := time.Date(2026, 8, 20, 12, 0, 0, 0, zone)
		spans := words.Dates("what did I say yesterday", now)
		from := time.Date(2026, 8, 19, 0, 0, 0, 0, zone)
		if len(spans) != 1 || !spans[0].From.Equal(from) || !spans[0].To.Equal(from.AddDate(0, 0, 1)) {
			t.Errorf("%d hours: %v, want from %v", hours, spans, from)
		}
		dir := t.TempDir()
		for i, day := range []string{"2026-08-18", "2026-08-19", "2026-08-20"} {
			write(t, dir+"/memory/"+day+".md", "- the tide was high at "+strings.Repeat("noon ", i)+"\n")
		}
		w := worlds["memory"](t, Options{Workspace: dir, Now: func() time.Time { return now }})
		first(t, w.ix, "how was the tide yesterday", "memory/2026-08-19.md:1")
		first(t, w.ix, "how is the tide today", "memory/2026-08-20.md:1")
	}
}

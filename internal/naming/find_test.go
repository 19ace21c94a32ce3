package naming_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw/internal/naming"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// shelf is a store of sessions that have only a key and a title, each a minute
// younger than the one before.
func shelf(t *testing.T, rows ...[3]string) session.Store {
	t.Helper()
	st := memory.New()
	for i, row := range rows {
		id, at := session.ID(row[0]), Start.Add(time.Duration(i)*time.Minute)
		recs := []session.Record{{Seq: 1, Time: at, Body: session.Header{ID: id, Key: session.Key(row[1])}}}
		if row[2] != "" {
			recs = append(recs, session.Record{Seq: 2, ID: "t" + row[0], Time: at, Body: session.Title{Title: row[2]}})
		}
		if err := st.Append(t.Context(), id, recs...); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// found says what Find makes of ref: an id, or the ids of all that fit, or
// "none" and those that are near.
func found(t *testing.T, st session.Store, ref string, trash bool, last naming.Listed) string {
	t.Helper()
	in, err := naming.Find(t.Context(), st, ref, trash, last)
	var many *naming.AmbiguousError
	var none *naming.NoneError
	ids := func(infos []session.Info) string {
		var out []string
		for _, in := range infos {
			out = append(out, string(in.ID))
			if !strings.Contains(err.Error(), string(in.Key)) || !strings.Contains(err.Error(), string(in.ID)) {
				t.Errorf("%q does not name %s (%s)", err, in.Key, in.ID)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	switch {
	case err == nil:
		return string(in.ID)
	case errors.As(err, &many):
		return "many: " + ids(many.Candidates)
	case errors.As(err, &none) && errors.Is(err, session.ErrNotFound):
		return strings.TrimSpace("none " + ids(none.Near))
	}
	t.Fatalf("Find(%q): %v", ref, err)
	return ""
}

func TestFind(t *testing.T) {
	st := shelf(t,
		[3]string{"0001-aa", "main:cli:user", "Trip to Rome"},
		[3]string{"0003-cc", "main:cli:user", ""},
		[3]string{"0002-bb", "main:cli:user", "The harbour"}, // the newest of its key
		[3]string{"0102-dd", "main:cli:user2", ""},
		[3]string{"0103-ee", "ops:cron:nightly", "Backups: what failed"},
		[3]string{"main:x", "weird", ""},
		[3]string{"0200-ff", "0103", ""},
		[3]string{"0300-gg", "main:cli:my-project", "My Project"},
		[3]string{"0301-hh", "main:cli:my-project-2", "My Project"}, // a fork
		[3]string{"0400-ii", "main:telegram:42", "東京の天気"},
		[3]string{"0401-jj", "agent:main:telegram:direct:77", ""},
		[3]string{"0402-kk", "main:discord:anna", ""},
		[3]string{"0500-ll", "goclaw:pi:tmp:18600000-1111-4222-8333-444455556666", ""},
		[3]string{"0501-mm", "goclaw:pi:tmp:18600000-1111-4222-8333-777788889999", ""},
		[3]string{"0502-nn", "goclaw:pi:tmp:9f8e7d6c5b4a39281706", ""},
		[3]string{"0503-oo", "agent:ops:main", ""},
		[3]string{"0504-pp", "work:matrix:123456789012345678", ""},
		[3]string{"0505-qq", "main:signal:deadbeef01", ""},
		[3]string{"gone", "gone:key", ""},
	)
	if err := st.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		// Ids and keys.
		"main:cli:user": "0002-bb", "main:cli:user2": "0102-dd", "0001-aa": "0001-aa", "main:x": "main:x", "weird": "main:x",
		"0103": "0200-ff", // a key, exactly, before the beginning of an id
		// The beginning of either.
		"0001": "0001-aa", "ops": "0103-ee", "OPS:Cron": "0103-ee", "main:cli": "many: 0002-bb 0102-dd 0300-gg 0301-hh", "000": "many: 0001-aa 0002-bb 0003-cc",
		"main:cli:": "many: 0002-bb 0102-dd 0300-gg 0301-hh", "main:tele": "0400-ii", "agent:main:telegram": "0401-jj", "agent:main:telegram:direct": "0401-jj",
		// A part of the key, the title, or a word of it.
		"nightly": "0103-ee", "night": "0103-ee", "backups": "0103-ee", "failed": "0103-ee", "backups: what": "0103-ee", "trip": "0001-aa", "trip to r": "0001-aa",
		"rome": "0001-aa", "天気": "0400-ii", "ann": "0402-kk", "my-project": "0300-gg", "my-p": "many: 0300-gg 0301-hh", "my project": "many: 0300-gg 0301-hh",
		// Any other part, unless it is too short.
		"ightly": "0103-ee", "ckup": "0103-ee", "03-ee": "0103-ee", "om": "none", "use": "many: 0002-bb 0102-dd",
		// A whole key in the terminal's channel.
		"main:cli:us": "many: 0002-bb 0102-dd", "main:cli:my-project-": "none 0300-gg 0301-hh", "main:cli:my-p": "many: 0300-gg 0301-hh",
		// A whole key elsewhere is one person, and nobody else.
		"main:telegram:4": "none 0400-ii", "main:discord:ann": "none 0402-kk", "agent:main:telegram:direct:7": "none 0401-jj", "main:telegram:": "0400-ii",
		// Unless it ends in an id that nobody chose, or is an agent's main session.
		"goclaw:pi:tmp:18600000": "many: 0500-ll 0501-mm", "goclaw:pi:tmp:18600000-1111-4222-8333-4": "0500-ll", "goclaw:pi:tmp:1860000": "none 0500-ll 0501-mm",
		"goclaw:pi:tmp:9F8E7D6C": "0502-nn", "agent:ops:mai": "0503-oo", "agent:ops:m": "0503-oo", "agent:ops:mainz": "none 0503-oo",
		"work:matrix:1234567890": "none 0504-pp", "main:signal:deadbeef": "none 0505-qq",
		// Nothing, and what may have been meant.
		"gone": "none", "nobody": "none", "": "none", " ": "none", "nigthly": "none 0103-ee", "main:cli:usre": "none 0002-bb 0102-dd", "my-prj": "none 0300-gg 0301-hh", "bakcups": "none 0103-ee",
	} {
		if got := found(t, st, ref, false, naming.Listed{}); got != want {
			t.Errorf("Find(%q): %s, want %s", ref, got, want)
		}
	}
	for ref, want := range map[string]string{"gone": "gone", "gone:": "gone", "key": "gone", "main": "none"} {
		if got := found(t, st, ref, true, naming.Listed{}); got != want {
			t.Errorf("Find(%q) in the trash: %s, want %s", ref, got, want)
		}
	}
}

// Several names fit a mirror and the session that continues it: it is the latter
// that is meant.
func TestFindPrefersTheContinuation(t *testing.T) {
	st := memory.New()
	for id, h := range map[session.ID]session.Header{
		"m": {ID: "m", Key: "agent:main:main", Origin: session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}},
		"o": {ID: "o", Key: "goclaw:main:main", Origin: session.Origin{Program: "goclaw", Key: "agent:main:main", ID: "m"}},
	} {
		recs := []session.Record{{Seq: 1, Time: Start, Body: h}, {Seq: 2, ID: "t", Time: Start, Body: session.Title{Title: "Harbour"}}}
		if err := st.Append(t.Context(), id, recs...); err != nil {
			t.Fatal(err)
		}
	}
	for ref, want := range map[string]string{"harbour": "o", "harb": "o", "main": "o", "agent:main:main": "m", "m": "m", "agent": "m"} {
		if got := found(t, st, ref, false, naming.Listed{}); got != want {
			t.Errorf("Find(%q): %s, want %s", ref, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	st := shelf(t, [3]string{"0001", "main:telegram:42", ""}, [3]string{"0002", "work:cli:alice", ""}, [3]string{"0003", "home:cli:bob", ""}, [3]string{"0004", "home:cli:job-10", ""})
	for ref, want := range map[string]session.Info{
		"main:telegram:42": {ID: "0001"}, "0003": {ID: "0003"}, "work": {ID: "0002"}, "alice": {ID: "0002"}, "work:cli:al": {ID: "0002"}, "main:telegram": {ID: "0001"},
		// Whole keys that are not there begin a session, even if one begins alike.
		"main:telegram:4": {Key: "main:telegram:4"}, "home:cli:job-1": {Key: "home:cli:job-1"}, "home:cli:job": {Key: "home:cli:job"}, "work:cli:eve": {Key: "work:cli:eve"},
	} {
		in, err := naming.Address(t.Context(), st, ref, naming.Listed{}, naming.WholeKey)
		if err != nil || in.ID != want.ID || want.ID == "" && in != want {
			t.Errorf("Address(%q) = %q %q, %v, want %q %q", ref, in.ID, in.Key, err, want.ID, want.Key)
		}
	}
	var none *naming.NoneError
	for _, ref := range []string{"nobody", "", "main:cli", "main:cli:", "a b:c:d"} {
		if in, err := naming.Address(t.Context(), st, ref, naming.Listed{}, naming.WholeKey); !errors.As(err, &none) {
			t.Errorf("Address(%q) = %q, %v, want that nothing fits", ref, in.Key, err)
		}
	}
	var many *naming.AmbiguousError
	if in, err := naming.Address(t.Context(), st, "home", naming.Listed{}, naming.WholeKey); !errors.As(err, &many) {
		t.Errorf("Address(home) = %q, %v, want that it is ambiguous", in.ID, err)
	}
}

// Only a whole key that was asked for begins a session where nothing else may.
func TestAddressBegins(t *testing.T) {
	st := shelf(t, [3]string{"0001", "main:cli:my-project", ""})
	var none *naming.NoneError
	if in, err := naming.Address(t.Context(), st, "main:cli:trip", naming.Listed{}, naming.Never); !errors.As(err, &none) {
		t.Errorf("a key that nobody asked to begin: %q, %v", in.Key, err)
	}
	for ref, want := range map[string]session.Info{"main:cli:my-project": {ID: "0001", Key: "main:cli:my-project"}, "main:cli:my": {Key: "main:cli:my"}} {
		if in, err := naming.Address(t.Context(), st, ref, naming.Listed{}, naming.Asked); err != nil || in.ID != want.ID || in.Key != want.Key {
			t.Errorf("Address(%q) = %q %q, %v, want %q %q", ref, in.ID, in.Key, err, want.ID, want.Key)
		}
	}
	var bad *naming.KeyError
	for _, ref := range []string{"", "my-project", "main:cli", "main:cli:", "a b:c:d"} {
		if in, err := naming.Address(t.Context(), st, ref, naming.Listed{}, naming.Asked); !errors.As(err, &bad) {
			t.Errorf("Address(%q) = %q, %v, want that it is no key", ref, in.Key, err)
		}
	}
}

// A number is that of the last list. It never stands for a session that was not
// listed under it.
func TestFindListed(t *testing.T) {
	st := shelf(t, [3]string{"0001-aa", "main:cli:user", "Trip to Rome"}, [3]string{"1002-bb", "main:telegram:2", ""}, [3]string{"0003-cc", "main:cli:b", "2"}, [3]string{"0004-dd", "main:cli:gone", ""}, [3]string{"0005-ee", "main:cli:3", ""})
	if err := st.Delete(t.Context(), "0004-dd"); err != nil {
		t.Fatal(err)
	}
	last := naming.Listed{IDs: []session.ID{"0003-cc", "0001-aa", "0005-ee", "0004-dd", "purged"}}
	for ref, want := range map[string]string{
		"1": "0003-cc", "#1": "0003-cc", "#2": "0001-aa", // although an id begins so
		"2": "many: 0001-aa 0003-cc 1002-bb", // the last part of a key, and a title
		"3": "0005-ee",                       // both
		"4": "none", "5": "none", "6": "none", "#6": "none", "01": "none", "-1": "none", "rome": "0001-aa",
	} {
		if got := found(t, st, ref, false, last); got != want {
			t.Errorf("Find(%q): %s, want %s", ref, got, want)
		}
	}
	if got := found(t, st, "4", true, last); got != "0004-dd" {
		t.Errorf("Find(4) in the trash: %s", got)
	}
	for ref, want := range map[string]string{
		"4": `there is no session "4": that was main:cli:gone (0004-dd) in the last list, which is in the trash since`, "5": `there is no session "5": that was purged in the last list, which is not there any more`,
		"6": `there is no session "6": the last list ends with number 5`,
	} {
		if _, err := naming.Find(t.Context(), st, ref, false, last); err == nil || err.Error() != want {
			t.Errorf("Find(%q): %v, want %s", ref, err, want)
		}
	}
	if _, err := naming.Find(t.Context(), st, "7", false, naming.Listed{Why: "it is too old"}); err == nil || err.Error() != `there is no session "7": it is too old` {
		t.Errorf("without a list: %v", err)
	}
}

// A subagent's session is found by its own name only.
func TestFindPrefersTheMainSession(t *testing.T) {
	st := memory.New()
	for _, h := range []session.Header{
		{ID: "9f16ae73-f556", Key: "claude:proj:9f16ae73-f556-4a93-b52d-39059a4b7ebc", Origin: session.Origin{Program: "claude-code", Path: "/x.jsonl", ID: "9f16ae73-f556"}},
		{ID: "agent-a4ede", Key: "claude:proj:9f16ae73-f556-4a93-b52d-39059a4b7ebc:agent-a4ede", Origin: session.Origin{Program: "claude-code", Path: "/y.jsonl", ID: "agent-a4ede", Mark: session.Subagent}},
	} {
		if err := st.Append(t.Context(), h.ID, session.Record{Seq: 1, Time: Start, Body: h}); err != nil {
			t.Fatal(err)
		}
	}
	for ref, want := range map[string]string{"claude:proj:9f16ae73": "9f16ae73-f556", "claude": "9f16ae73-f556", "9f16": "9f16ae73-f556", "proj": "9f16ae73-f556", "agent-a4": "agent-a4ede"} {
		if got := found(t, st, ref, false, naming.Listed{}); got != want {
			t.Errorf("Find(%q): %s, want %s", ref, got, want)
		}
	}
	for all, want := range map[bool]int{false: 1, true: 2} {
		n := 0
		for range naming.List(t.Context(), st, naming.Choice{All: all}) {
			n++
		}
		if n != want {
			t.Errorf("%d sessions listed with All %v, want %d", n, all, want)
		}
	}
}

package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNames: the names that programs are made of are found as programmers
// remember them.
func TestNames(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	texts := []string{
		"assistant: the agentObserverCancel hook runs when a session ends", // 2
		"tool: usage: tool [--no-ff] [--with-provenance] FILE",
		"tool: FLY_API_TOKEN is not set",
		"assistant: I moved it to internal/store/page_cache.go yesterday",
		"tool: commit 1d4ed75a9be0c1f2a3b4c5d6e7f8091a2b3c4d5e by Ada", // 6
		"tool: panic: open /var/lib/app/data.db: permission denied (code 13) at line 2051",
		"assistant: TestAuthenticationExpired fails on Windows only",
		"tool: session 7cea35fe-11d2-4c1e-9d7e-0a1b2c3d4e5f resumed",
		"assistant: HTTPServerTimeout is in seconds", // 10
		"assistant: the new release is no longer fast-forwarded, and the observer of an agent can cancel",
		"user: put the token for the API of fly into the store, with the provenance of each page",
		"assistant: a cache of pages, an open line, a code review and a denied permission",
		"tool: func extractAgentReply(line []byte) string", // 14
		"tool: ok TestGenerateFilenameFromUserMessage 0.02s",
		"assistant: the test messages of a user, and from each of them we generate another filename, then test it",
	}
	for i, text := range texts {
		say(t, w, fmt.Sprintf("s%d", i+2), text)
	}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			query string
			want  int
		}{
			{"agentObserverCancel", 2},   // whole
			{"agentobservercancel", 2},   // in another case
			{"agent observer cancel", 2}, // as words
			{"agent_observer_cancel", 2}, // as another language writes it
			{"agentObserverC", 2},        // its beginning
			{"agentObsevrerCancel", 2},   // two letters swapped
			{"agnetObserverCancell", 2},  // two typos
			{"extractAgentRpely", 14},    // a typo that changes its stem
			{"test generate filename from user message", 15},
			{"ObserverCancel", 2}, // its end
			{"what did we change in agentObserverCancel?", 2},
			{"TestAuthentication", 8}, {"TestAuthentcationExpired", 8}, {"server timeout", 10}, {"httpServer", 10},
			{"--no-ff", 3}, {"--with-provenance", 3}, {"--with-prov", 3}, {"no-ff", 3},
			{"FLY_API_TOKEN", 4}, {"fly_api_token", 4}, {"flyApiToken", 4}, {"FLY_API", 4}, {"FLY_API_TOKNE", 4},
			{"internal/store/page_cache.go", 5}, {"page_cache.go", 5}, {"page_cache", 5}, {"pageCache", 5},
			{"1d4ed75a", 6}, {"1d4ed75a9be0", 6}, {"7cea35fe", 9}, {"7cea35fe-11d2", 9},
			{"panic: open /home/ada/other.db: permission denied (code 99) at line 7", 7},
			{"open data.db permission denied", 7},
		} {
			first(t, w.ix, c.query, fmt.Sprintf("s%d#2", c.want))
		}
		for _, query := range []string{"zqxJkvWpb", "deadbeef", "--xyzzy", "1d4ed75b", "7cea35ff", "2052"} {
			if got := find(t, w.ix, Query{Text: query}); len(got) != 0 {
				t.Errorf("%s found %v, which nobody wrote", query, got)
			}
		}
	}
	check()
	for i := range flushAt { // in a segment, too
		say(t, w, "filler", fmt.Sprintf("user: filler %d", i))
	}
	check()
}

// TestCapitals: names with runs of capitals, and with short words, are found by
// what somebody remembers of them, although others are spelled nearly so.
func TestCapitals(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	for i, name := range []string{
		"loadXMLFileReader", "parseHTTPRequestBody", "getUserByIDFromCache", "parseJSONDocument", "fastJSONParserPool", // 0
		"currentUserIDHeader", "wrapIOErrorAs", "toUTF8StringSlice", "getURLsOfPage", "findOrderByID", // 5
		"isOKForDB", "userid", "bid",
	} {
		say(t, w, fmt.Sprint("s", i), "tool: func "+name+" is in another file")
	}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			query string
			want  int
		}{
			{"XMLFile", 0}, {"xmlFile", 0}, {"XmlFileReader", 0}, {"loadXML", 0},
			{"HTTPRequest", 1}, {"RequestBody", 1}, {"HTTPRequestBody", 1},
			{"UserByID", 2}, {"ByIDFrom", 2}, {"where is getUserByID?", 2},
			{"parseJSON", 3}, {"JSONDocument", 3}, {"JSONParser", 4},
			{"currentUserID", 5}, {"UserIDHeader", 5}, {"user id header", 5},
			{"IOError", 6}, {"ioError", 6}, {"UTF8String", 7}, {"toUTF8", 7}, {"utf8String", 7},
			{"getURL", 8}, {"URLsOf", 8}, {"urls page", 8}, {"OrderByID", 9}, {"ForDB", 10}, {"OK DB", 10},
		} {
			first(t, w.ix, c.query, fmt.Sprintf("s%d#2", c.want))
		}
		for query, want := range map[string][]int{"ByID": {2, 9}, "ID": {2, 5, 9}, "url": {8}, "DB": {10}} {
			got := find(t, w.ix, Query{Text: query})
			for _, i := range want {
				if !slices.Contains(got, fmt.Sprintf("s%d#2", i)) {
					t.Errorf("%s found %v, want s%d too", query, got, i)
				}
			}
		}
	}
	check()
	for i := range flushAt { // in a segment, too
		say(t, w, "filler", fmt.Sprintf("user: filler %d", i))
	}
	check()
}

// TestExactFirst: a name as it was asked for comes before one that begins with
// it, and a misspelled one is looked for only if there is no other.
func TestExactFirst(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	say(t, w, "longer", "assistant: parseConfigFile and parseConfigFile again, parseConfigFile")
	say(t, w, "exact", "assistant: parseConfig reads the file, and many other things happen after that in the program")
	say(t, w, "typo", "assistant: parseConfog was a mistake")
	got := find(t, w.ix, Query{Text: "parseConfig"})
	if len(got) != 2 || got[0] != "exact#2" || got[1] != "longer#2" {
		t.Errorf("found %v", got)
	}
}

// TestLiterally: what holds a pasted line as it is comes before what has more
// of its words, however long the text around it is.
func TestLiterally(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	const line = `if err := store.Append(ctx, id, recs...); err != nil {`
	filler := strings.Repeat("\tcount += len(other)\n", 400)
	say(t, w, "holds", "tool: "+filler+"\t"+line+"\n"+filler)
	for i := range 5 {
		say(t, w, fmt.Sprint("words", i), "assistant: store the id, append recs to the store with ctx and err; if err is nil append, store err again")
	}
	first(t, w.ix, line, "holds#2")
	first(t, w.ix, "IF  err := store.append(ctx, id, recs...);\n err != nil {", "holds#2")
	first(t, w.ix, `if err := stroe.Append(ctx, id, recrds...); err != nil {`, "holds#2")
}

// TestAllKeyWords: what holds all key words as they are written comes before
// what holds more of some of them, or other forms.
func TestAllKeyWords(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	filler := strings.Repeat("and then something else happened in the program. ", 100)
	say(t, w, "all", "tool: "+filler+"in 125 cases "+filler+"an error "+filler+"in a file "+filler)
	for i := range 12 {
		say(t, w, fmt.Sprint("forms", i), fmt.Sprintf("assistant: %d errors in 125 files, errors in files", i))
		say(t, w, fmt.Sprint("some", i), fmt.Sprintf("assistant: %d an error in a file, the file has an error", i))
	}
	first(t, w.ix, "125 error file", "all#2")
}

// TestFlagsAlone: a flag is that flag, or a longer one, and not any word that
// begins as it does.
func TestFlagsAlone(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	filler := strings.Repeat("and then something else happened in the program. ", 100)
	say(t, w, "flag", "tool: "+filler+"run it with --path here "+filler)
	say(t, w, "longer", "tool: "+filler+"run it with --path-prefix here "+filler)
	for i := range 210 {
		text := "tool: the path"
		for j := range 8 {
			text += " "
			for n := i*8 + j + 1; n > 0; n /= 10 {
				text += []string{"ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"}[n%10]
			}
		}
		say(t, w, fmt.Sprint("path", i), text)
	}
	var others []string
	for i := range 600 {
		others = append(others, fmt.Sprintf("tool: something else, number %d", i))
	}
	say(t, w, "others", others...)
	if got := find(t, w.ix, Query{Text: "--path"}); len(got) < 2 || got[0] != "flag#2" || got[1] != "longer#2" {
		t.Errorf("found %v", got)
	}
}

// TestTypedOn: a word is found while it is typed, also where its beginning is
// longer than its stem.
func TestTypedOn(t *testing.T) {
	w := worlds["memory"](t, Options{})
	say(t, w, "a", "user: The configuration has no hasSessions, and notifications are off.", "user: The harbour is closing.")
	say(t, w, "b", append(slices.Clone(chatter), "user: It is configuration-driven.")...)
	for _, word := range []string{"configuration", "hasSessions", "notifications", "closing"} {
		for n := minTyped; n <= len(word); n++ {
			if got := find(t, w.ix, Query{Text: word[:n], Session: "a"}); len(got) == 0 {
				t.Errorf("%q finds %v", word[:n], got)
			}
		}
	}
}

// minTyped is how many letters a word is found by.
const minTyped = 4

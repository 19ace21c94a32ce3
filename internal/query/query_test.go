package query

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"goclaw/recall"
)

// Flags are flags wherever they stand; any other text with a dash is text.
func TestSplit(t *testing.T) {
	for in, want := range map[string][3]string{
		"ferry":                      {"", "ferry", ""},
		"--no-ff":                    {"", "--no-ff", "--no-ff"},
		"-- --no-ff":                 {"", "--no-ff", ""},
		"git merge --no-ff --here":   {"--here", "git merge --no-ff", "--no-ff"},
		"--limit 3 --no-ff main":     {"--limit 3", "--no-ff main", "--no-ff"},
		"--limit=3 -x":               {"--limit=3", "-x", "-x"},
		"-n 3 -1 - x":                {"-n 3", "-1 - x", "-1"},
		"-n3 -nope":                  {"-n3 -nope", "", ""},
		"-天 --天":                     {"", "-天 --天", "-天 --天"},
		"--rol user x":               {"--rol", "user x", ""},
		"--limti=3 x":                {"--limti=3", "x", ""},
		"x -- --role user --":        {"", "x --role user --", ""},
		"--role":                     {"--role", "", ""},
		"---- x":                     {"", "---- x", "----"},
		"rm -rf --role tool":         {"--role tool", "rm -rf", "-rf"},
		"--tool bash --source codex": {"--tool bash --source codex", "", ""},
	} {
		fs := pflag.NewFlagSet("search", pflag.ContinueOnError)
		new(Flags).Bind(fs)
		flags, text, plain := Split(fs, strings.Fields(in))
		got := [3]string{strings.Join(flags, " "), strings.Join(text, " "), strings.Join(plain, " ")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

// The value of a flag may be quoted; in the text, quotes are text.
func TestWords(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                   nil,
		"  ferry \t at  ten ":                {"ferry", "at", "ten"},
		`--since "2 days ago" ferry`:         {"--since", "2 days ago", "ferry"},
		`--since='2 days ago' ferry`:         {"--since=2 days ago", "ferry"},
		`--session "my trip"`:                {"--session", "my trip"},
		`--session "my trip`:                 {"--session", `"my`, "trip"},
		`--session "my"trip x`:               {"--session", `"my"trip`, "x"},
		`"the ferry" --here "at ten"`:        {`"the`, `ferry"`, "--here", `"at`, `ten"`},
		`-- --since "2 days ago"`:            {"--", "--since", `"2`, "days", `ago"`},
		`--here=true "a b"`:                  {"--here=true", `"a`, `b"`},
		`-n "3" x`:                           {"-n", "3", "x"},
		`x=y --folder "/a b/c" "`:            {"x=y", "--folder", "/a b/c", `"`},
		`--since`:                            {"--since"},
		`--since ""`:                         {"--since", ""},
		"--session 天 気":                      {"--session", "天", "気"},
		`--no-such="a b"`:                    {`--no-such="a`, `b"`},
		`--since "2 days ago" --role "user"`: {"--since", "2 days ago", "--role", "user"},
	} {
		fs := pflag.NewFlagSet("search", pflag.ContinueOnError)
		new(Flags).Bind(fs)
		if diff := cmp.Diff(want, Words(fs, in)); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

// That messages were not compared by meaning is said where nothing was found that
// says what was asked for.
func TestRemarks(t *testing.T) {
	const missing = "incomplete: 2 messages are not compared by meaning yet: goclaw search --index makes the vectors that are missing"
	hits := []recall.Hit{{Text: "the ferry"}}
	for _, c := range []struct {
		res  recall.Result
		want []string
	}{
		{recall.Result{}, nil},
		{recall.Result{Missing: 2}, []string{missing}},
		{recall.Result{Missing: 2, Hits: hits}, nil},
		{recall.Result{Missing: 2, Hits: hits, Near: true}, []string{missing, recall.OnlyNear}},
	} {
		if diff := cmp.Diff(c.want, Remarks(c.res)); diff != "" {
			t.Errorf("%+v: %s", c.res, diff)
		}
	}
}

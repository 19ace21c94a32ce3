package query

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
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

package models

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/internal/config"
)

// What refusals teach is kept by model, and the forms of older files are read.
func TestLimitsAreKept(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(limitsFile(home), []byte(`{"openai/old": 8192, "openai/older": {"window": 9000, "answer": 512}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(limitsFile(home))
	if err != nil {
		t.Fatal(err)
	}
	then := lesson{At: fi.ModTime()}
	now := lesson{time.Now().UTC().Truncate(time.Second), "too long"}
	for model, l := range map[string]limits{
		"openai/old": {Answer: 1024, AnswerFrom: now}, "openai/new": {Window: 4097, WindowFrom: now}, "openai/short": {Answer: 16_384, AnswerFrom: now},
	} {
		if err := rememberLimits(home, model, l); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]limits{
		"openai/old":   {Window: 8192, WindowFrom: then, Answer: 1024, AnswerFrom: now},
		"openai/older": {Window: 9000, WindowFrom: then, Answer: 512, AnswerFrom: then},
		"openai/new":   {Window: 4097, WindowFrom: now},
		"openai/short": {Answer: 16_384, AnswerFrom: now},
	}
	if d := cmp.Diff(want, learntLimits(home)); d != "" {
		t.Error(d)
	}
}

// What is in windows.json counts only if it is recent, plausible and not
// disproved; whatever else is there costs nothing.
func TestLimitsInEffect(t *testing.T) {
	day := func(n int) string { return time.Now().AddDate(0, 0, n).UTC().Format(time.RFC3339) }
	window := func(n int, at string) string { return fmt.Sprintf(`{"window": %d, "windowFrom": {"at": %q}}`, n, at) }
	for _, c := range []struct {
		name, entry string
		want        int
	}{
		{"recent", window(8192, day(-6)), 8192},
		{"expired", window(8192, day(-8)), 0},
		{"from the future", window(8192, day(3)), 0},
		{"too small", window(1000, day(0)), 0},
		{"negative", window(-1, day(0)), 0},
		{"too large", `{"window": 9000000000000000000}`, 0},
		{"disproved", `{"window": 8192, "accepted": 9000}`, 0},
		{"not disproved", `{"window": 8192, "accepted": 8000}`, 8192},
		{"an absurd prompt", `{"window": 8192, "accepted": 90000000000}`, 8192},
		{"a text", `"8192"`, 0},
		{"nothing", `null`, 0},
		{"a list", `[8192]`, 0},
		{"a time that is none", `{"window": 8192, "windowFrom": {"at": "monday"}}`, 0},
	} {
		home := t.TempDir()
		if err := os.WriteFile(limitsFile(home), []byte(`{"a/other": 4096, "a/b": `+c.entry+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		got := learntLimits(home)
		if got["a/b"].Window != c.want || got["a/other"].Window != 4096 {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
		// The configuration always wins.
		conf := &config.Loaded{Config: config.Default(), Home: home}
		conf.Models = map[string]config.Model{"a/b": {ContextWindow: 100_000}}
		m := &Model{ProviderName: "a", ModelName: "b"}
		if m.settle(conf); m.Budget.Window != 100_000 || !m.fixed {
			t.Errorf("%s: with a configured window it is %d", c.name, m.Budget.Window)
		}
	}
	for _, damage := range []string{"", "{", "[]", "null", "\x00\x01", `{"a/b": {"window": 1e999}}`, strings.Repeat("[", 100_000)} {
		home := t.TempDir()
		if err := os.WriteFile(limitsFile(home), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := learntLimits(home); len(got) != 0 {
			t.Errorf("%.20q: %+v", damage, got)
		}
		if err := rememberLimits(home, "a/b", limits{Accepted: 5000}); err != nil || learntLimits(home)["a/b"].Accepted != 5000 {
			t.Errorf("%.20q: it cannot be replaced: %v", damage, err)
		}
	}
}

// The longest prompt that a model took is written when it has grown by a tenth,
// and is the least that a refusal can shrink the window to.
func TestAcceptedPromptsAreRemembered(t *testing.T) {
	home := t.TempDir()
	c := &config.Loaded{Config: config.Default(), Home: home}
	load := func() *Models {
		m := &Model{ProviderName: "anthropic", ModelName: "claude-sonnet-4-5"}
		m.settle(c)
		ms := with(c)
		ms.Now = m
		return ms
	}
	a := load()
	for _, n := range []int{100, 20_000, 21_000, 30_000, 30_500} {
		a.took(a.Now, n)
	}
	if got := learntLimits(home)["anthropic/claude-sonnet-4-5"].Accepted; got != 30_000 || a.Now.accepted != 30_500 {
		t.Errorf("%d are written and %d known, want 30000 and 30500", got, a.Now.accepted)
	}
	a.Learn(agent.Learnt{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 12_000})
	if got := load().Now; got.Budget.Window != 200_000 || got.accepted != 30_000 {
		t.Errorf("a window of 12000 is believed: %+v, accepted %d", got.Budget, got.accepted)
	}
	a.Learn(agent.Learnt{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 40_000, Once: "not for long"})
	if got := load().Now.Budget.Window; got != 200_000 {
		t.Errorf("what counts once is remembered: %d", got)
	}
}

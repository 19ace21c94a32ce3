package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/compact"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
)

func TestAgo(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Hour, "now"}, {59 * time.Second, "now"}, {time.Minute, "1m ago"}, {59 * time.Minute, "59m ago"}, {time.Hour, "1h ago"},
		{47 * time.Hour, "47h ago"}, {2 * day, "2d ago"}, {59 * day, "59d ago"}, {60 * day, "2 months ago"}, {400 * day, "13 months ago"},
	} {
		if got := transcript.Ago(c.d); got != c.want {
			t.Errorf("Ago(%s) = %q, want %q", c.d, got, c.want)
		}
	}
}

// What is written in many places, each time the same way.
func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{transcript.Age(59 * time.Minute), "59m"}, {transcript.Age(61 * 24 * time.Hour), "2mo"}, {transcript.Age(0), "now"},
		{transcript.Took(300 * time.Millisecond), "0.3s"}, {transcript.Took(9940 * time.Millisecond), "9.9s"},
		{transcript.Took(3 * time.Second), "3s"}, {transcript.Took(59900 * time.Millisecond), "59s"},
		{transcript.Took(72 * time.Second), "1m12s"}, {transcript.Took(time.Hour + 5*time.Minute), "1h05m"},
		{transcript.Dollars(0), "$0"}, {transcript.Dollars(0.0042), "$0.0042"}, {transcript.Dollars(0.0123), "$0.012"},
		{transcript.Dollars(0.456), "$0.46"}, {transcript.Dollars(12), "$12.00"},
		{transcript.KeepEnd("~/work/goclaw", 13), "~/work/goclaw"}, {transcript.KeepEnd("~/work/goclaw", 7), "…goclaw"},
		{transcript.KeepEnd("~/潮の時間", 6), "…時間"}, {transcript.KeepEnd("~/work", 1), "…"}, {transcript.KeepEnd("~/work", 0), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// A column is as wide as a terminal shows it, not as many characters.
func TestTable(t *testing.T) {
	rows := [][]string{{"KEY", "TITLE", "TURNS"}, {"main", "潮の時間", "12"}, {"a:b:c", "", "3"}}
	got := transcript.Table(rows, transcript.Style{Colour: true}, 0)
	want := []string{terminal.Paint("1", "KEY    TITLE     TURNS"), "main   潮の時間  12", "a:b:c            3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestFolded(t *testing.T) {
	by := func(d compact.Details) json.RawMessage { b, _ := json.Marshal(d); return b }
	for _, c := range []struct {
		details compact.Details
		asks    bool
		want    string
	}{
		{compact.Details{By: "small"}, true, "compacted 1 message, kept 3 messages: 12k tokens before, about 2k now (by small)"},
		{compact.Details{By: "extract", Extract: true}, true, "compacted 1 message, kept 3 messages: 12k tokens before, about 2k now (an extract: no model wrote a summary)"},
		{compact.Details{By: "checkpoint"}, false, "compacted 1 message, kept 3 messages: 12k tokens before, about 2k now (with the summary of a checkpoint)"},
		{compact.Details{}, true, "compacted 1 message, kept 3 messages: 12k tokens before, about 2k now"},
	} {
		got := transcript.Compacted(session.Compaction{TokensBefore: 12000, Details: by(c.details)}, compact.Cut{Compacted: 1, Kept: 3, After: 2000, Asks: c.asks})
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestWouldFold(t *testing.T) {
	many := strings.Split(strings.Repeat("x ", 22), " ")[:22]
	for _, c := range []struct {
		report compact.Report
		want   []string
	}{
		{compact.Report{Compacted: 9, Kept: 1, Before: 9000, After: 3000, Keep: "e9", From: "e5", Lost: []string{"a.go"}}, []string{
			"would compact 9 messages and keep 1 message, from record e9 on", "tokens: 9k now, about 3k afterwards",
			"no model call: checkpoint e5 has the summary", "identifiers that would be lost (they stay searchable): a.go"}},
		{compact.Report{Compacted: 9, Kept: 2, Before: 9000, After: 3000, Keep: "e9", Asks: true, Cost: llm.Usage{Input: 6000, Output: 500, Cost: llm.Cost{Total: 0.0123}}, Pinned: 1, Open: []string{"do\nit"}, Lost: many}, []string{
			"would compact 9 messages and keep 2 messages, from record e9 on", "tokens: 9k now, about 3k afterwards",
			"for the summary: about 6k tokens in, 500 out, $0.012", "1 pinned message would be kept word for word", "open request kept: do it",
			"identifiers that a summary may lose (they stay searchable): " + strings.Join(many[:20], ", ") + " and 2 more"}},
		{compact.Report{Compacted: 2, Kept: 2, Before: 900, After: 300, Keep: "e3", Asks: true, Cost: llm.Usage{Input: 600, Output: 50}}, []string{
			"would compact 2 messages and keep 2 messages, from record e3 on", "tokens: 900 now, about 300 afterwards",
			"for the summary: about 600 tokens in, 50 out", "no identifier would be lost"}},
		{compact.Report{Compacted: 2, Kept: 2, Before: 900, After: 300, Keep: "e3", Asks: true}, []string{
			"would compact 2 messages and keep 2 messages, from record e3 on", "tokens: 900 now, about 300 afterwards",
			"no model call: the summary is an extract of what was said", "no identifier would be lost"}},
	} {
		if diff := cmp.Diff(c.want, transcript.WouldCompact(c.report)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

package window_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"goclaw/internal/codec"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
	"goclaw/window/bpe"
)

// realSessions are logs with the provider's own usage: an excerpt that is
// always here, and the whole of it where it is.
var realSessions = []string{"testdata/real-usage.jsonl", "../../shared/fixtures/real-usage/large-session.jsonl"}

// The estimate before each call, against what the provider then reported.
func TestEstimateOfRealSessions(t *testing.T) {
	for i, path := range realSessions {
		data, err := os.ReadFile(path)
		if i > 0 && os.IsNotExist(err) { // it is only beside our own clones
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, c := range []struct {
				name  string
				tok   window.Tokenizer
				every int // of how many reports one is there
			}{
				{"as it is", window.NewCounter(bpe.CL100K(), 1.25), 1},
				{"another vocabulary, nothing expected", window.NewCounter(bpe.O200K(), 1), 1},
				{"one report in eight", window.NewCounter(bpe.CL100K(), 1.25), 8},
			} {
				errs := replayCalls(t, data, "anthropic", "claude-sonnet-4-5", c.tok, c.every)
				if len(errs) < 20 {
					t.Fatalf("%d calls with a reported usage", len(errs))
				}
				median, p95 := errs[len(errs)/2], errs[len(errs)*95/100]
				t.Logf("%s: %d calls: the estimate is off by %.2f %% in the median, %.2f %% at the 95th percentile, %.2f %% at most", c.name, len(errs), median, p95, errs[len(errs)-1])
				if median > 5 || p95 > 15 {
					t.Errorf("%s: off by %.2f %% (median) and %.2f %% (p95), want at most 5 and 15", c.name, median, p95)
				}
			}
		})
	}
}

// replayCalls measures before each answer of the model, as a turn does, and
// returns by how many percent that was off, sorted.
func replayCalls(t *testing.T, data []byte, provider, model string, tok window.Tokenizer, every int) []float64 {
	s, err := session.Replay("real", func(func(session.Record, error) bool) {})
	if err != nil {
		t.Fatal(err)
	}
	p := window.Prompt{Provider: provider, Model: model}
	var errs []float64
	first, calls := true, 0
	for r, err := range codec.Read("real", bytes.NewReader(data), codec.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := r.Body.(session.Message); ok && m.Role == llm.Assistant && m.Model == model && m.Usage.Prompt() > 0 {
			// System prompt and tools are not in the file: the first report
			// reveals them.
			if !first {
				got := window.Measure(s, p, tok, window.Budget{Window: 200_000}).Used
				want := m.Usage.Prompt()
				errs = append(errs, 100*max(float64(got-want), float64(want-got))/float64(want))
			}
			first = false
			if calls++; calls%every != 1%every {
				m.Usage = llm.Usage{}
				r.Body, r.Raw = m, nil
			}
		}
		r.Seq = s.Last + 1
		if err := s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	sort.Float64s(errs)
	return errs
}

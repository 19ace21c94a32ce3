package agent

import (
	"strings"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// The parts of an answer are recorded in steps that neither a fast nor a slow
// model makes too small or too large, and together they are what was said.
func TestSteps(t *testing.T) {
	tests := []struct {
		name           string
		size, n        int
		pause          time.Duration
		parts, atLeast int
	}{
		{"short", 10, 20, time.Minute, 0, 0},
		{"fast", 10, 10_000, 0, 24, 90_000},
		{"slow", 10, 600, 100 * time.Millisecond, 0, 5_700},
		{"large", 100_000, 3, 0, 3, 300_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := &sessiontest.Clock{}
			p := partial{stepped: clock.Now()}
			var said, kept strings.Builder
			parts := 0
			for i := range tt.n {
				d := llm.Delta{Text: strings.Repeat(string(rune('a'+i%26)), tt.size)}
				clock.Move(tt.pause)
				said.WriteString(d.Text)
				step, ok := p.step(d, clock)
				if !ok {
					continue
				}
				if step.Offset != kept.Len() {
					t.Fatalf("a part at %d, want %d", step.Offset, kept.Len())
				}
				kept.WriteString(step.Text)
				parts++
			}
			if !strings.HasPrefix(said.String(), kept.String()) {
				t.Error("the parts are not what was said")
			}
			if kept.Len() < tt.atLeast || tt.parts > 0 && parts != tt.parts {
				t.Errorf("%d parts with %d bytes of %d", parts, kept.Len(), said.Len())
			}
			if said.Len()-kept.Len() > stepBytes {
				t.Errorf("%d bytes are not recorded", said.Len()-kept.Len())
			}
		})
	}
}

// Thinking and text keep their order.
func TestStepsKeepTheOrder(t *testing.T) {
	clock := &sessiontest.Clock{}
	p := partial{stepped: clock.Now()}
	long := strings.Repeat("x", 300)
	var got []session.Partial
	for _, d := range []llm.Delta{{Thinking: "hm"}, {Text: long}, {Thinking: "and"}, {Call: &llm.ToolCall{}}, {Text: "so"}} {
		if step, ok := p.step(d, clock); ok {
			got = append(got, step)
		}
	}
	if len(got) != 1 || got[0].Thinking != "hm" || got[0].Text != long {
		t.Errorf("got %+v", got)
	}
	if p.fresh.Offset != 302 || p.fresh.Thinking != "and" || p.fresh.Text != "so" {
		t.Errorf("left %+v", p.fresh)
	}
}

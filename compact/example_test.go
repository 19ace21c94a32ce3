package compact_test

import (
	"fmt"
	"strings"

	"goclaw/compact"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/window"
)

// quarters counts a token for every four bytes.
type quarters struct{}

func (quarters) Count(text string) int { return len(text) / 4 }

// Plan says where the past would be cut. It asks no model and changes nothing.
func ExamplePlan() {
	var bodies []session.Body
	for range 20 {
		bodies = append(bodies, sessiontest.User("Tell me more."), sessiontest.Answer(strings.Repeat("words ", 200)))
	}
	s, err := session.Replay(sessiontest.ID, sessiontest.Yield(sessiontest.Log(bodies...)...))
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt := window.Prompt{Provider: "test", Model: "small"}
	budget := window.Measure(s, prompt, quarters{}, window.Budget{Window: 8_000})
	cut, ok := compact.Plan(s, prompt, quarters{}, budget, compact.Options{})
	fmt.Println(ok, cut.Compacted > cut.Kept, cut.Kept >= 4)
	// Output: true true true
}

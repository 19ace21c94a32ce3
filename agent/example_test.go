package agent_test

import (
	"fmt"

	"goclaw/agent"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/window"
)

// Next is a pure function of the log: a call without a result is run next, a
// question is put to the model.
func ExampleNext() {
	for _, bodies := range [][]session.Body{
		{sessiontest.User("hi")},
		{sessiontest.User("hi"), sessiontest.Answer("hello")},
	} {
		s, err := session.Replay(sessiontest.ID, sessiontest.Yield(sessiontest.Log(bodies...)...))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%T\n", agent.Next(s, window.Budget{Window: 100_000}, window.Loose, agent.Policy{}))
	}
	// Output:
	// agent.Ask
	// agent.Rest
}

package window_test

import (
	"fmt"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/window"
)

// A call that was interrupted is answered in the request; the log stays as it
// is.
func ExampleBuild() {
	s, err := session.Replay(sessiontest.ID, sessiontest.Yield(sessiontest.Log(
		sessiontest.User("What is in a.txt?"),
		sessiontest.Call("c1", "read_file", `{"path":"a.txt"}`),
	)...))
	if err != nil {
		fmt.Println(err)
		return
	}
	req := window.Build(s, window.Prompt{Provider: "anthropic", Model: "claude-sonnet-4-5"}, window.Loose)
	for _, m := range req.Messages {
		fmt.Println(m.Role, len(m.Calls()), "calls,", len(m.Results()), "results")
	}
	// Output:
	// user 0 calls, 0 results
	// assistant 1 calls, 0 results
	// user 0 calls, 1 results
}

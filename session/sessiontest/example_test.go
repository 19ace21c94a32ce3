package sessiontest_test

import (
	"fmt"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// A test writes down a log and looks at the session that results.
func Example() {
	log := sessiontest.Log(
		sessiontest.User("hello"),
		sessiontest.Answer("hi"),
		sessiontest.Title("A greeting"),
	)
	s, err := session.Replay(sessiontest.ID, sessiontest.Yield(log...))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Title, s.Last)
	// Output: A greeting 4
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

// noticing keeps what is written to it, and does something when a text is in it.
type noticing struct {
	mu   sync.Mutex
	all  strings.Builder
	text string
	do   func()
}

func (n *noticing) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all.Write(p)
	if n.do != nil && strings.Contains(n.all.String(), n.text) {
		n.do()
		n.do = nil
	}
	return len(p), nil
}

func (n *noticing) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.String()
}

// A turn that another is just running was not interrupted.
func TestAskWhileAnotherAnswers(t *testing.T) {
	home := t.TempDir()
	st, err := sqlite.Open(filepath.Join(home, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := sessiontest.Log(session.Header{Version: session.Version, ID: "busy", Key: "t:cli:busy"}, sessiontest.User("how long?"))
	if err := st.Append(t.Context(), "busy", log...); err != nil {
		t.Fatal(err)
	}
	e := &noticing{text: "is running a turn"}
	ask := func(args ...string) (code int, errOut string) {
		var out strings.Builder
		e.all.Reset()
		env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1"}
		code = run(append([]string{"--model", "offline", "ask", "-s", "t:cli:busy"}, args...), strings.NewReader(""), &out, e, func(k string) string { return env[k] })
		return code, e.String()
	}
	release, err := st.Lock(t.Context(), "busy", "the other")
	if err != nil {
		t.Fatal(err)
	}
	middle := fmt.Sprintf("another goclaw (pid %d) is running a turn", os.Getpid())
	if code, errOut := ask("--continue"); code != 1 || !strings.Contains(errOut, middle) {
		t.Errorf("--continue exits %d: %s", code, errOut)
	}
	e.do = release
	if code, errOut := ask("more"); code != 0 || !strings.Contains(errOut, middle) || strings.Contains(errOut, "was interrupted") {
		t.Errorf("while another answers, ask exits %d: %s", code, errOut)
	}
	s, err := session.Open(t.Context(), st, "busy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Keep(t.Context(), st, s, s.Next(sessiontest.User("and now?"), session.System{}), session.System{}); err != nil {
		t.Fatal(err)
	}
	if code, errOut := ask("more"); code != 0 || !strings.Contains(errOut, `the last turn was interrupted ("and now?"): goclaw ask --continue resumes it`) {
		t.Errorf("with nobody answering, ask exits %d: %s", code, errOut)
	}
}

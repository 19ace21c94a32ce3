package openclaw

import (
	"strings"

	"goclaw/session"
)

// AgentOf returns the agent of OpenClaw that a session belongs to: by its key, or
// by that of the session that it continues. key is the one that OpenClaw knows.
func (i Installation) AgentOf(in session.Info) (a Agent, key session.Key, ok bool) {
	if p := in.Origin.Program; p != "" && p != Program && p != "goclaw" {
		return a, "", false
	}
	for _, key := range []session.Key{in.Key, in.Origin.Key} {
		if rest, own := strings.CutPrefix(string(key), "goclaw:"); own { // it continues one
			key = session.Key("agent:" + rest)
		}
		if strings.HasPrefix(string(key), "agent:") {
			if a, ok := i.Agent(key.Parts().Agent); ok {
				return a, key, true
			}
		}
	}
	return a, "", false
}

package session

import (
	"strings"
	"unicode"
)

// Key says whose conversation it is: "main:cli:user",
// "agent:main:telegram:direct:42", or any other text. It is kept and compared
// byte by byte; Parts reads it for display.
type Key string

// Parts is what a key says. Fields that it does not name are empty.
type Parts struct {
	Agent   string // main, ops ...
	Channel string // cli, telegram ... or main, cron, hook, subagent, acp
	Account string // the channel's account, where the key has one
	Kind    string // direct, dm, group, channel
	Peer    string // the person or group; ids may hold colons
	Thread  string // thread or topic
}

// Parts parses the forms agent:channel:peer, agent:<id>:main,
// agent:<id>:<channel>[:<account>]:<kind>:<peer>[:thread|topic:<id>],
// agent:<id>:{cron,hook,subagent,acp,...}:<id> and the same without the
// agent. Any other text is a Peer alone.
func (k Key) Parts() Parts {
	seg := strings.Split(string(k), ":")
	if len(seg) >= 3 && seg[0] == "agent" && seg[1] != "" {
		p := scoped(seg[2:])
		p.Agent = seg[1]
		return p
	}
	if special[seg[0]] && len(seg) >= 2 {
		return scoped(seg)
	}
	if len(seg) == 3 {
		return Parts{Agent: seg[0], Channel: seg[1], Peer: seg[2]}
	}
	if len(seg) > 3 && seg[0] != "" {
		p := scoped(seg[1:])
		p.Agent = seg[0]
		return p
	}
	return Parts{Peer: string(k)}
}

// Complete reports whether k has the form of a whole key, agent:channel:peer
// or longer, so that it may begin a session.
func (k Key) Complete() bool {
	seg := strings.Split(string(k), ":")
	last := seg[len(seg)-1]
	return len(seg) >= 3 && seg[0] != "" && seg[1] != "" && seg[2] != "" && last != "" && !kinds[last] && !strings.ContainsFunc(string(k), unicode.IsSpace)
}

// special are the first words of keys that name a purpose, not a channel.
var special = map[string]bool{
	"cron": true, "hook": true, "subagent": true, "acp": true, "dashboard": true,
	"explicit": true, "slash": true, "voice": true, "recovered": true,
}

var kinds = map[string]bool{"direct": true, "dm": true, "group": true, "channel": true}

// scoped parses what follows the agent.
func scoped(seg []string) Parts {
	var p Parts
	for i := len(seg) - 2; i >= 1; i-- {
		if seg[i] == "thread" || seg[i] == "topic" {
			p.Thread = strings.Join(seg[i+1:], ":")
			seg = seg[:i]
			break
		}
	}
	join := func(s []string) string { return strings.Join(s, ":") }
	switch {
	case len(seg) == 1:
		p.Channel = seg[0]
	case special[seg[0]]:
		p.Channel, p.Peer = seg[0], join(seg[1:])
	case kinds[seg[0]]: // per-peer: direct:<peer>
		p.Kind, p.Peer = seg[0], join(seg[1:])
	case len(seg) >= 3 && kinds[seg[1]]:
		p.Channel, p.Kind, p.Peer = seg[0], seg[1], join(seg[2:])
	case len(seg) >= 4 && kinds[seg[2]]:
		p.Channel, p.Account, p.Kind, p.Peer = seg[0], seg[1], seg[2], join(seg[3:])
	default:
		p.Channel, p.Peer = seg[0], join(seg[1:])
	}
	return p
}

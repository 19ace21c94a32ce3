package session

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// Key says whose conversation it is: "main:cli:user",
// "agent:main:telegram:direct:42", or any other text. It is kept verbatim and
// compared bytewise; Parts reads it for display.
type Key string

// Parts is what a key tells a reader. Fields that it does not tell are empty.
type Parts struct {
	Agent   string // main, ops ...
	Channel string // cli, telegram ... or main, cron, hook, subagent, acp
	Account string // the channel's account, where the key has one
	Kind    string // direct, dm, group, channel
	Peer    string // who is talked to; ids may hold colons
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
// or longer: one that may begin a session.
func (k Key) Complete() bool {
	seg := strings.Split(string(k), ":")
	last := seg[len(seg)-1]
	return len(seg) >= 3 && seg[0] != "" && seg[1] != "" && seg[2] != "" && last != "" && !kinds[last] && !strings.ContainsFunc(string(k), unicode.IsSpace)
}

// Terminal is the channel of sessions in a terminal. The last part of their
// keys is a name that the user gave them; in other channels it is a person.
const Terminal = "cli"

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

// maxName is the length of a file name's stem. Every file system in use takes
// 255 bytes; suffixes and temporary names need room.
const maxName = 180

// FileName returns text as a file name that no other text shares, also on
// file systems that ignore case, and that cannot leave its folder. Lower-case
// letters, digits, '-' and inner '.' stand for themselves; everything else is
// "%" and hex. A name that would be too long ends in "%~" and the text's
// SHA-256.
func FileName(text string) string {
	if text == "" {
		return "%"
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.' && i > 0 && i < len(text)-1:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	name := b.String()
	if reserved[stem(name)] { // Windows opens devices by these names
		name = "%" + name[:1] + "%" + name[1:]
	}
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(text))
		cut := maxName - 2 - 2*len(sum)
		name = name[:cut] + "%~" + hex.EncodeToString(sum[:])
	}
	return name
}

const hexDigits = "0123456789abcdef"

func stem(name string) string {
	s, _, _ := strings.Cut(name, ".")
	return s
}

var reserved = func() map[string]bool {
	m := map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}
	for d := '0'; d <= '9'; d++ {
		m["com"+string(d)], m["lpt"+string(d)] = true, true
	}
	return m
}()

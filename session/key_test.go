package session

import "testing"

func TestKeyParts(t *testing.T) {
	for _, c := range []struct {
		key  Key
		want Parts
	}{
		{"main:cli:user", Parts{Agent: "main", Channel: "cli", Peer: "user"}},
		{"main:cli:", Parts{Agent: "main", Channel: "cli"}},
		{"agent:main:main", Parts{Agent: "main", Channel: "main"}},
		{"agent:ops:telegram:direct:42", Parts{Agent: "ops", Channel: "telegram", Kind: "direct", Peer: "42"}},
		{"agent:main:dm:+4917", Parts{Agent: "main", Kind: "dm", Peer: "+4917"}},
		{"agent:main:telegram:acct:dm:42", Parts{Agent: "main", Channel: "telegram", Account: "acct", Kind: "dm", Peer: "42"}},
		{"agent:main:telegram:group:-100123:topic:42", Parts{Agent: "main", Channel: "telegram", Kind: "group", Peer: "-100123", Thread: "42"}},
		{"agent:main:discord:channel:9:thread:7", Parts{Agent: "main", Channel: "discord", Kind: "channel", Peer: "9", Thread: "7"}},
		{"agent:main:main:thread:7", Parts{Agent: "main", Channel: "main", Thread: "7"}},
		{"agent:main:matrix:channel:!room:example.org", Parts{Agent: "main", Channel: "matrix", Kind: "channel", Peer: "!room:example.org"}},
		{"agent:main:cron:job:run:1", Parts{Agent: "main", Channel: "cron", Peer: "job:run:1"}},
		{"agent:main:subagent:a:subagent:b", Parts{Agent: "main", Channel: "subagent", Peer: "a:subagent:b"}},
		{"hook:1b4e", Parts{Channel: "hook", Peer: "1b4e"}},
		{"global", Parts{Peer: "global"}},
		{"+4917", Parts{Peer: "+4917"}},
		{"", Parts{}},
		{"a b\x00c", Parts{Peer: "a b\x00c"}},
	} {
		if got := c.key.Parts(); got != c.want {
			t.Errorf("Key(%q).Parts() = %+v, want %+v", c.key, got, c.want)
		}
	}
}

func TestCompleteKeys(t *testing.T) {
	for key, want := range map[Key]bool{
		"main:cli:user": true, "agent:main:main": true, "agent:main:telegram:direct:42": true, "main:matrix:!room:example.org": true,
		"main:cli:": false, ":cli:x": false, "main::x": false, "main:cli": false, "main": false, "": false, "01a1dd4f-4f31": false,
		"agent:main:telegram:direct": false, "agent:main:telegram:direct:": false, "Fix: the build: today": false,
	} {
		if got := key.Complete(); got != want {
			t.Errorf("Key(%q).Complete() = %v", key, got)
		}
	}
}

package naming_test

import (
	"strings"
	"testing"

	"goclaw/internal/naming"
	"goclaw/llm"
	"goclaw/session"
	. "goclaw/session/sessiontest"
)

func TestTopic(t *testing.T) {
	for said, want := range map[string]string{
		"How do I rename a branch in git? I tried twice.":                "How do I rename a branch in git?",
		"Hi! Please fix the login test. It fails.":                       "fix the login test",
		"# Plan\n\nbuild it":                                             "Plan",
		strings.Repeat("very ", 30) + "long":                             "very very very very very very very very very very very very …",
		"修复登录测试。它失败了":                                                    "修复登录测试",
		"v1.2.3 does not build":                                          "v1.2.3 does not build",
		"\x1b[31mred\x07":                                                "[31mred",
		"<context>\nfix the parser":                                      "fix the parser",
		"please":                                                         "",
		"你好！帮我修复登录测试":                                                    "帮我修复登录测试",
		"[Sun 2026-11-15 00:11 UTC] The ferry is late\n[message_id: 42]": "The ferry is late",
		"[cron:6880389a-fbe1-4d71-af03-d7314d6989ee nightly] Check the backups. Then rest.": "nightly: Check the backups",
		"[hook:6880389a] A mail has come": "A mail has come",
		// A greeting stays in its sentence.
		"Hi, can you fix the build?":      "Hi, can you fix the build?",
		"Hello world program in Go":       "Hello world program in Go",
		"Good morning campaign: the copy": "Good morning campaign: the copy",
		"Hey Ana, is the build green?":    "Hey Ana, is the build green?",
		"Good morning! Is the build ok?":  "Is the build ok?",
		// Alone, it is no topic.
		"hello": "", "Hello!": "", "hi there": "", "Hi Ana": "", "Good morning": "", "hey, how are you?": "", "你好": "", "こんにちは。": "", "Guten Tag!": "", "ok thanks": "", "test": "", "👋": "", "?": "", "": "",
	} {
		if got := naming.Topic(Replay(t, User(said), Answer("I am here"))); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
	picture := session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Image{MIME: "image/png", Data: "AAAA"}}}}
	if got := naming.Topic(Replay(t, User("hello"), Answer("Hello. What can I do?"), picture, Answer("A harbour at dawn. It is red."))); got != "A harbour at dawn" {
		t.Errorf("of a picture: got %q", got)
	}
	if got := naming.Topic(Replay(t, User("hello"), Answer("hi"), User("The ferry is late"))); got != "The ferry is late" {
		t.Errorf("after a greeting: got %q", got)
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// thinkFlag describes --think.
var thinkFlag = "how much the model thinks before it answers: " + orList(llm.Levels)

// orList returns words as a list that ends with "or".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// level returns how much the model is asked to think in s, and who says so. The
// first of these that exists is taken: --think, what was set in s with /think or
// by the program that s is from, the configuration. Else the model decides.
func (ms *models) level(s *session.Session) (level, from string) {
	switch {
	case ms.think != "":
		return ms.think, "--think"
	case slices.Contains(llm.Levels, s.Thinking):
		return s.Thinking, "set for this session"
	case ms.conf.Thinking != "":
		return ms.conf.Thinking, "configured"
	}
	return "", ""
}

// takes returns an error if m is known not to have a level of thinking. note says
// what else the user should know about it.
func (m *model) takes(level string) (note string, err error) {
	switch {
	case !slices.Contains(llm.Levels, level):
		return "", usage("the level of thinking must be %s, not %q", orList(llm.Levels), level)
	case !m.thinks:
		return fmt.Sprintf("%s does not think before it answers, and ignores the level", m.name()), nil
	case len(m.think) == 0:
		return fmt.Sprintf("which levels %s has is not known: it may ignore this one", m.name()), nil
	case !slices.Contains(m.think, level):
		return "", usage("%s does not think at level %s: it offers %s", m.name(), level, orList(m.think))
	}
	return "", nil
}

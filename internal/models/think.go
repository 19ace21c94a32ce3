package models

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// Levels are the levels of thinking, as a sentence lists them.
func Levels() string { return orList(llm.Levels) }

// orList returns words as a list that ends with "or".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Level returns how much the model is asked to think in s, and who says so. The
// first of these that exists is taken: --think, what was set in s with /think or
// by the program that s is from, the configuration. Else the model decides.
func (ms *Models) Level(s *session.Session) (level, from string) {
	switch {
	case ms.Think != "":
		return ms.Think, "--think"
	case slices.Contains(llm.Levels, s.Thinking):
		return s.Thinking, "set for this session"
	case ms.conf().Thinking != "":
		return ms.conf().Thinking, "configured"
	}
	return "", ""
}

// Takes returns an error if m is known not to have a level of thinking. note says
// what else the user should know about it.
func (m *Model) Takes(level string) (note string, err error) {
	switch {
	case !slices.Contains(llm.Levels, level):
		return "", wrong("the level of thinking must be %s, not %q", orList(llm.Levels), level)
	case !m.Thinks:
		return fmt.Sprintf("%s does not think before it answers, and ignores the level", m.Name()), nil
	case len(m.Levels) == 0:
		return fmt.Sprintf("which levels %s has is not known: it may ignore this one", m.Name()), nil
	case !slices.Contains(m.Levels, level):
		return "", wrong("%s does not think at level %s: it offers %s", m.Name(), level, orList(m.Levels))
	}
	return "", nil
}

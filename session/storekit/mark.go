package storekit

import (
	"strings"

	"goclaw/session"
)

// ProgramOf returns the program of an origin and, if it has one, its mark, as one
// text. Tables and indexes keep it in the place of the program: they were laid
// out before there were marks, and older versions use them as well.
func ProgramOf(o session.Origin) string {
	if o.Mark == "" && !strings.Contains(o.Program, markSep) {
		return o.Program
	}
	return o.Program + markSep + o.Mark
}

// SetProgram sets the program and the mark of o to those of a text that ProgramOf
// returned.
func SetProgram(o *session.Origin, text string) {
	o.Program, o.Mark = text, ""
	if i := strings.LastIndex(text, markSep); i >= 0 {
		o.Program, o.Mark = text[:i], text[i+len(markSep):]
	}
}

const markSep = "\x1f"

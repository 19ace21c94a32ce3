// Package memoryfiles says which files of a workspace are memory files: what
// an agent keeps from one session to the next.
package memoryfiles

import (
	"path"
	"regexp"
	"strings"
	"time"
)

// Names are relative to the workspace and have slashes.
const (
	Main = "MEMORY.md" // lasting facts
	Dir  = "memory"    // notes, usually one file for each day
)

// OfDay returns the name of the notes of a day, such as 2026-08-02.
func OfDay(day string) string { return Dir + "/" + day + ".md" }

// Is reports whether name, which is clean, is a memory file or would be one.
func Is(name string) bool { return name == Main || strings.HasPrefix(name, Dir+"/") }

// IsText reports whether a file in a folder of memory files is one of them by
// its extension.
func IsText(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".txt":
		return true
	}
	return false
}

var date = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// Day returns the day that a file is named after, at midnight UTC, and whether
// it is named after one.
func Day(name string) (time.Time, bool) {
	day, err := time.Parse(time.DateOnly, date.FindString(path.Base(name)))
	return day, err == nil
}

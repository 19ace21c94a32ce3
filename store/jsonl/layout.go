package jsonl

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/codec"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Layout says which files lie where, and in which form their lines are.
type Layout int

const (
	// OpenClaw: agents/<agent>/sessions/<id>.jsonl in native lines, which
	// OpenClaw and pi read, and sessions.json beside them.
	OpenClaw Layout = iota
	// Claw0New: agents/<agent>/sessions/<id>.jsonl in claw0's lines, and
	// agents/<agent>/sessions.json.
	Claw0New
	// Claw0Old: transcripts/<key>_<id>.jsonl in claw0's older lines, and
	// sessions.json.
	Claw0Old
)

func (y Layout) String() string {
	switch y {
	case OpenClaw:
		return "openclaw"
	case Claw0New:
		return "claw0"
	case Claw0Old:
		return "claw0-old"
	}
	return fmt.Sprintf("Layout(%d)", int(y))
}

func (y Layout) form() codec.Form {
	switch y {
	case Claw0New:
		return codec.FormClaw0
	case Claw0Old:
		return codec.FormClaw0Old
	}
	return codec.FormNative
}

// Names within a store. Everything of ours that is neither a log nor
// sessions.json lies in own.
const (
	ext       = ".jsonl"
	own       = ".goclaw"
	trash     = "trash"
	agents    = "agents"
	sessions  = "sessions"
	scripts   = "transcripts"
	indexName = "sessions.json"
	deleted   = ext + ".deleted."
)

// place returns the path of the log id of key, relative to the store.
func (y Layout) place(key session.Key, id session.ID) string {
	if y == Claw0Old {
		name := colons(string(key)) + "_" + storekit.FileName(string(id))
		if len(name) > 200 {
			name = storekit.FileName(string(key) + "\x00" + string(id))
		}
		return filepath.Join(scripts, name+ext)
	}
	return filepath.Join(agents, agentName(key), sessions, storekit.FileName(string(id))+ext)
}

// agentName returns the folder of key's agent. An underscore stands for
// itself, as in OpenClaw; FileName never gives one.
func agentName(key session.Key) string {
	agent := key.Parts().Agent
	if agent == "" {
		agent = "main"
	}
	return strings.ReplaceAll(storekit.FileName(agent), "%5f", "_")
}

// colons is a key as a file name that shows its colons as underscores, and
// its underscores escaped: a:b and a_b do not meet.
func colons(key string) string {
	return strings.ReplaceAll(storekit.FileName(key), "%3a", "_")
}

// index returns the path of the sessions.json for the logs in folder.
func (y Layout) index(folder string) string {
	if y == OpenClaw {
		return filepath.Join(folder, indexName)
	}
	return filepath.Join(filepath.Dir(folder), indexName)
}

// named returns the session id that a file name stands for, where the log
// itself has none.
func (y Layout) named(name string) session.ID {
	stem := strings.TrimSuffix(name, ext)
	if y == Claw0Old {
		if i := strings.LastIndexByte(stem, '_'); i >= 0 {
			stem = stem[i+1:]
		}
	}
	if text, ok := unescape(stem); ok && storekit.FileName(text) == stem {
		return session.ID(text)
	}
	return session.ID(stem)
}

// unescape undoes FileName where it did not shorten.
func unescape(name string) (string, bool) {
	var b []byte
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b = append(b, name[i])
			continue
		}
		if i+3 > len(name) {
			return "", false
		}
		c, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b = append(b, c...)
		i += 2
	}
	return string(b), true
}

// stamp is how the trash writes when a log came there: as OpenClaw writes the
// time of its archives.
const stamp = "2006-01-02T15-04-05.000Z"

// trashName returns the path in the trash of the log at rel.
func trashName(rel string, at time.Time) string {
	dir, name := filepath.Split(rel)
	return filepath.Join(dir, trash, strings.TrimSuffix(name, ext)+deleted+at.UTC().Format(stamp))
}

// fromTrash returns the path that the trashed log at rel had before, and when
// it was deleted. ok is false for any other file.
func fromTrash(rel string) (live string, at time.Time, ok bool) {
	dir, name := filepath.Split(rel)
	i := strings.LastIndex(name, deleted)
	if i < 0 || filepath.Base(dir) != trash {
		return "", time.Time{}, false
	}
	at, err := time.Parse(stamp, name[i+len(deleted):])
	if err != nil {
		return "", time.Time{}, false
	}
	return filepath.Join(filepath.Dir(filepath.Clean(dir)), name[:i]+ext), at, true
}

// isLog reports whether rel is the name of a log, in the trash or not.
func isLog(rel string) bool {
	if filepath.Base(filepath.Dir(rel)) == trash {
		_, _, ok := fromTrash(rel)
		return ok
	}
	return strings.HasSuffix(rel, ext)
}

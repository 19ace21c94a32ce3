package jsonl

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/codec"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Layout is where the files are and which form their lines have.
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

// Names within a store. Files of ours that are neither logs nor sessions.json
// are in own.
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

// agentName returns the folder of key's agent. Underscores are not escaped, as
// in OpenClaw; FileName escapes them.
func agentName(key session.Key) string {
	agent := key.Parts().Agent
	if agent == "" {
		agent = "main"
	}
	return strings.ReplaceAll(storekit.FileName(agent), "%5f", "_")
}

// colons returns key as a file name with underscores for its colons. Its own
// underscores are escaped, so that a:b and a_b differ.
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

// named returns the session id in a file name, for a log that has none.
func (y Layout) named(name string) session.ID {
	stem := strings.TrimSuffix(name, ext)
	if y == Claw0Old {
		if i := strings.LastIndexByte(stem, '_'); i >= 0 {
			stem = stem[i+1:]
		}
	}
	// FileName escapes as URLs do, but shortens long names.
	if text, err := url.PathUnescape(stem); err == nil && storekit.FileName(text) == stem {
		return session.ID(text)
	}
	return session.ID(stem)
}

// stamp is the form of the time of deletion in the name of a file in the trash.
// OpenClaw's archives have the same.
const stamp = "2006-01-02T15-04-05.000Z"

// trashName returns the path in the trash of the log at rel.
func trashName(rel string, at time.Time) string {
	dir, name := filepath.Split(rel)
	return filepath.Join(dir, trash, strings.TrimSuffix(name, ext)+deleted+at.UTC().Format(stamp))
}

// fromTrash returns the former path of the log at rel, which is in the trash,
// and the time of its deletion. ok is false for any other file.
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

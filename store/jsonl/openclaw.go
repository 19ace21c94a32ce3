package jsonl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
)

// OpenClaw locks files by making a file name.lock that names its process.

// lockTable keeps other programs from writing the sessions.json name: other
// stores by a lock of their kind, OpenClaw by one of its own.
func (r *root) lockTable(name string) (func(), error) {
	unlock, err := r.lock(context.Background(), "table-"+strings.ReplaceAll(storekit.FileName(name), "%2f", "_"))
	if err != nil || r.layout != OpenClaw {
		return unlock, err
	}
	path := r.path(name) + ".lock"
	for range 200 {
		f, err := r.disk.open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err == nil {
			_, err = fmt.Fprintf(f, `{"pid":%d,"startedAt":%d,"by":%q}`, os.Getpid(), time.Now().UnixMilli(), ours)
			f.Close()
			return func() {
				_ = r.disk.remove(path)
				unlock()
			}, err
		}
		if !errors.Is(err, fs.ErrExist) {
			if errors.Is(err, fs.ErrNotExist) { // no folder, so no other program
				return unlock, nil
			}
			unlock()
			return nil, err
		}
		if r.abandoned(path) {
			_ = r.disk.remove(path)
			continue
		}
		time.Sleep(10 * time.Millisecond)
	}
	unlock()
	return nil, fmt.Errorf("jsonl: another program has %s locked", r.path(name))
}

// ours is in the lock files that this store makes.
const ours = "goclaw"

// How old the lock of a sessions.json becomes: OpenClaw itself waits staleTable.
// It has the lock for milliseconds, so deadTable is enough if its process has ended.
const (
	staleTable = 30 * time.Second
	deadTable  = time.Second
)

// abandoned reports whether the lock file path was left behind: by a store of this
// kind, since the caller has the lock that all of them take first, or by OpenClaw.
// That writes its process late or not at all, and the process may be one of
// another container, so some time has to pass in any case.
func (r *root) abandoned(path string) bool {
	b, st, err := readFile(r.disk, path)
	if err != nil {
		return false
	}
	var note struct {
		PID int    `json:"pid"`
		By  string `json:"by"`
	}
	age := time.Since(time.Unix(0, st.mtime))
	if json.Unmarshal(b, &note) != nil || note.PID <= 0 {
		return age > staleTable
	}
	return note.By == ours || age > staleTable || age > deadTable && !alive(note.PID)
}

// heldByOpenClaw returns who has locked the log by OpenClaw's own kind of lock,
// which lasts half an hour at most, or nil.
func (l *log) heldByOpenClaw() *session.HeldError {
	var note struct {
		PID       int       `json:"pid"`
		CreatedAt time.Time `json:"createdAt"`
	}
	b, _, err := readFile(l.disk, l.path(l.live)+".lock")
	if err != nil || json.Unmarshal(b, &note) != nil || note.PID <= 0 || !alive(note.PID) || time.Since(note.CreatedAt) > 30*time.Minute {
		return nil
	}
	return &session.HeldError{Name: string(l.id), Who: "openclaw", PID: note.PID, Since: note.CreatedAt}
}

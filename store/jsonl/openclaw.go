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
			_, err = fmt.Fprintf(f, "{\"pid\":%d,\"startedAt\":%d}", os.Getpid(), time.Now().UnixMilli())
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

// abandoned reports whether the lock file path belongs to a process that has
// ended, or is too old. One of this process is abandoned as well: the caller
// holds the lock of our own kind and has not made one yet. A file without a
// process is being written, or its writer has died.
func (r *root) abandoned(path string) bool {
	b, st, err := readFile(r.disk, path)
	if err != nil {
		return false
	}
	var note struct {
		PID int `json:"pid"`
	}
	age := time.Since(time.Unix(0, st.mtime))
	if json.Unmarshal(b, &note) != nil || note.PID <= 0 {
		return age > 100*time.Millisecond
	}
	return age > 30*time.Second || note.PID == os.Getpid() || !alive(note.PID)
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

package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Hosts returns a DSN with several servers over TCP, of which the one that takes
// writes is used.
func Hosts(database string, servers ...*Server) string {
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", s.Port)
	}
	return several(database, hosts)
}

func several(database string, hosts []string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&target_session_attrs=read-write", url.UserPassword(User, Password), strings.Join(hosts, ","), database)
}

// Standby starts a standby of s, for which commits on s wait from now on: what s
// has confirmed is on the disk of the standby. The caller must call Stop.
func (s *Server) Standby() (*Server, error) {
	b := &Server{Bin: s.Bin, settings: s.settings}
	var err error
	if b.folder, err = os.MkdirTemp("", "goclaw-pg"); err != nil {
		return nil, err
	}
	b.Dir = filepath.Join(b.folder, "data")
	if b.Port, err = freePort(); err == nil {
		err = own(b.folder)
	}
	if err == nil {
		err = b.copy(s)
	}
	if err == nil {
		err = b.launch()
	}
	if err == nil {
		err = s.wait()
	}
	if err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

// wait has commits on s wait for its standby from now on.
func (s *Server) wait() error {
	_, err := s.SQL("ALTER SYSTEM SET synchronous_standby_names = '*'")
	if err == nil {
		_, err = s.SQL("SELECT pg_reload_conf()")
	}
	for begin := time.Now(); err == nil; time.Sleep(20 * time.Millisecond) {
		var state string
		if state, err = s.SQL("SELECT sync_state FROM pg_stat_replication"); state == "sync" {
			return nil
		}
		if time.Since(begin) > time.Minute {
			err = fmt.Errorf("the standby is %q, not sync", state)
		}
	}
	return err
}

// copy makes b's data a copy of those of s, as those of a standby.
func (b *Server) copy(s *Server) error {
	return b.program("pg_basebackup", "-D", b.Dir, "-h", s.folder, "-p", strconv.Itoa(s.Port), "-U", User, "-R", "-X", "stream", "-c", "fast")
}

// own gives files to the user that the programs run as.
func own(paths ...string) error {
	uid, gid, err := owner()
	for _, path := range paths {
		if err == nil && uid != 0 {
			err = os.Chown(path, uid, gid)
		}
	}
	return err
}

// program runs a program of PostgreSQL as the user of the server.
func (s *Server) program(name string, args ...string) error {
	uid, gid, err := owner()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.Bin, name), args...)
	cmd.Dir = s.folder
	as(cmd, uid, gid)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// SQL runs a statement in the database postgres, and returns what psql prints of
// its result.
func (s *Server) SQL(text string) (string, error) {
	cmd := exec.Command(filepath.Join(s.Bin, "psql"), "-X", "-q", "-t", "-A", "-h", s.folder, "-p", strconv.Itoa(s.Port), "-U", User, "-d", "postgres", "-c", text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Promote makes a standby a primary, and returns when it takes writes.
func (s *Server) Promote() error {
	_, err := s.SQL("SELECT pg_promote(true, 60)")
	return err
}

// CatchUp waits until what is on the disk of primary can be read from s, its
// standby: it has a commit when that is confirmed, and shows it a moment later.
func (s *Server) CatchUp(primary *Server) error {
	at, err := primary.SQL("SELECT pg_current_wal_flush_lsn()")
	for begin := time.Now(); err == nil; time.Sleep(10 * time.Millisecond) {
		var done string
		if done, err = s.SQL("SELECT pg_last_wal_replay_lsn() >= '" + at + "'"); done == "t" {
			return nil
		}
		if time.Since(begin) > time.Minute {
			err = errors.New("the standby does not catch up")
		}
	}
	return err
}

// pid returns the process of the server.
func (s *Server) pid() (int, error) {
	b, err := os.ReadFile(filepath.Join(s.Dir, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strconv.Atoi(first)
}

// signal sends a signal to all processes of the server.
func (s *Server) signal(sig signal) error {
	pid, err := s.pid()
	if err == nil {
		err = signalAll(pid, sig)
	}
	return err
}

// Kill ends all processes of the server with SIGKILL, as if its machine had lost
// its power. What it has written to files stays.
func (s *Server) Kill() error {
	err := s.signal(kill)
	if err == nil {
		<-s.ended
	}
	return err
}

// Pause stops all processes of the server with SIGSTOP: its connections stay, and
// nothing answers. Resume has them go on.
func (s *Server) Pause() error  { return s.signal(stop) }
func (s *Server) Resume() error { return s.signal(cont) }

// Rejoin starts a server that was killed again, as a standby of another that was
// promoted since, with a new copy of its data.
func (s *Server) Rejoin(primary *Server) error {
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		return errors.New("the server that is to be a standby still runs")
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		return err
	}
	if err := s.copy(primary); err != nil {
		return err
	}
	if err := s.launch(); err != nil {
		return err
	}
	return primary.wait()
}

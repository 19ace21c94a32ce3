// Package pgtest starts a PostgreSQL server for tests and measurements: a real
// one, in a temporary folder, which ends with the process that started it.
package pgtest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNone means that there is no PostgreSQL on this machine.
var ErrNone = errors.New("pgtest: there is no PostgreSQL here (initdb and postgres, in PATH or /usr/lib/postgresql/*/bin)")

// Password is the password of User, which a connection over TCP needs.
const (
	User     = "goclaw"
	Password = "pg/test:s3cret"
)

// Server is a running server.
type Server struct {
	process
	Dir string // its data; the socket is in the folder above
	Bin string // the folder of the programs

	settings []string
}

// process is a program that listens on a port, and its folder.
type process struct {
	Port   int
	folder string
	end    func()
	ended  <-chan error
}

// bin returns the folder of the server's programs, of the newest version.
func bin() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(found, func(a, b string) int { return major(b) - major(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	for _, path := range found {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
			return filepath.Dir(path)
		}
	}
	return ""
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// Options are how a server is started. Zero values are as for Start.
type Options struct {
	Newer    bool              // the version that scripts/test fetches, not that of the system
	Folder   string            // an empty folder for its data, with as much space as it has; "": a new one
	Settings []string          // "name=value"
	Files    map[string]string // by name: files of its data folder, such as pg_hba.conf or a certificate
}

// Start starts a server of the system's version with the given settings
// ("name=value"). The caller must call Stop.
func Start(settings ...string) (*Server, error) { return Options{Settings: settings}.Start() }

// Start starts a server. The caller must call Stop.
func (o Options) Start() (*Server, error) {
	s := &Server{}
	var err error
	if s.folder, err = os.MkdirTemp("", "goclaw-pg"); err != nil {
		return nil, err
	}
	if o.Newer {
		s.Bin, err = unpack(s.folder)
	} else if s.Bin = bin(); s.Bin == "" {
		err = ErrNone
	}
	if err == nil {
		s.Dir = filepath.Join(cmp.Or(o.Folder, s.folder), "data")
		err = s.start(o)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// owner returns who the programs run as, 0 if they run as this process does:
// PostgreSQL refuses to run as root.
func owner() (uid, gid int, err error) {
	if os.Getuid() != 0 {
		return 0, 0, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, err
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid, nil
}

// freePort returns a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) start(o Options) error {
	uid, gid, err := owner()
	if err != nil {
		return err
	}
	pw := filepath.Join(s.folder, "pw")
	if err := os.WriteFile(pw, []byte(Password+"\n"), 0o600); err != nil {
		return err
	}
	if uid != 0 {
		for _, path := range []string{s.folder, filepath.Dir(s.Dir), pw} {
			if err := os.Chown(path, uid, gid); err != nil {
				return err
			}
		}
	}
	cmd := exec.Command(filepath.Join(s.Bin, "initdb"), "-D", s.Dir, "-U", User, "-E", "UTF8", "--locale=C", "-N",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile="+pw)
	cmd.Dir = s.folder
	as(cmd, uid, gid)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	for name, text := range o.Files {
		path := filepath.Join(s.Dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if uid != 0 {
			if err := os.Chown(path, uid, gid); err != nil {
				return err
			}
		}
	}
	if s.Port, err = freePort(); err != nil {
		return err
	}
	s.settings = o.Settings
	return s.launch()
}

// launch starts the server on the data that are there.
func (s *Server) launch() error {
	uid, gid, err := owner()
	if err != nil {
		return err
	}
	args := []string{"-D", s.Dir, "-k", s.folder, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	logs, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	cmd := exec.Command(filepath.Join(s.Bin, "postgres"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.folder, logs, logs
	as(cmd, uid, gid)
	if s.end, s.ended, err = run(cmd); err != nil {
		return err
	}
	return s.ready()
}

// ready waits until the server answers: its file says so.
func (s *Server) ready() error {
	for begin := time.Now(); time.Since(begin) < 60*time.Second; time.Sleep(20 * time.Millisecond) {
		state, _ := os.ReadFile(filepath.Join(s.Dir, "postmaster.pid"))
		if lines := strings.Split(string(state), "\n"); len(lines) > 7 && slices.Contains([]string{"ready", "standby"}, strings.TrimSpace(lines[7])) {
			return nil
		}
		select {
		case err := <-s.ended:
			out, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			return fmt.Errorf("postgres has ended: %v: %s", err, out)
		default:
		}
	}
	return errors.New("postgres does not answer")
}

// DSN returns the DSN of a database, through the socket.
func (s *Server) DSN(database string) string {
	q := url.Values{"host": {s.folder}, "port": {strconv.Itoa(s.Port)}}
	return fmt.Sprintf("postgres://%s@/%s?%s", User, database, q.Encode())
}

// TCP returns the DSN of a database over TCP, with a password.
func (p *process) TCP(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", url.UserPassword(User, Password), p.Port, database)
}

// Stop ends the program and removes its folder.
func (p *process) Stop() {
	if p.end != nil {
		p.end()
		<-p.ended
	}
	os.RemoveAll(p.folder)
}

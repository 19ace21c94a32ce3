package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrNoBouncer means that there is no pgbouncer on this machine.
var ErrNoBouncer = errors.New("pgtest: there is no pgbouncer here (in PATH or /usr/sbin)")

// Bouncer is a running pgbouncer, which lends a connection to the server for one
// transaction.
type Bouncer struct{ process }

// Bouncer starts a pgbouncer in front of s, in transaction mode. Settings
// ("name = value") change its configuration. The caller must call Stop.
func (s *Server) Bouncer(settings ...string) (*Bouncer, error) {
	program := ""
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		return nil, ErrNoBouncer
	}
	b := &Bouncer{}
	var err error
	if b.folder, err = os.MkdirTemp("", "goclaw-pgb"); err != nil {
		return nil, err
	}
	if err := b.start(s, program, settings); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

func (b *Bouncer) start(s *Server, program string, settings []string) error {
	uid, gid, err := owner() // pgbouncer refuses to run as root, too
	if err != nil {
		return err
	}
	if b.Port, err = freePort(); err != nil {
		return err
	}
	users, config, logs := filepath.Join(b.folder, "users"), filepath.Join(b.folder, "pgbouncer.ini"), filepath.Join(b.folder, "log")
	lines := append([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d user=%s", s.folder, s.Port, User),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprint("listen_port = ", b.Port),
		"unix_socket_dir =",
		"auth_type = scram-sha-256",
		"auth_file = " + users,
		"pool_mode = transaction",
		"max_client_conn = 500",
	}, settings...)
	for path, text := range map[string]string{
		users:  fmt.Sprintf("%q %q\n", User, Password),
		config: strings.Join(lines, "\n") + "\n",
		logs:   "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if uid != 0 {
		for _, path := range []string{b.folder, users, config, logs} {
			if err := os.Chown(path, uid, gid); err != nil {
				return err
			}
		}
	}
	out, err := os.OpenFile(logs, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(program, config)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.folder, out, out
	as(cmd, uid, gid)
	if b.end, b.ended, err = run(cmd); err != nil {
		return err
	}
	return b.ready(logs)
}

// ready waits until pgbouncer takes connections.
func (b *Bouncer) ready(logs string) error {
	for begin := time.Now(); time.Since(begin) < 60*time.Second; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(b.Port))); err == nil {
			return c.Close()
		}
		select {
		case err := <-b.ended:
			out, _ := os.ReadFile(logs)
			return fmt.Errorf("pgbouncer has ended: %v: %s", err, out)
		default:
		}
	}
	return errors.New("pgbouncer does not answer")
}

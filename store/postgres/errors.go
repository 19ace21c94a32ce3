package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/session"
)

// Codes of PostgreSQL.
const (
	uniqueViolation  = "23505"
	noPrivilege      = "42501"
	wrongPassword    = "28P01"
	notAuthorised    = "28000"
	noDatabase       = "3D000"
	readOnlyServer   = "25006"
	diskFull         = "53100"
	tooManyClients   = "53300"
	adminShutdown    = "57P01"
	idleTimeout      = "57P05"
	inRecovery       = "40001" // on a standby: what a query reads was removed meanwhile
	crashShutdown    = "57P02"
	cannotConnectNow = "57P03"
	badProtocol      = "08P01"
)

// code returns the code of an error of the server, "" if it is another.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// lost reports whether err means that the connection was lost, or that there is
// none for now.
func lost(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	switch c := code(err); {
	case c == adminShutdown, c == crashShutdown, c == cannotConnectNow, c == idleTimeout, c == inRecovery, c == tooManyClients, strings.HasPrefix(c, "08"):
		return true
	case c == readOnlyServer: // the primary has become a standby: another is the primary
		return true
	case behind(err):
		return true
	case c != "":
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// standby reports whether err means that no host could be connected to that takes
// writes, and one that does not take them answered.
func standby(err error) bool {
	return errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection)
}

// readOnly reports whether err means that the server takes no writes.
func readOnly(err error) bool { return code(err) == readOnlyServer || standby(err) }

// failing reports whether err means that no host takes writes now, and that one
// may soon: it is a standby, or is starting.
func failing(err error) bool {
	return standby(err) || code(err) == cannotConnectNow || code(err) == noDatabase && behind(err)
}

// behind reports whether err means that a host does not know the database or the
// user while another host is lost: it may be a standby that has received, but not
// yet carried out, what created them.
func behind(err error) bool {
	var c *pgconn.ConnectError
	switch code(err) {
	case noDatabase, notAuthorised, wrongPassword:
		return errors.As(err, &c) && several(c.Config) && slices.ContainsFunc(byHost(c), lost)
	}
	return false
}

// byHost returns the errors of the hosts that were tried.
func byHost(c *pgconn.ConnectError) []error {
	err := c.Unwrap()
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// unknown reports whether err means that the connection was lost when a statement
// may have been on its way: it may have been carried out.
func unknown(err error) bool {
	var connect *pgconn.ConnectError
	return lost(err) && !readOnly(err) && !errors.As(err, &connect)
}

// wrap returns an error of the database as one line that says which it is.
func (db *database) wrap(err error) error {
	var known *Error
	if err == nil || err == context.DeadlineExceeded || errors.As(err, &known) || errors.Is(err, session.ErrStale) || code(err) == "" && !lost(err) {
		return err
	}
	return &Error{Place: db.place, Err: err}
}

// Error is an error of a database. Its text is one line without a password.
type Error struct {
	Place string // host and database
	Err   error
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether the disk of the server is full.
func (e *Error) Is(target error) bool { return target == session.ErrFull && code(e.Err) == diskFull }

func (e *Error) Error() string {
	return "postgres: " + e.Place + ": " + strings.Join(strings.Fields(reason(e.Err)), " ")
}

// reason returns what to say of err.
func reason(err error) string {
	var c *pgconn.ConnectError
	isConnect := errors.As(err, &c)
	if isConnect && several(c.Config) {
		return "no host can be used: " + strings.Join(hostByHost(c), "; ")
	}
	if standby(err) {
		return standbyReason
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		if why := unsecured(err); why != "" {
			return "cannot connect: " + why
		}
		if isConnect {
			return "cannot connect: " + network(err)
		}
		if lost(err) {
			return "the connection was lost: " + network(err)
		}
		return err.Error()
	}
	switch e.Code {
	case wrongPassword:
		return "the password is wrong (or the user does not exist)"
	case notAuthorised:
		return keptOut(e.Message)
	case noDatabase:
		return "there is no such database: create it (createdb), or correct the name"
	case noPrivilege:
		return e.Message + ": the user needs the right to create tables once (GRANT CREATE ON SCHEMA), and to read and write them"
	case readOnlyServer:
		return standbyReason
	case diskFull:
		return "the disk of the server is full: nothing was written"
	case tooManyClients:
		return "the server has no free connection: " + e.Message
	case badProtocol:
		// pgbouncer's words.
		if _, name, ok := strings.Cut(e.Message, "unsupported startup parameter: "); ok {
			return fmt.Sprintf("the pooler does not take the parameter %s: take it out of the DSN, and set it for the user (ALTER ROLE ... SET %[1]s = ...)", name)
		}
	}
	return e.Message + " (" + e.Code + ")"
}

const standbyReason = "the server is read-only (a standby?): nothing was written"

// hostByHost says of each host why it could not be used.
func hostByHost(c *pgconn.ConnectError) (out []string) {
	for _, err := range byHost(c) {
		at, _, _ := strings.Cut(err.Error(), " (") // the address comes first
		why := network(err)
		var e *pgconn.PgError
		switch {
		case unsecured(err) != "":
			why = unsecured(err)
		case standby(err):
			why = "read-only (a standby?)"
		case errors.As(err, &e):
			why = reason(e)
		}
		if says := at + ": " + why; !slices.Contains(out, says) {
			out = append(out, says)
		}
	}
	return out
}

// several reports whether a configuration has several hosts.
func several(c *pgconn.Config) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

// network returns the deepest error that says what happened.
func network(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && !op.Timeout() {
		return op.Err.Error()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "the host " + dns.Name + " is not known"
	}
	if errors.Is(err, context.DeadlineExceeded) || op != nil {
		return "no answer"
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// placeOf names the servers and the database of a configuration.
func placeOf(c *pgconn.Config) string {
	hosts := []string{}
	seen := map[string]bool{}
	add := func(host string, port uint16) {
		at := net.JoinHostPort(host, fmt.Sprint(port))
		if strings.HasPrefix(host, "/") {
			at = fmt.Sprintf("%s:%d", host, port)
		}
		if !seen[at] {
			seen[at] = true
			hosts = append(hosts, at)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return strings.Join(hosts, ",") + "/" + c.Database
}

// unparsed says why a DSN cannot be used, without showing it.
func unparsed(dsn string, err error) error {
	why := err.Error()
	if _, after, ok := strings.Cut(why, "`: "); ok { // pgx begins with the DSN
		why = after
	}
	if inner := errors.Unwrap(err); inner != nil {
		why = inner.Error()
		var u *url.Error
		if errors.As(err, &u) { // it begins with the URL
			why = u.Err.Error()
		}
	}
	for _, part := range secretsIn(dsn) {
		why = strings.ReplaceAll(why, part, "***")
	}
	return fmt.Errorf("postgres: session.path is not a DSN that can be used (postgres://user@host/database): %s", strings.Join(strings.Fields(why), " "))
}

// secretsIn returns what may be a password in a DSN that cannot be parsed.
func secretsIn(dsn string) (parts []string) {
	if _, rest, ok := strings.Cut(dsn, "://"); ok {
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			if _, pw, ok := strings.Cut(rest[:i], ":"); ok && pw != "" {
				parts = append(parts, pw)
			}
		}
	}
	for rest := dsn; ; {
		_, after, ok := strings.Cut(rest, "password")
		if !ok {
			return parts
		}
		rest = after
		if pw := strings.FieldsFunc(strings.TrimLeft(after, " ='"), func(r rune) bool { return strings.ContainsRune(" '&", r) }); len(pw) > 0 {
			parts = append(parts, pw[0])
		}
	}
}

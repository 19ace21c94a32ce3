package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// IsDSN reports whether path is the address of a PostgreSQL database.
func IsDSN(path string) bool {
	return strings.HasPrefix(path, "postgres://") || strings.HasPrefix(path, "postgresql://")
}

// LikeDSN reports whether path looks like a DSN and not like a file: an address of
// any kind, or words such as host=... dbname=...
func LikeDSN(path string) bool { return strings.Contains(path, "://") || dsnWord.MatchString(path) }

var dsnWord = regexp.MustCompile(`(?i)^\s*(host|hostaddr|port|dbname|user|password|passfile|service|ssl[a-z]+)\s*=`)

// Place is Path as it may be shown: without a password.
func (s Session) Place() string {
	if s.Store == "postgres" || IsDSN(s.Path) {
		return WithoutPassword(s.Path)
	}
	return s.Path
}

// words of a DSN that is not an address: password=... or password='...'.
var passwordWord = regexp.MustCompile(`(?i)((?:ssl)?password)\s*=\s*(?:'(?:[^'\\]|\\.)*'|\S+)`)

// WithoutPassword returns a DSN without its password. Of an address that cannot
// be parsed it returns the beginning only.
func WithoutPassword(dsn string) string {
	if !IsDSN(dsn) {
		return passwordWord.ReplaceAllString(dsn, "$1=***")
	}
	u, err := url.Parse(dsn)
	if err != nil || u.Opaque != "" {
		scheme, _, _ := strings.Cut(dsn, "://")
		return scheme + "://..."
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "password") {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Digest names a database in eight hexadecimal digits: the hosts in any order, the
// database, the user and the search path. The password and other parameters do not
// matter.
func Digest(dsn string) string {
	said := url.Values{}
	if u, err := url.Parse(dsn); IsDSN(dsn) && err == nil {
		said = u.Query()
		hosts := strings.Split(u.Host, ",")
		slices.Sort(hosts)
		said["host"] = append(hosts, said["host"]...)
		said.Add("dbname", strings.TrimPrefix(u.Path, "/"))
		said.Add("user", u.User.Username())
	} else {
		for _, m := range dsnWords.FindAllStringSubmatch(dsn, -1) {
			said.Add(m[1], strings.Trim(m[2], "'"))
		}
	}
	h := sha256.New()
	for _, name := range []string{"host", "hostaddr", "port", "dbname", "user", "search_path", "options", "service"} {
		fmt.Fprintf(h, "%s %q\n", name, said[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:8]
}

var dsnWords = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)`)

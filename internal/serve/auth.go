package serve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"goclaw/internal/wholefile"
)

// Token returns the token in the file at path, and makes it if there is none.
// Only its owner can read it.
func Token(path string) (string, error) {
	data, err := wholefile.Read(path, wholefile.Small)
	if token := strings.TrimSpace(string(data)); err == nil && len(token) >= 32 {
		if fi, err := os.Stat(path); err == nil && fi.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			return "", fmt.Errorf("others can read the token in %s: remove the file, and a new one is made", path)
		}
		return token, nil
	}
	if err == nil {
		return "", fmt.Errorf("%s holds no token: remove it, and a new one is made", path)
	}
	if !os.IsNotExist(err) {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	token := random()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) { // another server made it just now
		return Token(path)
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(token + "\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return token, err
}

func random() string {
	var b [32]byte
	rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// digest returns a short name for text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// gate lets those in who have the token, or the cookie that a login link gave
// them.
type gate struct {
	token string
	hosts []string // names that this server is called by, without ports
	now   func() time.Time

	mu    sync.Mutex
	links map[string]time.Time // codes of login links, and until when they work
}

const (
	cookieName = "goclaw"
	cookieLife = 30 * 24 * time.Hour
	linkLife   = 10 * time.Minute
	maxLinks   = 100
)

// link returns the code of a new login link, which works once.
func (g *gate) link() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.links == nil {
		g.links = map[string]time.Time{}
	}
	if len(g.links) >= maxLinks { // the oldest goes
		first := ""
		for code, until := range g.links {
			if first == "" || until.Before(g.links[first]) {
				first = code
			}
		}
		delete(g.links, first)
	}
	code := random()
	g.links[code] = g.now().Add(linkLife)
	return code
}

// redeem reports whether code is that of a login link which was not used yet.
func (g *gate) redeem(code string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, ok := g.links[code]
	delete(g.links, code)
	return ok && g.now().Before(until)
}

// cookie returns the cookie of someone who is logged in. It follows from the
// token, so that it outlives the server.
func (g *gate) cookie() *http.Cookie {
	until := strconv.FormatInt(g.now().Add(cookieLife).Unix(), 10)
	return &http.Cookie{Name: cookieName, Value: until + "." + g.sign(until), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(cookieLife.Seconds())}
}

func (g *gate) sign(until string) string {
	h := hmac.New(sha256.New, []byte(g.token))
	h.Write([]byte("page until " + until))
	return hex.EncodeToString(h.Sum(nil))
}

// knows reports whether a request comes from someone who may do everything.
func (g *gate) knows(r *http.Request) bool {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return same(token, g.token)
	}
	c, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	until, sum, _ := strings.Cut(c.Value, ".")
	at, err := strconv.ParseInt(until, 10, 64)
	return err == nil && g.now().Before(time.Unix(at, 0)) && same(sum, g.sign(until))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// foreign says why a request does not come from a page of ours or from a program
// that means this server, or returns "". A name that someone else's DNS points
// here is not ours.
func (g *gate) foreign(r *http.Request) string {
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	name = strings.Trim(strings.ToLower(name), "[]")
	if !slices.Contains(g.hosts, name) {
		return fmt.Sprintf("this server is not called %q: start it with --host NAME to add a name", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return fmt.Sprintf("requests from pages of %q are not answered", origin)
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return "requests from pages of other sites are not answered"
	}
	return ""
}

// Package wire is what the providers share between their API and the network: a
// client that watches for silence and keeps error bodies whole, event streams,
// the errors that no API words, and the few rules by which foreign bytes become
// our words.
package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"goclaw/internal/secrets"
	"goclaw/llm"
)

// defaultIdle is how long a server may be silent. Models that think before
// they speak keep the line alive with pings; local ones may load for minutes.
const defaultIdle = 5 * time.Minute

// maxErrorBody bounds how much of an error body is read.
const maxErrorBody = 1 << 20

// Client sends requests. It returns a *StatusError instead of a response
// with an error status or one that is not an event stream, so that the whole
// body is there to be classified. It never follows a redirect to another host,
// which would be given the key.
type Client struct {
	http *http.Client
	idle time.Duration
}

// NewClient wraps hc, or a new client if hc is nil. Idle is the longest
// silence allowed; 0 is defaultIdle.
func NewClient(hc *http.Client, idle time.Duration) *Client {
	if hc == nil {
		hc = &http.Client{}
	}
	if idle == 0 {
		idle = defaultIdle
	}
	own := *hc
	if own.CheckRedirect == nil {
		own.CheckRedirect = sameHost
	}
	return &Client{http: &own, idle: idle}
}

func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if from := via[0].URL; req.URL.Scheme != from.Scheme || req.URL.Host != from.Host {
		return fmt.Errorf("redirect from %s to %s refused", from.Host, req.URL.Host)
	}
	return nil
}

// StatusError is a response that is not the stream that was asked for.
type StatusError struct {
	Status int
	Header http.Header
	Body   []byte
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d", e.Status) }

// idleError says that not a byte came for the time given.
type idleError struct{ After time.Duration }

func (e *idleError) Error() string { return fmt.Sprintf("nothing came for %s", e.After) }

// Do sends req. The body of the response must be closed.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{cancel: cancel, ctx: ctx, idle: c.idle}
	w.timer = time.AfterFunc(c.idle, func() { cancel(&idleError{After: c.idle}) })
	res, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		return nil, w.end(err)
	}
	w.timer.Stop()
	w.body = res.Body
	res.Body = w
	if res.StatusCode < 400 && isStream(res.Header) {
		return res, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	res.Body.Close()
	if err != nil && len(body) == 0 {
		return nil, err
	}
	return nil, &StatusError{Status: res.StatusCode, Header: res.Header, Body: body}
}

// isStream is false for what is surely something else: an error that a gateway
// sends with 200, or the home page of a host that is no API. Servers that
// declare nothing are believed.
func isStream(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t != "application/json" && t != "text/html"
}

// watch is a body that ends the request when no byte comes for too long. The
// clock runs only while somebody waits in Read: a slow reader is not the
// server's silence.
type watch struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	once   sync.Once
}

func (w *watch) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	n, err := w.body.Read(p)
	w.timer.Stop()
	if err != nil && err != io.EOF {
		err = w.end(err)
	}
	return n, err
}

// end stops the clock and returns the silence that caused err, or err.
func (w *watch) end(err error) error {
	w.timer.Stop()
	var idle *idleError
	if errors.As(context.Cause(w.ctx), &idle) {
		err = idle
	}
	w.cancel(nil)
	return err
}

func (w *watch) Close() error {
	err := w.body.Close()
	w.once.Do(func() { w.end(nil) })
	return err
}

// Network describes err, which came instead of a response or in the middle of
// one, in a few words for people. Again is false where a second try would
// surely fail in the same way.
func Network(err error) (reason string, again bool) {
	var (
		idle   *idleError
		dns    *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		root   x509.UnknownAuthorityError
		op     *net.OpError
		u      *url.Error
	)
	switch {
	case errors.As(err, &idle):
		return idle.Error(), false
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return "no such host " + dns.Name, false
		}
		return "name lookup of " + dns.Name + " failed: " + dns.Err, true
	case errors.As(err, &cert), errors.As(err, &root):
		return "its certificate is not trusted: " + Line(err.Error()), false
	case errors.As(err, &record):
		return "it does not speak TLS", false
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection was closed", true
	case errors.As(err, &op):
		return Line(op.Err.Error()), true
	case errors.As(err, &u):
		var ne net.Error
		if errors.As(u.Err, &ne) {
			return Line(u.Err.Error()), true
		}
		// Neither the net nor the tls package said it: a URL that cannot be
		// asked, or a redirect that was refused.
		return Line(u.Err.Error()), false
	}
	return Line(err.Error()), true
}

// notJSON reports whether err says that the answer of the server is not JSON.
func notJSON(err error) bool {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &typ)
}

// Clean makes foreign text valid UTF-8.
func Clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Line makes one line of s, short enough to be shown, without its secrets.
func Line(s string) string {
	s, _ = secrets.Redact(strings.Join(strings.Fields(Clean(s)), " "))
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}

// Args makes a JSON object of what a model wrote as arguments, without spaces
// between its parts. What is no object becomes one as llm.Object says.
func Args(text string) json.RawMessage {
	args := llm.Object(json.RawMessage(Clean(text)))
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return args
	}
	return b.Bytes()
}

// Sink hands deltas on and remembers that it did.
type Sink struct {
	yield   func(llm.Delta, error) bool
	Sent    bool // something was yielded: the call cannot be repeated
	Stopped bool // the reader has left
	Full    bool // the answer reached its limit: what comes is not kept
	kept    int
}

// MaxAnswer is how many bytes of an answer are kept: text, thinking, and the
// arguments of calls. No model says so much in one answer; a server that does
// would fill the memory. As a line of a log, where a byte may need six, it is
// below the limit of a record.
const MaxAnswer = 4 << 20

// blockSize is what a block counts besides its text, so that their number has a
// limit too.
const blockSize = 1 << 10

// Keep returns what is kept of text: all of it, or its beginning if the answer
// reaches its limit.
func (s *Sink) Keep(text string) string {
	if left := MaxAnswer - s.kept; len(text) > left {
		text, s.Full = strings.ToValidUTF8(text[:max(left, 0)], ""), true
	}
	s.kept += len(text)
	return text
}

// KeepBlock counts a block or a call that begins.
func (s *Sink) KeepBlock() {
	s.kept += blockSize
	s.Full = s.Full || s.kept > MaxAnswer
}

// NewSink returns a sink for the yield function of an iterator.
func NewSink(yield func(llm.Delta, error) bool) *Sink { return &Sink{yield: yield} }

// Put yields d. It reports false when the reader has left.
func (s *Sink) Put(d llm.Delta) bool {
	if s.Stopped {
		return false
	}
	if d.Begun == nil { // nothing of it was shown yet
		s.Sent = true
	}
	if !s.yield(d, nil) {
		s.Stopped = true
	}
	return !s.Stopped
}

// Retry tells the reader that the call is repeated. It reports false when the
// reader has left.
func (s *Sink) Retry(r llm.Retry) bool {
	s.Stopped = s.Stopped || !s.yield(llm.Delta{Retry: &r}, nil)
	return !s.Stopped
}

// End yields err, if there is one, to a reader that is still there.
func (s *Sink) End(err error) {
	if err != nil && !s.Stopped {
		s.yield(llm.Delta{}, err)
	}
}

// Int reads digits that a pattern has matched.
func Int(digits string) int {
	n := 0
	for _, d := range digits {
		if n > 1<<40 {
			return n
		}
		n = n*10 + int(d-'0')
	}
	return n
}

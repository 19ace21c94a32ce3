// Package fetch is the tool that reads a page of the web: HTML as Markdown,
// other text as it is.
//
// It speaks HTTP and HTTPS only, and only with servers on the internet: what is
// private, such as this machine and its network, is refused where the connection
// is made, unless the user has allowed the host. Redirections to another host are
// not followed: permission is given by host. Time and sizes are limited.
package fetch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/internal/text"
	"goclaw/llm"
	"goclaw/tool"
)

// Options of a Tool. Every field may be left out.
type Options struct {
	UserAgent string                                // who asks; "": goclaw
	Private   []string                              // hosts whose addresses may be private: a name, *.name, or * for all
	Proxy     func(*http.Request) (*url.URL, error) // nil: none
	Resolver  *net.Resolver                         // nil: that of the system
	Timeout   time.Duration                         // for all of it; 0: 30 s
	MaxBytes  int64                                 // of a page, after decompression; 0: 4 MiB
}

const (
	redirects  = 5
	defaultMax = 20_000 // bytes of text in a result
	largestMax = 50_000
	pages      = 4 // that are remembered, to read on in
)

// Tool is the tool fetch. It is safe for concurrent use.
type Tool struct {
	o      Options
	client *http.Client

	mu   sync.Mutex
	read []page // the last ones, the latest last
}

// page is what was fetched from an address.
type page struct {
	url  string // as it was asked for
	head string // where it came from and what it is
	text string
}

// New returns the tool, to be added to a tool.Set.
func New(o Options) *Tool {
	if o.UserAgent == "" {
		o.UserAgent = "goclaw"
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 4 << 20
	}
	t := &Tool{o: o}
	t.client = &http.Client{Transport: roundTripper(t.roundTrip), CheckRedirect: follow}
	return t
}

// Spec implements tool.Tool.
func (*Tool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "fetch",
		Description: "Read a web page as Markdown, or other text. The user is asked first. Do not send secrets.",
		Schema: []byte(fmt.Sprintf(`{
  "type": "object",
  "properties": {
    "url": {"type": "string", "minLength": 1},
    "offset": {"type": "integer", "minimum": 0},
    "max": {"type": "integer", "minimum": 1, "maximum": %d}
  },
  "required": ["url"],
  "additionalProperties": false
}`, largestMax)),
	}
}

// Mutates implements tool.Mutator: nothing here is changed.
func (*Tool) Mutates(llm.ToolCall) bool { return false }

type arguments struct {
	URL    string
	Offset float64 // JSON Schema takes 3e2 for an integer
	Max    float64
}

// Request implements tool.Guarded. Reading on in a page needs no permission: it
// was fetched before.
func (t *Tool) Request(call llm.ToolCall) (r tool.Request, needed bool) {
	var a arguments
	if json.Unmarshal(call.Args, &a) != nil {
		return r, false
	}
	u, err := parse(a.URL)
	if err != nil {
		return r, false
	}
	if _, ok := t.known(a); ok {
		return r, false
	}
	host := hostOf(u)
	return tool.Request{Tool: call.Name, URL: u.String(), Host: host, Rule: tool.Rule{Tool: call.Name, Host: host}}, true
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	var a arguments
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return llm.ToolResult{}, err
	}
	u, err := parse(a.URL)
	if err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	p, ok := t.known(a)
	if !ok {
		if p, err = t.get(ctx, a.URL, u); err != nil {
			return llm.Failed(call, err.Error()), ctx.Err()
		}
		t.remember(p)
	}
	return llm.Result(call, p.show(int(a.Offset), int(a.Max))), nil
}

// parse reads an address that can be fetched.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not an address: %w", text.Head(address, 200), errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("only addresses that begin with http:// or https:// can be fetched, not %q", text.Head(address, 200))
	case u.Hostname() == "":
		return nil, fmt.Errorf("%q has no host", text.Head(address, 200))
	case u.User != nil:
		return nil, errors.New("an address with a user name or a password in it is not fetched: leave them out")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// hostOf returns the host of an address, as rules name it: with its port, if
// that is not the usual one.
func hostOf(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" && p != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host += ":" + p
	}
	return host
}

// sameHost reports whether permission for one address is permission for another.
func sameHost(from, to *url.URL) bool {
	bare := func(u *url.URL) string { return strings.TrimPrefix(hostOf(u), "www.") }
	return bare(from) == bare(to) && (to.Scheme == "https" || to.Scheme == from.Scheme) && to.User == nil
}

// follow is the policy for redirections.
func follow(req *http.Request, via []*http.Request) error {
	if !sameHost(via[0].URL, req.URL) {
		return http.ErrUseLastResponse
	}
	if len(via) > redirects {
		return fmt.Errorf("more than %d redirections", redirects)
	}
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip sends one request, through the proxy if there is one for it.
func (t *Tool) roundTrip(req *http.Request) (*http.Response, error) {
	transport := &http.Transport{
		DialContext: t.dial, ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: t.o.Timeout, MaxResponseHeaderBytes: 256 << 10,
	}
	if t.o.Proxy != nil {
		proxy, err := t.o.Proxy(req)
		if err != nil {
			return nil, err
		}
		if proxy != nil {
			if err := t.checkBehindProxy(req.Context(), req.URL.Hostname()); err != nil {
				return nil, err
			}
			transport.Proxy, transport.DialContext = http.ProxyURL(proxy), (&net.Dialer{Timeout: t.o.Timeout}).DialContext
		}
	}
	return transport.RoundTrip(req)
}

// get fetches a page.
func (t *Tool) get(ctx context.Context, address string, u *url.URL) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return page{}, err
	}
	req.Header.Set("User-Agent", t.o.UserAgent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1")
	resp, err := t.client.Do(req)
	if err != nil {
		return page{}, t.problem(u, err)
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		if next, err := resp.Location(); err == nil {
			to = next.String()
		}
		return page{}, fmt.Errorf("%s redirects to another host: fetch %s if that is what you want", u, text.Head(to, 1000))
	}
	what, body, err := t.content(resp)
	if err != nil {
		return page{}, err
	}
	if resp.StatusCode/100 != 2 {
		return page{}, fmt.Errorf("%s answers %s\n%s", u, resp.Status, text.Head(body, 2000))
	}
	return page{url: address, head: fmt.Sprintf("[%s: %s]", resp.Request.URL, what), text: body}, nil
}

// problem says in one line why there is no answer from u.
func (t *Tool) problem(u *url.URL, err error) error {
	var private *privateError
	var of *url.Error
	switch {
	case errors.As(err, &private):
		return private
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not answer within %s", u, t.o.Timeout)
	case errors.As(err, &of):
		err = of.Err
	}
	return fmt.Errorf("%s cannot be fetched: %w", u, err)
}

// readAll reads a body up to the limits; note says what was cut.
func (t *Tool) readAll(r io.Reader) (b []byte, note string, err error) {
	b, err = io.ReadAll(io.LimitReader(r, t.o.MaxBytes+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded) && len(b) > 0:
		return b, fmt.Sprintf(", cut: the rest did not come within %s", t.o.Timeout), nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, "", fmt.Errorf("nothing came within %s", t.o.Timeout)
	case err != nil:
		return nil, "", fmt.Errorf("the page broke off: %w", err)
	case int64(len(b)) > t.o.MaxBytes:
		return b[:t.o.MaxBytes], fmt.Sprintf(", cut after %s", text.Bytes(t.o.MaxBytes)), nil
	}
	return b, "", nil
}

// known returns the page that is read on in.
func (t *Tool) known(a arguments) (page, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.read, func(p page) bool { return p.url == a.URL })
	if a.Offset <= 0 || i < 0 {
		return page{}, false
	}
	return t.read[i], true
}

func (t *Tool) remember(p page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = append(slices.DeleteFunc(t.read, func(q page) bool { return q.url == p.url }), p)
	t.read = t.read[max(0, len(t.read)-pages):]
}

// show returns the part of a page that begins at offset, at most most bytes of
// it, and says where it goes on.
func (p page) show(offset, most int) string {
	if most <= 0 {
		most = defaultMax
	}
	if offset >= len(p.text) && offset > 0 {
		return fmt.Sprintf("%s\nthe text has %d bytes: there is nothing at %d", p.head, len(p.text), offset)
	}
	rest := strings.ToValidUTF8(p.text[offset:], "") // the rest of a character before it
	part := text.Head(rest, most)
	if len(part) < len(rest) {
		part += fmt.Sprintf("\n[%d of %d bytes; offset %d reads on]", len(part), len(p.text), len(p.text)-len(rest)+len(part))
	}
	return p.head + "\n" + part
}

package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"goclaw/session"
)

// Several servers with one store act as one: whoever runs a turn has the
// session's lock, and the lock says at which address. What only that server can
// do is passed on to it, and what it says between two records is taken from it.

// Who is the name under which a server at address has locks.
func Who(address string) string { return "goclaw serve at " + address }

// forwarded marks a request that another server has passed on.
const forwarded = "Goclaw-Forwarded"

// peers are the other servers.
type peers struct {
	st    session.Store
	own   string // this server's address; "": there are no others
	token string
}

// running returns the address of the server that runs a turn in a session; "" if
// it is this one, if none does, or if it is no server.
func (p *peers) running(ctx context.Context, id session.ID) string {
	if p.own == "" {
		return ""
	}
	release, err := p.st.Lock(ctx, string(id), Who(p.own))
	if err == nil {
		release()
		return ""
	}
	var held *session.HeldError
	if !errors.As(err, &held) {
		return ""
	}
	address, ok := strings.CutPrefix(held.Who, Who(""))
	if !ok || address == p.own {
		return ""
	}
	return address
}

// forward passes a request on to the server that runs a turn in a session, and
// reports whether there is one.
func (p *peers) forward(w http.ResponseWriter, r *http.Request, id session.ID) bool {
	if r.Header.Get(forwarded) != "" {
		return false
	}
	address := p.running(r.Context(), id)
	to, err := url.Parse(address)
	if address == "" || err != nil {
		return false
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(to)
			for _, name := range []string{"Cookie", "Origin", "Referer"} {
				out.Out.Header.Del(name)
			}
			out.Out.Header.Set("Authorization", "Bearer "+p.token)
			out.Out.Header.Set(forwarded, "1")
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			wrong(http.StatusBadGateway, "the server that runs this turn does not answer: %s", err).write(w)
		},
	}
	proxy.ServeHTTP(w, r)
	return true
}

// relay takes what the server that runs a turn in the stream's session says
// between two records, until the turn ends.
func (p *peers) relay(ctx context.Context, s *stream, after session.Seq) {
	address := p.running(ctx, s.id)
	if address == "" {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/v1/sessions/%s/events?after=%d", address, url.PathEscape(string(s.id)), after), nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set(forwarded, "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return // the records come all the same
	}
	defer resp.Body.Close()
	for ev := range readEvents(resp.Body) {
		switch kind := ev.data["type"]; kind {
		case "recorded", "tool": // the log says so
		case "delta", "thinking":
			text, _ := ev.data["text"].(string)
			if at, err := parsePosition(ev.id); err == nil {
				s.sayAt(ctx, at, piece{kind == "thinking", text})
			}
		default:
			s.pass(ev.data)
			if kind == "done" || kind == "error" {
				return
			}
		}
	}
}

// sayAt takes a piece of an answer that another server has told, which ends at a
// place. It waits for the records before it; one that the log has by now, or
// that does not follow the pieces before, is dropped.
func (s *stream) sayAt(ctx context.Context, end position, p piece) {
	for {
		s.mu.Lock()
		size, last, changed := 0, s.last, s.changed
		for _, x := range s.pieces {
			size += len(x.text)
		}
		s.mu.Unlock()
		switch {
		case last > end.Seq, last == end.Seq && size+len(p.text) != end.Offset:
			return
		case last == end.Seq:
			s.say(p)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// readEvents yields the events of a stream.
func readEvents(r io.Reader) func(yield func(event) bool) {
	return func(yield func(event) bool) {
		in := bufio.NewReader(r)
		var ev event
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			switch line = strings.TrimRight(line, "\n"); {
			case line == "":
				if ev.data != nil && !yield(ev) {
					return
				}
				ev = event{}
			case strings.HasPrefix(line, "id: "):
				ev.id = line[len("id: "):]
			case strings.HasPrefix(line, "data: "):
				_ = json.Unmarshal([]byte(line[len("data: "):]), &ev.data)
			}
		}
	}
}

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"goclaw/session"
)

// Several servers with one store act as one: whoever runs a turn has the
// session's lock, and the lock says at which address. What only that server can
// do is passed on to it, and what it says between two records is taken from it.

// Who is the name under which a server at address has locks.
func Who(address string) string { return "goclaw serve at " + address }

// looking is the name under which a server has a lock for a moment, to see
// whether it is free. Nothing is passed on to it then.
const looking = "goclaw serve, for a moment"

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
	address, _, err := p.holder(ctx, id)
	if p.own == "" || err != nil {
		return ""
	}
	return address
}

// holder reports whether someone else has the lock of a session, and the address
// of it if it is a server. One that only looks does not count: it is gone soon.
func (p *peers) holder(ctx context.Context, id session.ID) (address string, held bool, err error) {
	var by *session.HeldError
	for tries := 0; ; tries++ {
		release, err := p.st.Lock(ctx, string(id), looking)
		if err == nil {
			release()
			return "", false, nil
		}
		if !errors.As(err, &by) {
			return "", false, err
		}
		if by.Who != looking || tries == 50 {
			break
		}
		select {
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	address, _ = strings.CutPrefix(by.Who, Who(""))
	if address == by.Who || address == p.own {
		address = ""
	}
	return address, true, nil
}

// between is what servers reach each other through. They answer soon, or begin
// to stream.
var between = &http.Transport{
	DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	ResponseHeaderTimeout: 15 * time.Second,
	IdleConnTimeout:       time.Minute,
	MaxIdleConnsPerHost:   16,
}

// forward passes a request on to the server that runs a turn in a session, and
// reports whether there is one. If that one cannot be reached, what is only read
// is left to this server, which has the log.
func (p *peers) forward(w http.ResponseWriter, r *http.Request, id session.ID) bool {
	if r.Header.Get(forwarded) != "" {
		return false
	}
	address := p.running(r.Context(), id)
	to, err := url.Parse(address)
	if address == "" || err != nil {
		return false
	}
	// The other server may begin to answer before all of the request was written to
	// it, and then what is left of the body cannot be read any more, which would end
	// the answer.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		problemOf(err).write(w)
		return true
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answered := true
	proxy := &httputil.ReverseProxy{
		Transport: between,
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(to)
			for _, name := range []string{"Cookie", "Origin", "Referer"} {
				out.Out.Header.Del(name)
			}
			out.Out.Header.Set("Authorization", "Bearer "+p.token)
			out.Out.Header.Set(forwarded, "1")
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Method == http.MethodGet {
				answered = false
				return
			}
			wrong(http.StatusBadGateway, "the server that runs this turn does not answer: %s", err).write(w)
		},
	}
	proxy.ServeHTTP(w, r)
	return answered
}

// relay takes what other servers say in the stream's session between two
// records, whenever one of them runs a turn in it.
func (p *peers) relay(ctx context.Context, s *stream) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.poke:
		}
		p.hear(ctx, s)
	}
}

// hear takes what another server says, until its turn ends or is interrupted. If
// it is another program that runs a turn, only its end is told.
func (p *peers) hear(ctx context.Context, s *stream) {
	for met := false; ctx.Err() == nil && !s.here(); {
		address, held, err := p.holder(ctx, s.id)
		if err == nil && held && !met { // it may have begun before anyone followed
			met = true
			now, _ := s.now()
			ends, err := endsIn(ctx, p.st, s.id, position{Seq: max(now.Seq-lookBehind, 0)}, now.Seq)
			if n := len(ends); err == nil && n > 0 && ends[n-1].data["type"] == "error" {
				s.expect()
			}
		}
		switch {
		case err == nil && !held:
			if s.unended() {
				s.forget()
				s.pass(endOf(ctx, s, p.st, 0))
			}
			return
		case err == nil && address != "" && p.listen(ctx, s, address):
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// unended reports whether a turn of another process has begun whose end was not
// told.
func (s *stream) unended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreign
}

// listen takes what the server at address says in the stream's session, and
// reports whether that was all to the end of a turn.
func (p *peers) listen(ctx context.Context, s *stream, address string) bool {
	end, _ := s.now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/v1/sessions/%s/events?after=%d", address, url.PathEscape(string(s.id)), end.Seq), nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set(forwarded, "1")
	resp, err := between.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false // the records come all the same
	}
	last := session.Seq(0)
	for ev := range readEvents(resp.Body) {
		at, err := parsePosition(ev.id)
		if err == nil {
			last = at.Seq
		}
		switch kind := ev.data["type"]; kind {
		case "recorded", "tool": // the log says so
		case "delta", "thinking":
			text, _ := ev.data["text"].(string)
			if err == nil {
				s.sayAt(ctx, at, piece{kind == "thinking", text})
			}
		case "done", "error":
			s.reach(ctx, last)
			s.pass(ev.data)
			return true
		default:
			s.pass(ev.data)
		}
	}
	return false
}

// reach waits until the stream has the record seq, which is about to come.
func (s *stream) reach(ctx context.Context, seq session.Seq) {
	for late := time.After(10 * time.Second); ; {
		s.mu.Lock()
		last, changed := s.last, s.changed
		s.mu.Unlock()
		if last >= seq {
			return
		}
		select {
		case <-changed:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// sayAt takes a piece of an answer that another server has told, which ends at a
// place. It waits for the records before it; what the log has by now is dropped.
func (s *stream) sayAt(ctx context.Context, end position, p piece) {
	s.reach(ctx, end.Seq)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun <= end.Seq {
		s.foreign = true
		s.extend(end.Offset, p)
		s.wake()
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

// Command serve measures goclaw serve from outside, with a store of many
// sessions: how large it is when idle, how long reads take while many clients
// follow sessions and turns run, and whether followers that do not read slow a
// turn. Server, model and clients share this machine; reads are timed in a process
// of their own, which does nothing else. It prints the limits next to the figures
// and exits with 1 if one does not hold.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/session"
	"goclaw/store/sqlite"
	"goclaw/store/storetest"
)

// Sizes, which flags make smaller for a quick look.
var (
	sessions  = flag.Int("sessions", 10_000, "in the store")
	followers = flag.Int("followers", 1000, "that read the events of as many sessions")
	turns     = flag.Int("turns", 50, "at the same time")
	rounds    = flag.Int("rounds", 4, "of turns")
	stuck     = flag.Int("stuck", 100, "followers that do not read")
	reader    = flag.Bool("reader", false, "be the process that times reads")
)

func main() {
	flag.Parse()
	if *reader {
		if err := read(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench/serve:", err)
			os.Exit(1)
		}
		return
	}
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/serve:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// figure is a line of the table. It must not be above most, if that is not 0.
type figure struct {
	what string
	got  float64
	unit string
	most float64
}

func (f figure) print() bool {
	limit, mark := "", ""
	if f.most != 0 {
		limit = fmt.Sprintf("%.4g %s", f.most, f.unit)
	}
	if f.most != 0 && f.got > f.most {
		mark = "  too much"
	}
	fmt.Printf("%-64s %12s %12s%s\n", f.what, fmt.Sprintf("%.2f %s", f.got, f.unit), limit, mark)
	return mark == ""
}

func run() (bool, error) {
	dir, err := os.MkdirTemp("", "bench-serve")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	ids, err := fill(dir, *sessions)
	if err != nil {
		return false, err
	}
	model := httptest.NewServer(http.HandlerFunc(answer))
	defer model.Close()
	s, err := start(dir, model.URL)
	if err != nil {
		return false, err
	}
	defer func() { s.cmd.Process.Kill(); s.cmd.Wait() }()
	fmt.Printf("%-64s %12s %12s\n", "", "measured", "limit")
	ok := true
	for _, step := range []func(*server, []session.ID) ([]figure, error){idle, load, slow} {
		figures, err := step(s, ids)
		if err != nil {
			return false, err
		}
		for _, f := range figures {
			ok = f.print() && ok
		}
	}
	return ok, nil
}

func fill(home string, n int) (ids []session.ID, err error) {
	st, err := sqlite.Open(filepath.Join(home, "sessions.db"))
	if err != nil {
		return nil, err
	}
	defer st.Close()
	for i := range n {
		var recs []session.Record
		for r := range storetest.Conversation(uint64(i+1), 6) {
			recs = append(recs, r)
		}
		id := recs[0].Body.(session.Header).ID
		if err := st.Append(context.Background(), id, recs...); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// server is goclaw serve.
type server struct {
	cmd              *exec.Cmd
	url, host, token string
	client           *http.Client
}

func start(home, model string) (*server, error) {
	bin := filepath.Join(home, "goclaw")
	build := exec.Command("go", "build", "-o", bin, "./cmd/goclaw")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "serve", "--addr", "127.0.0.1:0", "--json")
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=sk-test-0123456789"}
	cmd.Dir, cmd.Stderr = home, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var first struct{ URL, TokenFile string }
	if err == nil {
		err = json.Unmarshal(line, &first)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, fmt.Errorf("the first line is %q: %w", line, err)
	}
	token, err := os.ReadFile(first.TokenFile)
	s := &server{cmd: cmd, url: first.URL, host: strings.TrimPrefix(first.URL, "http://"), token: strings.TrimSpace(string(token))}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	return s, err
}

// do sends a request and returns the answer, which the caller closes.
func (s *server) do(method, path, body string) (*http.Response, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.client.Do(req)
	if err == nil && resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return resp, err
}

// turn says something in a session and returns how long the turn took.
func (s *server) turn(id session.ID, text string) (time.Duration, error) {
	begin := time.Now()
	resp, err := s.do("POST", "/v1/sessions/"+string(id)+"/turns", fmt.Sprintf(`{"text":%q}`, text))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(all), "event: done") {
		err = fmt.Errorf("a turn ended with %.300s", all[max(len(all)-300, 0):])
	}
	return time.Since(begin), err
}

// answer is the model: it speaks for a second, or says much at once.
func answer(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	pieces, pause, piece := 40, 25*time.Millisecond, "some words "
	if strings.Contains(string(raw), "say much") {
		pieces, pause, piece = 400, 0, strings.Repeat("many words ", 100)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ev := func(name, data string) {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		w.(http.Flusher).Flush()
	}
	ev("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
	ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range pieces {
		ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, piece))
		time.Sleep(pause)
	}
	ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
	ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`)
	ev("message_stop", `{"type":"message_stop"}`)
}

// idle measures the resident size after the start.
func idle(s *server, _ []session.ID) ([]figure, error) {
	if _, err := s.do("GET", "/v1/sessions", ""); err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Second)
	return []figure{{fmt.Sprintf("resident size, idle, %d sessions in the store", *sessions), s.resident(), "MB", 60}}, nil
}

// resident returns the resident size in MB; 0 where it is not known.
func (s *server) resident() (mb float64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") {
			fmt.Sscanf(strings.TrimPrefix(line, "VmRSS:"), "%f", &mb)
		}
	}
	return mb / 1024
}

// load measures reads while clients follow sessions and turns run.
func load(s *server, ids []session.ID) ([]figure, error) {
	r, err := s.startReads(ids)
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	quiet, err := r.end()
	if err != nil {
		return nil, err
	}
	for i := range *followers {
		resp, err := s.do("GET", "/v1/sessions/"+string(ids[(i+*turns)%len(ids)])+"/events", "")
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		go io.Copy(io.Discard, resp.Body)
		time.Sleep(6 * time.Millisecond) // within the rate
	}
	if r, err = s.startReads(ids); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	followed, err := r.end()
	if err != nil {
		return nil, err
	}
	if r, err = s.startReads(ids); err != nil {
		return nil, err
	}
	before := s.processor()
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var wait sync.WaitGroup
	for i := range *turns {
		wait.Go(func() {
			for range *rounds {
				d, err := s.turn(ids[i], "speak")
				mu.Lock()
				if took = append(took, d); err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	used := s.processor().since(before)
	busy, err := r.end()
	if err == nil {
		err = failed
	}
	with := fmt.Sprintf("%d followers", *followers)
	return []figure{
		{"p99 of a read, quiet", at(quiet, 99), "ms", 0},
		{"p99 of a read, " + with, at(followed, 99), "ms", 50},
		{fmt.Sprintf("p99 of a read, %s and %d turns", with, *turns), at(busy, 99), "ms", 50},
		{"median of a read then", at(busy, 50), "ms", 0},
		{"processor time of the server then, of each second", used.server, "s", 0},
		{"the same of the model and the clients", used.clients, "s", 0},
		{"the same of other programs on this machine", used.others, "s", 0},
		{"median of a turn whose model speaks for a second", at(took, 50), "ms", 0},
		{"resident size then", s.resident(), "MB", 0},
	}, err
}

// reads is the process that times reads.
type reads struct {
	cmd *exec.Cmd
	in  io.Closer
	out *json.Decoder
}

// what is read.
type task struct {
	URL, Token string
	IDs        []session.ID
}

// startReads begins to read, in a process of its own: in this one a thousand
// connections are served at the same time.
func (s *server) startReads(ids []session.ID) (*reads, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-reader")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &reads{cmd, in, json.NewDecoder(out)}, json.NewEncoder(in).Encode(task{s.url, s.token, ids})
}

// end ends the reads and returns how long each took.
func (r *reads) end() (took []time.Duration, err error) {
	r.in.Close()
	err = r.out.Decode(&took)
	return took, errors.Join(err, r.cmd.Wait())
}

// read reads as in says until it is closed, and tells out how long each took.
func read(in io.Reader, out io.Writer) error {
	var t task
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() { io.Copy(io.Discard, in); close(over) }()
	s := &server{url: t.URL, token: t.Token, client: &http.Client{}}
	took := []time.Duration{}
	for i := 0; ; i++ {
		select {
		case <-over:
			return json.NewEncoder(out).Encode(took)
		case <-time.After(12 * time.Millisecond): // within the rate
		}
		id := string(t.IDs[(7*i)%len(t.IDs)])
		path := []string{"/v1/sessions/" + id, "/v1/sessions/" + id + "/records?limit=50", "/v1/sessions?limit=50"}[i%3]
		begin := time.Now()
		resp, err := s.do("GET", path, "")
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
}

// used is processor time, in seconds; 0 where it is not known.
type used struct {
	at                      time.Time
	server, clients, others float64
}

// processor returns the processor time that was used up to now.
func (s *server) processor() used {
	u := used{at: time.Now()}
	const tick = 100 // a second, on Linux
	line := func(path string) []string {
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut("\n"+string(text), ") ") // after the name of a program
		if rest == "" {
			rest, _, _ = strings.Cut(string(text), "\n")
		}
		return append(strings.Fields(rest), make([]string, 20)...)
	}
	number := func(text string) (n float64) { fmt.Sscan(text, &n); return n / tick }
	of := func(pid int) float64 {
		f := line(fmt.Sprintf("/proc/%d/stat", pid))
		return number(f[11]) + number(f[12])
	}
	u.server, u.clients = of(s.cmd.Process.Pid), of(os.Getpid())
	all := line("/proc/stat")
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, interrupts
		u.others += number(all[i])
	}
	return u
}

// since returns what was used since a moment, in each second.
func (u used) since(before used) used {
	d := u.at.Sub(before.at).Seconds()
	server, clients, all := (u.server-before.server)/d, (u.clients-before.clients)/d, (u.others-before.others)/d
	return used{server: server, clients: clients, others: max(all-server-clients, 0)}
}

// at returns the percentile p in milliseconds.
func at(ds []time.Duration, p int) float64 {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	return float64(ds[min(len(ds)*p/100, len(ds)-1)].Microseconds()) / 1000
}

// slow compares turns with and without followers that do not read. Each is the
// first in its session: what was said before would be sent again.
func slow(s *server, ids []session.ID) ([]figure, error) {
	const turns = 7
	measure := func(ids []session.ID, stuck int) (float64, error) {
		var took []time.Duration
		for _, id := range ids {
			for range stuck {
				c, err := net.Dial("tcp", s.host)
				if err != nil {
					return 0, err
				}
				defer c.Close()
				c.(*net.TCPConn).SetReadBuffer(4 << 10)
				fmt.Fprintf(c, "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", id, s.host, s.token)
			}
			time.Sleep(time.Second) // within the rate
			d, err := s.turn(id, "say much")
			if err != nil {
				return 0, err
			}
			took = append(took, d)
		}
		return at(took, 50), nil
	}
	last := len(ids)
	free, err := measure(ids[last-turns:], 0)
	if err != nil {
		return nil, err
	}
	held, err := measure(ids[last-2*turns:last-turns], *stuck)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"median of a turn that says 400 kB", free, "ms", 0},
		{fmt.Sprintf("the same with %d followers that do not read", *stuck), held, "ms", 0},
		{"the second by the first", held / free, "times", 2},
	}, nil
}

package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"

	"goclaw/llm"
	"goclaw/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type o map[string]any

func call(args o) llm.ToolCall {
	b, _ := json.Marshal(args)
	return llm.ToolCall{ID: "c", Name: "fetch", Args: b}
}

// get runs the tool, and returns what the model is told.
func get(t *testing.T, tool *Tool, args o) (string, bool) {
	t.Helper()
	r, err := tool.Run(t.Context(), call(args))
	if err != nil {
		t.Fatal(err)
	}
	return r.Text(), r.IsError
}

// local is a server here, and a tool that may talk to it.
func local(t *testing.T, h http.HandlerFunc, opts ...func(*Options)) (*httptest.Server, *Tool) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	opt := Options{Private: []string{"127.0.0.1"}}
	for _, f := range opts {
		f(&opt)
	}
	return srv, New(opt)
}

func contains(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in:\n%.2000s", w, got)
		}
	}
}

const article = `<!DOCTYPE html><html><head><title>On  tea</title><style>p{color:red}</style><script>alert("no")</script></head>
<body><h1>Tea</h1><p>Green <b>tea</b> is <a href="/kinds?x=1">one kind</a>.<img src="data:image/png;base64,AAAA"><svg><text>drawn</text></svg></p>
<ul><li>first</li><li>second</li></ul><pre><code class="language-go">x := 1
</code></pre><table><tr><th>kind</th><th>time</th></tr><tr><td>green</td><td>2 min</td></tr></table><noscript>switch on scripts</noscript></body></html>`

func TestPage(t *testing.T) {
	var asked http.Header
	srv, f := local(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, article)
	}, func(o *Options) { o.UserAgent = "goclaw/1" })
	got, failed := get(t, f, o{"url": srv.URL + "/page#part"})
	want := fmt.Sprintf("[%s/page: text/html, %d B]\n# Tea\n\nGreen **tea** is [one kind](%s/kinds?x=1).\n\n- first\n- second\n\n```go\nx := 1\n```\n\n| kind  | time  |\n|-------|-------|\n| green | 2 min |", srv.URL, len(article), srv.URL)
	if diff := cmp.Diff(want, got); diff != "" || failed {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if asked.Get("User-Agent") != "goclaw/1" || asked.Get("Cookie") != "" || asked.Get("Authorization") != "" {
		t.Errorf("sent %v", asked)
	}
}

func TestKinds(t *testing.T) {
	encoded := func(s string, e interface{ String(string) (string, error) }) string {
		out, err := e.String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	latin := encoded("<p>café</p>", charmap.Windows1252.NewEncoder())
	sjis := encoded(`<meta charset="shift_jis"><title>お茶</title><p>緑茶</p>`, japanese.ShiftJIS.NewEncoder())
	for name, tt := range map[string]struct {
		kind, body, want string
		failed           bool
	}{
		"json as it is":        {"application/json", `{"a": 1}`, "application/json, 8 B]\n{\"a\": 1}", false},
		"a suffix":             {"application/problem+json", `{}`, "]\n{}", false},
		"plain text":           {"text/plain", "a <b>\n", "]\na <b>\n", false},
		"text of no type":      {"application/octet-stream", "just text\n", "text/plain, 10 B]\njust text\n", false},
		"html of no type":      {"application/octet-stream", "<html><body><h2>x</h2></body></html>", "text/html, 36 B]\n## x", false},
		"charset of the head":  {"text/html; charset=iso-8859-1", latin, "]\ncafé", false},
		"charset of the page":  {"text/html", sjis, "]\n# お茶\n\n緑茶", false},
		"utf-16":               {"text/plain", "\xff\xfeh\x00i\x00", "]\nhi", false},
		"late umlaut":          {"text/plain", strings.Repeat("a", 2000) + "ü", "aü", false},
		"not utf-8":            {"text/plain; charset=utf-8", "a\xffb", "]\na\uFFFDb", false},
		"unknown charset":      {"text/plain; charset=klingon", "tlh ü", "]\ntlh ü", false},
		"picture":              {"image/png", "\x89PNG\r\n", "is not text and is not shown: image/png, 6 B", true},
		"archive of no type":   {"application/octet-stream", "PK\x03\x04\x00\x00", "is not text and is not shown: application/zip, 6 B", true},
		"a lie":                {"text/plain", "\x7fELF\x00\x00\x01", "is not text and is not shown: text/plain, 7 B", true},
		"broken html":          {"text/html", "<p>a<b>b<p>c</i><table><td>d", "c", false},
		"html without an end":  {"text/html", "<h1>a", "# a", false},
		"empty":                {"text/html", "", "text/html, 0 B]", false},
		"deep":                 {"text/html", strings.Repeat("<div>", 100_000) + "x", "cannot be read", true},
		"script in an address": {"text/html", `<a href="javascript:alert(1)">x</a>`, "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			srv, f := local(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				io.WriteString(w, tt.body)
			})
			got, failed := get(t, f, o{"url": srv.URL})
			if failed != tt.failed || !strings.Contains(got, tt.want) || !utf8.ValidString(got) {
				t.Errorf("got %v %q, want %v %q", failed, got, tt.failed, tt.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	srv, f := local(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<h1>Gone fishing</h1>"+strings.Repeat("<p>x", 5000))
	})
	got, failed := get(t, f, o{"url": srv.URL + "/x"})
	contains(t, got, srv.URL+"/x answers 404 Not Found\n# Gone fishing")
	if !failed || len(got) > 3000 {
		t.Errorf("%v, %d bytes", failed, len(got))
	}
}

func TestAddresses(t *testing.T) {
	f := New(Options{})
	for _, tt := range []struct{ url, want string }{
		{"ftp://example.com/x", "only addresses that begin with http:// or https://"},
		{"file:///etc/passwd", "only addresses"},
		{"javascript:alert(1)", "only addresses"},
		{"example.com", "only addresses"},
		{"//example.com", "only addresses"},
		{"http://", "has no host"},
		{"http://user:pw@example.com/", "user name or a password"},
		{"http://exa mple.com/", "is not an address"},
		{"http://[::1", "is not an address"},
	} {
		got, failed := get(t, f, o{"url": tt.url})
		if !failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v %q", tt.url, failed, got)
		}
		if _, needed := f.Request(call(o{"url": tt.url})); needed {
			t.Errorf("%s is worth a question", tt.url)
		}
	}
}

// Reading on is from what was fetched: no second request, no second question.
func TestReadOn(t *testing.T) {
	var asked atomic.Int32
	long := strings.Repeat("ä line of text\n", 3000)
	srv, f := local(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, long)
	})
	got, _ := get(t, f, o{"url": srv.URL, "max": 1000})
	_, first, _ := strings.Cut(got, "]\n")
	if !strings.HasSuffix(got, fmt.Sprintf("\n[1000 of %d bytes; offset 1000 reads on]", len(long))) || !strings.HasPrefix(first, long[:1000]) {
		t.Errorf("got %q", got)
	}
	all := ""
	for at := 0; at < len(long); at += 20_000 {
		args := o{"url": srv.URL, "offset": at}
		if _, needed := f.Request(call(args)); needed != (at == 0) {
			t.Errorf("at %d a question is needed: %v", at, needed)
		}
		got, _ := get(t, f, args)
		_, part, _ := strings.Cut(got, "]\n")
		part, _, _ = strings.Cut(part, "\n[20000 of")
		all += part
	}
	if all != long || asked.Load() != 2 {
		t.Errorf("%d of %d bytes, asked %d times", len(all), len(long), asked.Load())
	}
	if got, _ = get(t, f, o{"url": srv.URL, "offset": 1 << 20}); !strings.Contains(got, "there is nothing at 1048576") {
		t.Errorf("got %q", got)
	}
	if got, _ = get(t, f, o{"url": srv.URL, "offset": 1, "max": 10}); !utf8.ValidString(got) { // inside of a character
		t.Errorf("got %q", got)
	}
}

func TestLimits(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	srv, _ := local(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		case "/bomb": // 64 MB of zeros in 64 KB
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				z.Write(bytes.Repeat([]byte("0"), 1<<20))
			}
			z.Close()
		case "/slow":
			io.WriteString(w, "the beginning")
			w.(http.Flusher).Flush()
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		case "/silent":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		case "/brotli":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "xx")
		case "/broken":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		}
	})
	// A machine that takes longer than that to send the beginning gets more time.
	for timeout := 400 * time.Millisecond; ; timeout *= 10 {
		f := New(Options{Private: []string{"*"}, Timeout: timeout})
		got, _ := get(t, f, o{"url": srv.URL + "/slow"})
		if strings.Contains(got, "did not answer within") && timeout < 10*time.Second {
			continue
		}
		contains(t, got, ", cut: the rest did not come within "+timeout.String()+"]\nthe beginning")
		break
	}
	f := New(Options{Private: []string{"*"}, Timeout: 400 * time.Millisecond})
	got, _ := get(t, f, o{"url": srv.URL + "/silent"})
	contains(t, got, "/silent did not answer within 400ms")
	f = New(Options{Private: []string{"*"}, MaxBytes: 1 << 20})
	for path, want := range map[string]string{
		"/brotli": `is encoded as "br", which is not understood`,
		"/broken": "the page broke off",
	} {
		got, _ := get(t, f, o{"url": srv.URL + path})
		contains(t, got, want)
	}
	for _, path := range []string{"/endless", "/bomb"} {
		got, _ := get(t, f, o{"url": srv.URL + path})
		contains(t, got, "text/plain, 1.0 MB, cut after 1.0 MB]\n", "of 1048576 bytes; offset 20000 reads on]")
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv, f := local(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if r, err := f.Run(ctx, call(o{"url": srv.URL})); err != context.Canceled || !r.IsError {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	srv, f := local(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{"/a": "/b", "/b": "/c", "/loop": "/loop", "/out": other.URL + "/x", "/meta": "http://169.254.169.254/latest/", "/file": "file:///etc/passwd", "/user": "http://u:p@" + r.Host + "/c"}[r.URL.Path]
		if to == "" {
			io.WriteString(w, "arrived")
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	for path, want := range map[string]string{
		"/a":    "[" + srv.URL + "/c: text/plain, 7 B]\narrived",
		"/loop": "more than 5 redirections",
		"/out":  "/out redirects to another host: fetch " + other.URL + "/x if",
		"/meta": "/meta redirects to another host: fetch http://169.254.169.254/latest/ if",
		"/file": "/file redirects to another host: fetch file:///etc/passwd if",
		"/user": "redirects to another host",
	} {
		got, _ := get(t, f, o{"url": srv.URL + path})
		contains(t, got, want)
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "93.184.216.34": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true, "2002:808:808::1": true, "172.32.0.1": true, "100.128.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"100.100.100.200": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "239.1.1.1": false, "255.255.255.255": false, "240.0.0.1": false, "192.0.0.192": false, "192.0.2.1": false,
		"198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false, "168.63.129.16": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false, "2001:db8::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false,
		"2002:7f00:1::": false, "2002:a00:1::1": false, "2001::1": false, "64:ff9b:1::1": false, "100::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// However the address of this machine is written, it is not asked.
func TestPrivateIsRefused(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	f := New(Options{Timeout: 5 * time.Second})
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1."} {
		got, failed := get(t, f, o{"url": "http://" + host + ":" + port + "/"})
		if !failed {
			t.Errorf("%s: %s", host, got)
		}
	}
	got, _ := get(t, f, o{"url": srv.URL})
	contains(t, got, "127.0.0.1 is a private address, and nothing is fetched from it unless the user has allowed the host")
	got, _ = get(t, f, o{"url": "http://localhost:" + port})
	contains(t, got, "localhost has the private address ")
	if n := asked.Load(); n > 0 {
		t.Errorf("asked %d times", n)
	}
	// The one that was allowed is.
	for _, allowed := range []string{"localhost", "*"} {
		f = New(Options{Private: []string{allowed}})
		if got, failed := get(t, f, o{"url": "http://localhost:" + port}); failed {
			t.Errorf("%s: %s", allowed, got)
		}
	}
	f = New(Options{Private: []string{"*.corp.example"}})
	for host, want := range map[string]bool{"a.corp.example": true, "A.B.CORP.EXAMPLE.": true, "corp.example": false, "xcorp.example": false, "corp.example.evil.net": false} {
		if got := f.mayBePrivate(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}

// nameServer is a DNS server that has another answer every time.
func nameServer(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	var n atomic.Int32
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			q := append([]byte(nil), buf[:size]...)
			end := 12
			for q[end] != 0 {
				end += int(q[end]) + 1
			}
			question := q[12 : end+5]
			reply := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			if binary.BigEndian.Uint16(question[len(question)-4:]) == 1 { // an address of version 4
				a := netip.MustParseAddr(answers[min(int(n.Add(1))-1, len(answers)-1)]).As4()
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				reply = append(reply, a[:]...)
			}
			pc.WriteTo(reply, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// A name that is public when it is asked about and private when it is connected
// to does not get there.
func TestRebinding(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	for _, answers := range [][]string{{"127.0.0.1"}, {"93.184.216.34", "127.0.0.1"}} {
		resolver := nameServer(t, answers...)
		f := New(Options{Resolver: resolver, Timeout: time.Second}) // the public address may not answer
		for range 2 {
			got, failed := get(t, f, o{"url": "http://rebind.example.com:" + port})
			if !failed {
				t.Errorf("%v: %s", answers, got)
			}
		}
		f = New(Options{Resolver: resolver})
		got, _ := get(t, f, o{"url": "http://rebind.example.com:" + port})
		contains(t, got, "rebind.example.com has the private address 127.0.0.1")
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("asked %d times", n)
	}
	f := New(Options{Resolver: nameServer(t, "127.0.0.1"), Private: []string{"rebind.example.com"}})
	if got, failed := get(t, f, o{"url": "http://rebind.example.com:" + port}); failed {
		t.Error(got)
	}
}

// A proxy is asked for what is public, and for nothing that is seen to be
// private.
func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		io.WriteString(w, "through the proxy")
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	f := New(Options{Proxy: http.ProxyURL(at), Resolver: nameServer(t, "93.184.216.34")})
	got, failed := get(t, f, o{"url": "http://example.com/a"})
	contains(t, got, "through the proxy")
	for _, u := range []string{"http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "http://localhost/", "http://a.localhost/"} {
		if got, failed := get(t, f, o{"url": u}); !failed {
			t.Errorf("%s: %s", u, got)
		}
	}
	f = New(Options{Proxy: http.ProxyURL(at), Resolver: nameServer(t, "10.0.0.1")})
	if got, failed := get(t, f, o{"url": "http://intranet.example/"}); !failed {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"http://example.com/a"}, asked); diff != "" || failed {
		t.Error(diff)
	}
}

// Permission is asked for by host, in every mode but all, and a rule gives it.
func TestPermission(t *testing.T) {
	srv, _ := local(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "read") })
	host := strings.TrimPrefix(srv.URL, "http://")
	for _, tt := range []struct {
		mode  tool.Mode
		rule  string
		asked int
	}{
		{tool.ModeAsk, "", 1}, {tool.ModeEdits, "", 1}, {tool.ModePlan, "", 1}, {tool.ModeAll, "", 0},
		{tool.ModeAsk, "fetch", 0}, {tool.ModePlan, "fetch(" + host + ")", 0}, {tool.ModeAsk, "fetch(127.0.0.1)", 1}, {tool.ModeAsk, "fetch(example.com)", 1}, {tool.ModeAsk, "edits", 1},
	} {
		var asked []tool.Request
		o2 := tool.Options{Workspace: t.TempDir(), Now: time.Now, Mode: tt.mode, DisableBash: true, Ask: tool.ApproverFunc(func(_ context.Context, r tool.Request) (tool.Decision, error) {
			asked = append(asked, r)
			return tool.No, nil
		})}
		if tt.rule != "" {
			rule, err := tool.ParseRule(tt.rule)
			if err != nil {
				t.Fatal(err)
			}
			o2.Rules = []tool.Rule{rule}
		}
		set, err := tool.New(o2)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Add(New(Options{Private: []string{"*"}})); err != nil {
			t.Fatal(err)
		}
		r, err := set.Run(t.Context(), call(o{"url": srv.URL + "/x?y"}))
		set.Close()
		if err != nil || len(asked) != tt.asked || r.IsError != (tt.asked > 0) {
			t.Errorf("mode %v, rule %q: asked %v, %v %q", tt.mode, tt.rule, asked, err, r.Text())
		}
		if len(asked) > 0 {
			if diff := cmp.Diff(tool.Request{Tool: "fetch", URL: srv.URL + "/x?y", Host: host, Rule: tool.Rule{Tool: "fetch", Host: host}}, asked[0]); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestHostOf(t *testing.T) {
	for text, want := range map[string]string{
		"https://Example.COM/x": "example.com", "http://example.com.:80/": "example.com", "https://example.com:443": "example.com", "http://example.com:443": "example.com:443",
		"http://localhost:8080": "localhost:8080", "http://[::1]:80/": "[::1]", "http://[::1]:81/": "[::1]:81",
	} {
		u, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		host := hostOf(u)
		if rule, err := tool.ParseRule("fetch(" + host + ")"); host != want || err != nil || rule.Host != host {
			t.Errorf("%s: %q, %v", text, host, err)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(article)
	at, _ := url.Parse("https://example.com/a")
	f.Fuzz(func(t *testing.T, page string) {
		out, err := markdown(page, at)
		if err == nil && utf8.ValidString(page) && !utf8.ValidString(out) {
			t.Errorf("%q", out)
		}
	})
}

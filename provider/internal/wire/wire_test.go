package wire

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestArgs(t *testing.T) {
	for in, want := range map[string]string{
		"":                      `{}`,
		" \n":                   `{}`,
		"{ \"a\" : [1, 2.50] }": `{"a":[1,2.50]}`,
		`{"a":1}{"b":2}`:        `{"_raw":"{\"a\":1}{\"b\":2}"}`,
		`"text"`:                `{"_raw":"\"text\""}`,
		`{"a":`:                 `{"_raw":"{\"a\":"}`,
		"{\"a\":\"\xff\"}":      "{\"a\":\"\uFFFD\"}",
		"\xff":                  "{\"_raw\":\"\uFFFD\"}",
		"<x>":                   `{"_raw":"\u003cx\u003e"}`,
	} {
		if got := string(Args(in)); got != want {
			t.Errorf("Args(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	if got := Line(" a\r\n\tb \xff "); got != "a b \uFFFD" {
		t.Errorf("got %q", got)
	}
	if got := Line(strings.Repeat("ü", 400)); got != strings.Repeat("ü", 300)+"…" {
		t.Errorf("a long line became %q", got)
	}
}

// Every string is written so that it reads back as it was, bytes that are not
// UTF-8 aside.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain text of more than eight bytes", "quote \" slash \\ and more", "\x00\x1f\x7f\n\r\t tab", "ünïcödé \u2028", "\xff\xfe bad \xc3", "12345678\"", "1234567\x19", strings.Repeat("\"", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := AppendString(nil, s)
		var got string
		if err := json.Unmarshal(out, &got); err != nil || !utf8.Valid(out) {
			t.Fatalf("%q became %s: %v", s, out, err)
		}
		// Like encoding/json, one U+FFFD for each bad byte; ToValidUTF8 makes
		// one for a run of them.
		want := ""
		for _, r := range s {
			want += string(r)
		}
		if got != want {
			t.Errorf("%q reads back as %q", s, got)
		}
	})
}

// What cannot be cured by trying again is not tried again, and says why.
func TestNetwork(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		url, says string
		again     bool
	}{
		{secure.URL, "certificate is not trusted", false},
		{strings.Replace(open.URL, "http:", "https:", 1), "HTTP response to HTTPS client", false},
		{gone.URL, "connection refused", true},
		{"gopher://localhost", "unsupported protocol scheme", false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, 0).Do(req)
		if err == nil {
			t.Fatalf("%s answered", c.url)
		}
		if reason, again := Network(err); !strings.Contains(reason, c.says) || again != c.again {
			t.Errorf("%s: %q, again %v, want %q, %v", c.url, reason, again, c.says, c.again)
		}
	}
}

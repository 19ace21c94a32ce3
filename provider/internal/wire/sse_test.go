package wire

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	broken := errors.New("the line broke")
	for _, c := range []struct {
		name, stream string
		want         []string // name|data
		err          string
	}{
		{"plain", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", []string{"a|1", "b|2"}, ""},
		{"CRLF", "event: a\r\ndata: 1\r\n\r\n", []string{"a|1"}, ""},
		{"no space", "event:a\ndata:1\n\n", []string{"a|1"}, ""},
		{"only one space goes", "data:  1\n\n", []string{"| 1"}, ""},
		{"several lines of data", "data: {\ndata: \"a\":1\ndata\ndata: }\n\n", []string{"|{\n\"a\":1\n\n}"}, ""},
		{"comments and other fields", ": hello\nid: 1\nretry: 9\ndata: 1\n:\n\n: ping\n\n", []string{"|1"}, ""},
		{"the last name counts, and for one event", "event: a\nevent: b\ndata: 1\n\ndata: 2\n\n", []string{"b|1", "|2"}, ""},
		{"a name without data", "event: a\n\ndata: 1\n\n", []string{"|1"}, ""},
		{"empty data", "data:\n\ndata: 1\n\n", []string{"|", "|1"}, ""},
		{"a colon in the data", "data: {\"a\": \"b: c\"}\n\n", []string{"|{\"a\": \"b: c\"}"}, ""},
		{"many empty lines", "\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n", []string{"|1", "|2"}, ""},
		{"a byte order mark", "\uFEFFdata: 1\n\n", []string{"|1"}, ""},
		{"broken off", "data: 1\n\ndata: 2\n", []string{"|1"}, ""},
		{"broken off in a line", "data: 1\n\ndata: 2", []string{"|1"}, ""},
		{"nothing", "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
				var got []string
				for e, err := range Events(r) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, e.Name+"|"+string(e.Data))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
	var got []string
	for e, err := range Events(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(broken))) {
		got = append(got, fmt.Sprintf("%s %v", e.Data, errors.Is(err, broken)))
	}
	if diff := cmp.Diff([]string{"1 false", " true"}, got); diff != "" {
		t.Errorf("a line that breaks: -want +got\n%s", diff)
	}
}

// What is sent, and what of the answer is understood before an API looks at it.
func TestPost(t *testing.T) {
	var path, query, header string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		path, query = r.URL.Path, r.URL.RawQuery
		header = fmt.Sprint(r.Method, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("X-Key"), " ", r.Header.Get("X-Beta"), " ", r.ContentLength, " ", string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, "data: 1\n\n")
			z.Close()
			return
		}
		io.WriteString(w, "data: 1\n\n")
	}))
	defer srv.Close()
	api := API{Base: srv.URL + "/base?version=2", Header: http.Header{"X-Key": {"k"}, "X-Beta": {"old"}}, Client: NewClient(srv.Client(), 0)}
	body, err := api.Post(t.Context(), "v1/messages", []byte(`{"a":1}`), http.Header{"X-Beta": {"new"}})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var got []string
	for e, err := range Events(body) {
		got = append(got, fmt.Sprint(string(e.Data), err))
	}
	if diff := cmp.Diff([]string{"1<nil>"}, got); diff != "" {
		t.Errorf("events -want +got\n%s", diff)
	}
	if want := `POST application/json k new 7 {"a":1}`; path != "/base/v1/messages" || query != "version=2" || header != want {
		t.Errorf("asked %s?%s with %s, want %s", path, query, header, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := api.Post(ctx, "x", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	api.Base = "http://a b/"
	if _, err := api.Post(t.Context(), "x", nil, nil); err == nil {
		t.Error("an address that is none was asked")
	} else if _, again := Network(err); again {
		t.Errorf("%v would be tried again", err)
	}
}

func TestDecode(t *testing.T) {
	var v struct {
		ID    Text   `json:"id"`
		Count Number `json:"count"`
		Next  struct {
			Name Text `json:"name"`
		} `json:"next"`
	}
	for in, want := range map[string]string{
		`{"id":"a","count":3,"next":{"name":"n"}}`:  "a {3 true} n",
		`{"id":7,"count":"3","next":5}`:             "7 {3 true} ",
		`{"id":null,"count":null,"next":null}`:      " {0 false} ",
		`{"id":{"a": 1},"count":3.9,"next":[1]}`:    `{"a": 1} {3 true} `,
		`{"id":true,"count":-1,"next":{"name":[]}}`: "true {0 false} []",
		`{"count":1e300}`:                           " {0 false} ",
		"{\"id\":\"a\xff\"}":                        "a\uFFFD {0 false} ",
	} {
		v.ID, v.Count, v.Next.Name = "", Number{}, ""
		if err := Decode([]byte(in), &v); err != nil || fmt.Sprint(v.ID, " ", v.Count, " ", v.Next.Name) != want {
			t.Errorf("%s: got %q, %v, want %q", in, fmt.Sprint(v.ID, " ", v.Count, " ", v.Next.Name), err, want)
		}
	}
	for _, in := range []string{"", "{", `"text"`, "[1]", `{"id":1}}`} {
		if err := Decode([]byte(in), &v); err == nil {
			t.Errorf("%q was read", in)
		}
	}
}

package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// written is every event stream that an answer wrote.
var written struct {
	sync.Mutex
	streams []string
}

func record(stream string) {
	written.Lock()
	defer written.Unlock()
	if !slices.Contains(written.streams, stream) {
		written.streams = append(written.streams, stream)
	}
}

// Main runs the tests of a provider. After them it hands every stream that was
// written to compare, which says where an SDK reads it differently, and looks
// for leaked goroutines.
func Main(m *testing.M, compare func(stream string) string) {
	code := m.Run()
	for _, s := range written.streams {
		if diff := compare(s); diff != "" {
			fmt.Printf("--- FAIL: the SDK reads this stream differently:\n%s\n%s\n", s, diff)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// Answered is an HTTP client that sends nothing: it keeps the last request and
// answers with status and body.
type Answered struct {
	Status  int
	Header  http.Header
	Body    string
	Request *http.Request
	Sent    []byte
}

// RoundTrip implements http.RoundTripper.
func (a *Answered) RoundTrip(req *http.Request) (*http.Response, error) {
	a.Request = req
	a.Sent, _ = io.ReadAll(req.Body)
	req.Body.Close()
	return &http.Response{
		StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.Header, Body: io.NopCloser(strings.NewReader(a.Body)), ContentLength: int64(len(a.Body)), Request: req,
	}, nil
}

// Client returns an HTTP client that asks a.
func (a *Answered) Client() *http.Client { return &http.Client{Transport: a} }

// Stream is an event stream that is read without a network.
func Stream(body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// Frame draws one of the ways in which an event can be written: line ends,
// comments, fields that nobody uses, data on one line or several.
func Frame(t *rapid.T, name, data string) string {
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
	space := rapid.SampledFrom([]string{" ", ""}).Draw(t, "space")
	var lines []string
	if rapid.IntRange(0, 5).Draw(t, "aside") == 0 {
		lines = append(lines, rapid.SampledFrom([]string{": comment", ":", "id: 7", "retry: 10", "nonsense", "data2: {}"}).Draw(t, "line"))
	}
	if name != "" {
		lines = append(lines, "event:"+space+name)
	}
	if rapid.IntRange(0, 5).Draw(t, "lines") == 0 {
		var b bytes.Buffer
		if json.Indent(&b, []byte(data), "", "\t") == nil {
			data = b.String()
		}
	}
	for l := range strings.SplitSeq(data, "\n") {
		lines = append(lines, "data:"+space+l)
	}
	out := strings.Join(lines, end) + end
	// What is no object is not joined to the next event: a reading of both
	// together means nothing.
	if !strings.HasPrefix(data, "{") || rapid.IntRange(0, 20).Draw(t, "joined") > 0 {
		out += end
	}
	return out
}

// Odd draws a JSON value: good, or one of another type.
func Odd(t *rapid.T, good string) string {
	if rapid.IntRange(0, 3).Draw(t, "good") > 0 {
		return good
	}
	odd := []string{"null", "0", "3", `""`, `"x"`, "{}", "[]", `{"a":1}`, `["a"]`}
	if good[0] >= '0' && good[0] <= '9' {
		odd = append(odd, `"7"`, "2.9")
	} else {
		odd = append(odd, "true") // which counts as 1 for an SDK
	}
	return rapid.SampledFrom(odd).Draw(t, "odd")
}

// Object draws a JSON object of pairs of a key and a value, of which some may
// be missing.
func Object(t *rapid.T, pairs ...string) string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		if rapid.IntRange(0, 5).Draw(t, "missing") > 0 {
			out = append(out, fmt.Sprintf("%q:%s", pairs[i], pairs[i+1]))
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

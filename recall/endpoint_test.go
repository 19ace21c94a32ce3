package recall

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestEndpointHangs: a search does not wait long for a server that does not
// answer.
func TestEndpointHangs(t *testing.T) {
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer srv.Close()
	defer close(done)
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- the harbour is old\n")
	w := worlds["sqlite"](t, Options{Workspace: dir, Embedder: Endpoint{URL: srv.URL, Model: "m"}})
	if w.ix.vectors.patience > 10*time.Second {
		t.Errorf("a question waits %v", w.ix.vectors.patience)
	}
	w.ix.vectors.patience = 50 * time.Millisecond
	say(t, w, "a", "user: the harbour opens at nine")
	res, err := w.ix.Search(t.Context(), Query{Text: "harbour"})
	if err != nil || len(res.Hits) != 2 || !res.Words || len(res.Incomplete) != 1 || res.Incomplete[0] != "words only: m gave no vector within 50ms" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestEndpointChanges: vectors of another length than the server gives now are
// not compared: they are recomputed.
func TestEndpointChanges(t *testing.T) {
	var length atomic.Int64
	length.Store(384)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var out []string
		for i := range ask.Input {
			out = append(out, fmt.Sprintf(`{"index":%d,"embedding":[1%s]}`, i, strings.Repeat(",0.5", int(length.Load())-1)))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(out, ","))
	}))
	defer srv.Close()
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- the harbour is old\n")
	w := worlds["sqlite"](t, Options{Workspace: dir, Embedder: Endpoint{URL: srv.URL, Model: "m"}})
	w.ix.vectors.patience = time.Minute // the server is slow where the machine is
	for _, id := range []string{"a", "b"} {
		say(t, w, id, "user: the harbour opens at nine, says "+id, "assistant: fine")
	}
	search := func(wantVectors float64, wantIncomplete string) {
		t.Helper()
		res, err := w.ix.Search(t.Context(), Query{Text: "harbour"})
		if err != nil || res.Vectors != wantVectors || strings.Join(res.Incomplete, "\n") != wantIncomplete || res.Words {
			t.Errorf("%.1f of vectors and %q, want %.1f and %q: %v", res.Vectors, res.Incomplete, wantVectors, wantIncomplete, err)
		}
	}
	embed := func(want int) {
		t.Helper()
		if n, err := w.ix.Embed(t.Context()); n != want || err != nil {
			t.Errorf("made %d vectors, want %d: %v", n, want, err)
		}
	}
	embed(5)
	search(1, "")
	length.Store(768)
	search(0, "m gives vectors of 768 numbers now, and gave 384 before: those were dropped, and are recomputed")
	search(0, "")
	embed(5)
	search(1, "")
	length.Store(512) // and it is a new message that shows it
	say(t, w, "b", "user: one more about the harbour")
	embed(5 + 1)
	embed(0)
	search(1, "")
}

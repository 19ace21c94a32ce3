package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// transcript makes a native log of about size bytes as agents write them:
// a third tool calls and their results, texts log-normal with a median of
// 400 bytes and a 99th percentile of 30 KB.
func transcript(size int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(`the session log holds every record "quoted" func(r *Reader) error { return nil } path/to/file.go:42 → 你好 and so on, with\tabs`)
	text := func() string {
		n := int(400 * math.Exp(1.856*rng.NormFloat64()))
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[rng.IntN(len(words))])
			if rng.IntN(9) == 0 {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	var out []byte
	at := day
	parent := ""
	add := func(b session.Body) {
		at = at.Add(time.Second)
		r := session.Record{ID: fmt.Sprintf("%d_%08x", at.UnixMilli(), rng.Uint32()), Parent: parent, Time: at, Body: b}
		if _, ok := b.(session.Header); !ok {
			parent = r.ID
		}
		line, err := Native.Encode(r)
		if err != nil {
			panic(err)
		}
		out = append(append(out, line...), '\n')
	}
	add(session.Header{Version: 3, ID: "s", Key: "main:cli:user", CWD: "/p"})
	answer := session.Message{API: "anthropic-messages", Provider: "anthropic", Model: "claude-sonnet-4-5", Stop: llm.StopEnd,
		Usage: llm.Usage{Input: 1000, Output: 200, CacheRead: 50000}, At: day}
	for n := 0; len(out) < size; n++ {
		add(session.Message{Message: llm.UserText(text()), At: day})
		if rng.IntN(100) < 53 { // two of the records of such a turn are a call and its result
			call := llm.ToolCall{ID: fmt.Sprintf("toolu_%012x", rng.Uint64()), Name: "read", Args: json.RawMessage(`{"path":"src/main.go","limit":200}`)}
			m := answer
			m.Message = llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: "Let me look."}, call}}
			m.Stop = llm.StopTool
			add(m)
			add(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Result(call, text())}}, At: day})
		}
		m := answer
		m.Message = llm.AssistantText(text())
		add(m)
	}
	return out
}

func BenchmarkDecode(b *testing.B) {
	file := transcript(16 << 20)
	b.Run("file", func(b *testing.B) {
		b.SetBytes(int64(len(file)))
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range Read("bench", bytes.NewReader(file), Options{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("line", func(b *testing.B) {
		lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
		b.SetBytes(int64(len(file)))
		b.ReportAllocs()
		for b.Loop() {
			for _, l := range lines {
				if _, err := Native.Decode(l); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	file := transcript(4 << 20)
	var recs []session.Record
	for r, err := range Read("bench", bytes.NewReader(file), Options{}) {
		if err != nil {
			b.Fatal(err)
		}
		r.Raw = nil
		recs = append(recs, r)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range recs {
			if _, err := Native.Encode(r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

const head = `{"type":"session","version":3,"id":"s","timestamp":"2026-11-15T00:32:00.134Z","cwd":""}` + "\n"

func entryLine(id, parent string) string {
	return fmt.Sprintf(`{"type":"label","id":%q,"parentId":%q,"timestamp":"2026-11-15T00:32:00.134Z","targetId":"x"}`, id, parent)
}

func TestScannerPlaces(t *testing.T) {
	a, b := entryLine("a", ""), entryLine("b", "a")
	file := "\n" + head + a + "\r\n{torn\n \n" + b
	s := NewScanner("f", iotest.OneByteReader(strings.NewReader(file)), Options{})
	type place struct {
		ID        string
		Seq       session.Seq
		Line      int
		Text      string
		Damage    string
		LastThere bool
	}
	var got []place
	for s.Next() {
		p := place{ID: s.Record().ID, Seq: s.Record().Seq, Line: s.Line(), Text: file[s.Offset():s.End()], LastThere: s.Unended()}
		if s.Damage() != nil {
			p.Damage = s.Damage().Reason
		}
		got = append(got, p)
	}
	want := []place{
		{"", 1, 2, head, "", false},
		{"a", 2, 3, a + "\r\n", "", false},
		{"", 0, 4, "{torn\n", "not a JSON line: no key at byte 1", false},
		{"b", 3, 6, b, "", true},
	}
	if diff := cmp.Diff(want, got); diff != "" || s.Err() != nil {
		t.Errorf("%v (-want +got):\n%s", s.Err(), diff)
	}
	if s.Form() != FormNative || s.Version() != 3 {
		t.Errorf("form %q, version %d", s.Form(), s.Version())
	}

	// A reader that begins in the middle goes on with the same numbers.
	at := strings.Index(file, b)
	s = NewScanner("f", strings.NewReader(file[at:]), Options{Offset: int64(at), Line: 5, After: 2, Header: &session.Header{ID: "s"}})
	if !s.Next() || s.Record().Seq != 3 || s.Line() != 6 || s.Offset() != int64(at) || s.End() != int64(len(file)) {
		t.Errorf("record %d at line %d, %d to %d", s.Record().Seq, s.Line(), s.Offset(), s.End())
	}
}

func TestHugeLine(t *testing.T) {
	const size = 64 << 20
	pad := io.LimitReader(zeros('x'), size-2)
	file := io.MultiReader(strings.NewReader(head+entryLine("a", "")+"\n\""), pad, strings.NewReader("\"\n"+entryLine("b", "a")+"\n"))
	var got []string
	for r, err := range Read("f", file, Options{}) {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, fmt.Sprintf("%d %s", r.Seq, r.ID))
	}
	want := []string{"1 ", "2 a", "f:3: a line of 67108865 bytes, the limit is 33554432 (67108865 bytes, after record 2)", "3 b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type zeros byte

func (z zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(z)
	}
	return len(p), nil
}

// A line of just the limit is read, one byte more is not.
func TestLimit(t *testing.T) {
	for _, over := range []int{0, 1} {
		line := `"` + strings.Repeat("x", storekit.MaxRecord-2+over) + `"`
		recs, damage := readAll(t, "f", []byte(line+"\n"), Options{Form: FormNative})
		if len(recs) != 1-over || len(damage) != over {
			t.Errorf("%d bytes: %d records, %v", len(line), len(recs), damage)
		}
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	r := io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken))
	n := 0
	var last error
	for _, err := range Read("f", r, Options{}) {
		n++
		last = err
	}
	if n != 2 || !errors.Is(last, broken) || !strings.Contains(last.Error(), "f: after line 1") {
		t.Errorf("%d items, the last %v", n, last)
	}
}

// A long file needs no more memory than a short one.
func TestStreamingMemory(t *testing.T) {
	chunk := transcript(1 << 20)
	const total = 100
	r, w := io.Pipe()
	go func() {
		var err error
		for i := 0; i < total && err == nil; i++ {
			_, err = w.Write(chunk)
		}
		w.CloseWithError(err)
	}()
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, peak, n := live(), uint64(0), 0
	for _, err := range Read("f", r, Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%10000 == 0 {
			peak = max(peak, live())
		}
	}
	if n < 50*total {
		t.Fatalf("%d records", n)
	}
	if grown := int64(peak) - int64(before); peak == 0 || grown > 4<<20 {
		t.Errorf("in the middle of %d MB, %d KB more are in use", total*len(chunk)>>20, grown>>10)
	}
}

func TestHeaderless(t *testing.T) {
	h := &session.Header{ID: "s", Key: "k"}
	for _, c := range []struct {
		name, file string
		want       []string // id and parent of each
		form       Form
		version    int
	}{
		{"with ids", entryLine("a", "x") + "\n" + entryLine("b", "a") + "\n", []string{"H", "a<x", "b<a"}, FormNative, 3},
		{"without ids", `{"type":"message","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"user","content":"q"}}` + "\n" +
			`{"type":"compaction","timestamp":"2026-11-15T00:32:00.134Z","summary":"s","firstKeptEntryIndex":0}`, []string{"H", "00000000<", "00000001<00000000"}, FormNative, 1},
		{"scalars first", "7\n" + head + entryLine("a", "x"), []string{"H", "<", "H", "a<x"}, FormNative, 3},
		{"with a header", head + entryLine("a", "x"), []string{"H", "a<x"}, FormNative, 3},
		{"empty", "", []string{"H"}, "", 0},
		{"claw0", `{"type": "user", "content": "hi", "ts": 1794704446.1}`, []string{"H", "0000000179e83b69<"}, FormClaw0, 0},
	} {
		s := NewScanner("f", strings.NewReader(c.file), Options{Header: h})
		var got []string
		for s.Next() {
			r := s.Record()
			if _, ok := r.Body.(session.Header); ok {
				got = append(got, "H")
				continue
			}
			got = append(got, r.ID+"<"+r.Parent)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || s.Form() != c.form || s.Version() != c.version {
			t.Errorf("%s: %q, version %d (-want +got):\n%s", c.name, s.Form(), s.Version(), diff)
		}
	}
}

// What pi writes back of a version 1 or 2 line is what JavaScript makes of
// it.
func TestUpgradeAsJavaScript(t *testing.T) {
	file := `{"type":"session","id":"s","cwd":"\/p"}
17
{"type":"message", "id":"old","message":{"role":"hookMessage","content":"\u00e9\u2028\ud83d\ude00\ud800\u0001\u001f\"\/"},"n":[1.0,-0,1e21,1E-7,123456789012345678901,0.1,1e400,12.50]}
{"b":1,"10":2,"type":"compaction","9":3,"b":4,"firstKeptEntryIndex":2,"01":5}
{"type":"compaction","firstKeptEntryIndex":0}
{"type":"compaction","firstKeptEntryIndex":9}
{"type":"compaction","firstKeptEntryIndex":"2"}
`
	want := `{"type":"session","id":"s","cwd":"/p","version":3}
17
{"type":"message","id":"00000002","message":{"role":"custom","content":"é` + "\u2028" + `😀\ud800\u0001\u001f\"/"},"n":[1,0,1e+21,1e-7,123456789012345680000,0.1,null,12.5],"parentId":null}
{"9":3,"10":2,"b":4,"type":"compaction","01":5,"id":"00000003","parentId":"00000002","firstKeptEntryId":"00000002"}
{"type":"compaction","id":"00000004","parentId":"00000003"}
{"type":"compaction","id":"00000005","parentId":"00000004"}
{"type":"compaction","firstKeptEntryIndex":"2","id":"00000006","parentId":"00000005"}
`
	recs, damage := readAll(t, "f", []byte(file), Options{})
	if diff := cmp.Diff(want, encodeAll(t, recs)); diff != "" || damage != nil {
		t.Errorf("%v (-want +got):\n%s", damage, diff)
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		line string
		want Form
	}{
		{"", ""},
		{"no json\n\n[]\n" + head, FormNative},
		{`{"type":"session","id":"s","timestamp":"2026"}`, FormNative},
		{`{"type":"message","message":{"role":"user"}}`, FormNative},
		{`{"type":"message","text":"hello"}`, ""},
		{`{"type": "session", "id": "c", "key": "main:cli:user", "created": "2026-11-15T01:00:47+00:00"}`, FormClaw0Old},
		{`{"type":"session","id":"c","key":"k","created":1794704446.1,"goclaw":{}}`, FormClaw0},
		{`{"type": "user", "content": "q", "ts": "2026-11-15T01:00:47+00:00"}`, FormClaw0Old},
		{`{"type": "user", "content": "q", "ts": 1.5}`, FormClaw0},
		{`{"type": "assistant", "content": "a"}`, FormClaw0Old},
		{`{"type": "assistant", "content": []}`, FormClaw0},
		{`{"type": "tool_result", "tool_use_id": "t", "output": "x"}`, FormClaw0Old},
		{`{"type":"user","message":{"role":"user","content":"q"},"uuid":"u","sessionId":"s"}`, ""},
		{`{"timestamp":"2026","type":"session_meta","payload":{"id":"s"}}`, ""},
	} {
		got, err := Detect(strings.NewReader(c.line))
		if got != c.want || err != nil {
			t.Errorf("Detect(%s) = %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}

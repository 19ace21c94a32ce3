package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func parsed(t *testing.T, s string) *Tape {
	t.Helper()
	var tape Tape
	if err := tape.Parse([]byte(s), true); err != nil {
		t.Fatal(err)
	}
	return &tape
}

func TestTape(t *testing.T) {
	v := parsed(t, ` {"a":1,"\u0062":"x\n\ud83d\ude00\ud800","list":[true,[],"12",1e2,-0.5],"a":{"deep":null}} `)
	if got := string(v.Raw(v.Get(0, "a"))); got != `{"deep":null}` {
		t.Errorf("the last of two keys is %s", got)
	}
	if got := v.String(v.Get(0, "b")); got != "x\n😀\uFFFD" {
		t.Errorf("b is %q", got)
	}
	var got []string
	list := v.Get(0, "list")
	for e := range v.Values(list) {
		got = append(got, fmt.Sprint(string(v.Raw(e)), v.Kind(e), v.True(e), v.Int(e), v.Float(e)))
	}
	want := `true1 true 0 0|[]4 false 0 0|"12"3 false 12 0|1e22 false 100 100|-0.52 false 0 -0.5`
	if g := strings.Join(got, "|"); g != want || v.Len(list) != 5 {
		t.Errorf("the list is %s, want %s", g, want)
	}
	none := v.Get(v.Get(0, "missing"), "deeper")
	if v.Kind(none) != Null || v.String(none) != "" || v.Int(none) != 0 || v.True(none) || v.Len(none) != 0 || v.Is(none, "") {
		t.Error("a missing value reads as something")
	}
}

// FuzzParse: what encoding/json accepts is accepted, and nothing else, invalid
// UTF-8 aside; and every string means the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"\u00e9\"\\x"],"b":null}`, `[[[]]]`, `"\ud800"`, `01`, `{"a":}`, ` 1 `, "\"\xff\"", `tru`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var tape Tape
		err := tape.Parse(b, false)
		if want := json.Valid(b) && bytes.Equal(bytes.ToValidUTF8(b, nil), b); want != (err == nil) {
			t.Fatalf("Parse(%q) says %v, encoding/json %v", b, err, want)
		}
		if err != nil {
			return
		}
		for n := range tape.nodes {
			var s string
			if tape.Kind(n) == String && (json.Unmarshal(tape.Raw(n), &s) != nil || s != tape.String(n) || s != string(tape.Text(n))) {
				t.Fatalf("%s means %q, want %q", tape.Raw(n), tape.String(n), s)
			}
		}
	})
}

// lines are messages as agents write them, half a megabyte.
func lines() (out [][]byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(`the session log holds every record "quoted" func(r *Reader) error { return nil } path/to/file.go:42 → 你好 and so on`)
	for size := 0; size < 512<<10; {
		var text strings.Builder
		for n := rng.IntN(4 << 10); text.Len() < n; {
			text.WriteString(words[rng.IntN(len(words))] + " \n"[:1+rng.IntN(9)/8])
		}
		l := fmt.Appendf(nil, `{"type":"message","id":"%08x","parentId":"%08x","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"assistant","content":[{"type":"text","text":%s},{"type":"toolCall","id":"toolu_1","name":"read","arguments":{"path":"src/main.go","limit":200}}],"provider":"anthropic","model":"claude","usage":{"input":1000,"output":200,"cacheRead":50000,"cost":{"input":0.003,"total":0.02}},"stopReason":"toolUse"}}`,
			rng.Uint32(), rng.Uint32(), AppendString(nil, text.String()))
		size += len(l)
		out = append(out, l)
	}
	return out
}

func benchmark(b *testing.B, read func(line []byte) error) {
	list := lines()
	b.SetBytes(int64(len(bytes.Join(list, nil))))
	b.ReportAllocs()
	for b.Loop() {
		for _, l := range list {
			if err := read(l); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkParse is the table of docs/dependencies.md. GOEXPERIMENT=jsonv2 adds
// jsontext.
func BenchmarkParse(b *testing.B) {
	b.Run("tape", func(b *testing.B) {
		var t Tape
		benchmark(b, func(l []byte) error { return t.Parse(l, false) })
	})
	b.Run("tape-and-texts", func(b *testing.B) {
		var t Tape
		benchmark(b, func(l []byte) error {
			err := t.Parse(l, false)
			for n := range t.nodes {
				t.Text(n)
			}
			return err
		})
	})
	b.Run("encoding-json-valid", func(b *testing.B) {
		benchmark(b, func(l []byte) error {
			if !json.Valid(l) {
				return fmt.Errorf("not valid")
			}
			return nil
		})
	})
	b.Run("encoding-json-struct", func(b *testing.B) {
		benchmark(b, func(l []byte) error {
			var v line
			return json.Unmarshal(l, &v)
		})
	})
	b.Run("encoding-json-any", func(b *testing.B) {
		benchmark(b, func(l []byte) error {
			var v any
			return json.Unmarshal(l, &v)
		})
	})
}

// line is what encoding/json has to be asked for.
type line struct {
	Type, ID, ParentID, Timestamp string
	Message                       struct {
		Role    string
		Content []struct {
			Type, Text, ID, Name string
			Arguments            json.RawMessage
		}
		Provider, Model, StopReason string
		Usage                       struct {
			Input, Output, CacheRead int
			Cost                     struct{ Input, Total float64 }
		}
	}
}

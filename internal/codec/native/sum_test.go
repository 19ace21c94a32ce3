package native

import (
	"strings"
	"testing"

	"goclaw/llm"
	"goclaw/session"
)

// Every flip of a bit in a sealed line is an error of Check, or makes the line
// something that is not JSON.
func TestCheckFindsEveryFlip(t *testing.T) {
	line := string(Seal([]byte(`{"type":"message","id":"a","message":{"role":"user","content":"Ünï <b> \u0000 1.50"}}`)))
	if sealed, err := Check([]byte(line)); !sealed || err != nil {
		t.Fatalf("%s: sealed %v, %v", line, sealed, err)
	}
	found, broken := 0, 0
	for i := range 8 * len(line) {
		b := []byte(line)
		b[i/8] ^= 1 << (i % 8)
		var d Decoder
		if d.Line(b, false) != nil {
			broken++
			continue
		}
		sealed, err := Check(b)
		if !sealed || err == nil {
			t.Errorf("bit %d of byte %d: sealed %v, %v: %s", i%8, i/8, sealed, err, b)
		}
		found++
	}
	t.Logf("%d flips were found by the checksum, %d lines are no JSON", found, broken)
	if found == 0 || broken == 0 {
		t.Error("the test flipped nothing")
	}
}

// Lines of others have no checksum, whatever they end with.
func TestCheckOfOthers(t *testing.T) {
	for _, line := range []string{
		``, `{}`, `null`, `7`, `{"a":1}`, `{"crc32c":"00000000"}`, `{"a":{"b":1,"crc32c":"1f2e3d4c"}}`, `{"a":1,"crc32c":7}`,
		`{"a":1, "crc32c":"1f2e3d4c"}`, `{"a":1,"crc32c":"1f2e3d4"}`, `{"a":1,"md5sum":"1f2e3d4c"}`, strings.Repeat(" ", 40),
	} {
		if sealed, err := Check([]byte(line)); sealed || err != nil {
			t.Errorf("%s: sealed %v, %v", line, sealed, err)
		}
		if bare, sealed := Unseal([]byte(line)); sealed || string(bare) != line {
			t.Errorf("%s became %s", line, bare)
		}
	}
}

func TestUnseal(t *testing.T) {
	const line = `{"type":"leaf","id":"a"}`
	sealed := string(Seal([]byte(line)))
	for _, c := range []struct {
		line string
		good bool
	}{
		{sealed, true},
		{"\xef\xbb\xbf" + sealed + "\r", true}, // an editor was here
		{strings.Replace(sealed, "leaf", "beaf", 1), false},
		{strings.Replace(sealed, `"crc32c"`, `"crc32b"`, 1), false},
	} {
		want := line
		if strings.Contains(c.line, "beaf") {
			want = strings.Replace(line, "leaf", "beaf", 1)
		}
		if bare, good := Unseal([]byte(c.line)); string(bare) != want || good != c.good {
			t.Errorf("%q became %s, %v", c.line, bare, good)
		}
	}
	for _, odd := range []string{``, `{}`, `[1]`, `7`} {
		if got := string(Seal([]byte(odd))); got != odd {
			t.Errorf("%s is sealed as %s", odd, got)
		}
	}
}

// BenchmarkEncode is what a checksum adds to a message of 1 KB.
func BenchmarkEncode(b *testing.B) {
	r := session.Record{ID: "1794702720140_5fbef7c9", Parent: "1794702720134_00000000", Body: session.Message{Message: llm.UserText(strings.Repeat("0123456789abcde ", 64))}}
	for name, encode := range map[string]func(session.Record) ([]byte, error){"bare": Bare, "sealed": Encode} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := encode(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

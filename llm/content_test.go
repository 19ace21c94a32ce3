package llm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

func TestDecodeText(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(strings.Repeat("words ", 1000)))
	z.Close()
	random := make([]byte, 1000)
	rng := rand.NewChaCha8([32]byte{7})
	rng.Read(random)
	for name, c := range map[string]struct {
		in, want string
		no       bool
	}{
		"nothing":               {"", "", false},
		"text":                  {"a\tb\r\nc ä 日本 \x1b[1mbold", "a\tb\r\nc ä 日本 \x1b[1mbold", false},
		"byte order mark":       {"\xef\xbb\xbfhi", "hi", false},
		"UTF-16, little":        {"\xff\xfeh\x00\xe4\x00\n\x00", "hä\n", false},
		"UTF-16, big":           {"\xfe\xff\x00h\x00\xe4\xd8\x3d\xde\x00", "hä😀", false},
		"Latin-1":               {"caf\xe9 au lait", "caf\uFFFD au lait", false},
		"cut in a character":    {"all is well and g\xc3", "all is well and g\uFFFD", false},
		"NUL":                   {"find\x00print0\x00", "", true},
		"NUL, late":             {strings.Repeat("script\n", 9000) + "\x00", "", true},
		"UTF-16 of nothing":     {"\xff\xfe\x00\x00\x01\x00", "", true},
		"random":                {string(random), "", true},
		"random after the mark": {"\xff\xfe" + string(random), "", true},
		"gzip":                  {zipped.String(), "", true},
		"ELF":                   {"\x7fELF\x02\x01\x01\x00", "", true},
		"PDF":                   {"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n<<>>\nendobj\n", "", true},
	} {
		if got, ok := llm.DecodeText([]byte(c.in)); got != c.want || ok == c.no {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, ok, c.want, !c.no)
		}
	}
}

func TestNewImage(t *testing.T) {
	for _, im := range llmtest.Images {
		data, err := base64.StdEncoding.DecodeString(im.Data)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := llm.NewImage(data); err != nil || got != im {
			t.Errorf("%s: %v", im.MIME, err)
		}
		if _, err := llm.NewImage(data[:len(data)-12]); err == nil || !strings.Contains(err.Error(), im.MIME) {
			t.Errorf("%s cut short: %v", im.MIME, err)
		}
	}
	for _, text := range []string{"", "hello", "\x89PN", "%PDF-1.7", "RIFF", "BM"} {
		if _, err := llm.NewImage([]byte(text)); !errors.Is(err, llm.ErrNoImage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

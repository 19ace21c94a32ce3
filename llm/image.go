package llm

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"goclaw/internal/text"
)

// The largest image that every API takes: bytes of base64, and pixels a side.
const (
	maxImageBytes = 5 << 20
	maxImageSide  = 8000
)

// picture returns im in a form that can be sent, or a text that says why it
// cannot. Its type is taken from its bytes: APIs refuse a wrong one.
func picture(im Image) Block {
	out := func(why string) Block { return Text{Text: "[image left out: " + why + "]"} }
	if im.Data == "" {
		return out("it is empty")
	}
	if rest, ok := strings.CutPrefix(im.Data, "data:"); ok {
		if im.MIME, im.Data, ok = strings.Cut(rest, ";base64,"); !ok {
			return out("its data is not base64")
		}
	}
	data, ok := standard(im.Data)
	if !ok {
		return out("its data is not base64")
	}
	im.Data = data
	mime, w, h := im.head()
	switch {
	case mime == "" || w <= 0 || h <= 0:
		return out(fmt.Sprintf("%.80q cannot be read", im.MIME))
	case len(data) > maxImageBytes:
		return out(fmt.Sprintf("%s of %s, more than the %s that can be sent", mime, text.Bytes(int64(len(data))), text.Bytes(maxImageBytes)))
	case w > maxImageSide || h > maxImageSide:
		return out(fmt.Sprintf("%s of %d x %d pixels, more than the %d a side that can be sent", mime, w, h, maxImageSide))
	}
	im.MIME = mime
	return im
}

// standard returns data as base64 with padding and without line breaks, and
// whether it is base64.
func standard(data string) (string, bool) {
	if isStandard(data) {
		return data, true
	}
	data = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, data)
	if n := len(data) % 4; n > 0 {
		data += "==="[:4-n]
	}
	return data, isStandard(data)
}

func isStandard(data string) bool {
	body := strings.TrimSuffix(strings.TrimSuffix(data, "="), "=")
	if len(data)%4 != 0 || len(body)%4 == 1 || body == "" {
		return false
	}
	for i := range len(body) {
		c := body[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	return true
}

// Size reads width and height from the head of a PNG, GIF, JPEG or WebP. They are
// 0 if im is something else.
func (im Image) Size() (w, h int) {
	_, w, h = im.head()
	return w, h
}

// headBytes is how much of an image is decoded to find its size. In a JPEG the
// size comes after the camera's own data and a thumbnail.
const headBytes = 256 << 10

// head reads the type and the size of an image from its first bytes.
func (im Image) head() (mime string, w, h int) {
	b := decodeHead(im.Data, 64)
	switch {
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0xd8:
		mime = "image/jpeg"
		w, h = jpegSize(decodeHead(im.Data, headBytes))
	case len(b) >= 24 && string(b[:8]) == "\x89PNG\r\n\x1a\n":
		mime = "image/png"
		w, h = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
	case len(b) >= 10 && (string(b[:6]) == "GIF87a" || string(b[:6]) == "GIF89a"):
		mime = "image/gif"
		w, h = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	case len(b) >= 30 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		mime = "image/webp"
		w, h = webpSize(b)
	}
	return mime, w, h
}

// decodeHead decodes about n bytes of base64 text, as far as it is valid.
func decodeHead(data string, n int) []byte {
	if m := (n + 2) / 3 * 4; len(data) > m {
		data = data[:m]
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	k, err := base64.StdEncoding.Decode(out, []byte(data))
	if err != nil && k == 0 {
		k, _ = base64.RawStdEncoding.Decode(out, []byte(data))
	}
	return out[:k]
}

// jpegSize walks the segments to the frame header.
func jpegSize(b []byte) (w, h int) {
	for i := 2; i+9 < len(b); {
		if b[i] != 0xff {
			return 0, 0
		}
		m := b[i+1]
		switch {
		case m == 0xff: // fill
			i++
			continue
		case m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc:
			return int(binary.BigEndian.Uint16(b[i+7:])), int(binary.BigEndian.Uint16(b[i+5:]))
		case m == 0x01 || m >= 0xd0 && m <= 0xd8:
			i += 2
			continue
		}
		i += 2 + int(binary.BigEndian.Uint16(b[i+2:]))
	}
	return 0, 0
}

// webpSize reads the three forms of a WebP's first chunk.
func webpSize(b []byte) (w, h int) {
	switch string(b[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		n := binary.LittleEndian.Uint32(b[21:])
		return int(n&0x3fff) + 1, int(n>>14&0x3fff) + 1
	case "VP8X":
		n := func(i int) int { return int(b[i]) | int(b[i+1])<<8 | int(b[i+2])<<16 }
		return n(24) + 1, n(27) + 1
	}
	return 0, 0
}

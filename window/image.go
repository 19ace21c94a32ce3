package window

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"goclaw/llm"
)

// imageTokens is what a picture costs when its size cannot be read.
const imageTokens = 1500

// Pictures are scaled down to this many pixels at their longer edge and to
// this many tokens before they are read; 750 pixels are a token.
const (
	maxEdge        = 1568
	maxImageTokens = 1600
	pixelsPerToken = 750
)

// ImageTokens is what im costs, by its width and height.
func ImageTokens(im llm.Image) int {
	w, h := imageSize(im.Data)
	if w <= 0 || h <= 0 {
		return imageTokens
	}
	fw, fh := float64(w), float64(h)
	if long := max(fw, fh); long > maxEdge {
		fw, fh = fw*maxEdge/long, fh*maxEdge/long
	}
	return min(maxImageTokens, max(1, int(math.Ceil(fw*fh/pixelsPerToken))))
}

// headBytes is how much of a picture is decoded to find its size. In a JPEG
// the size stands behind the camera's own data and a thumbnail.
const headBytes = 256 << 10

// imageSize reads width and height from the head of a PNG, GIF, JPEG or WebP
// in base64; zeros where it is none of them.
func imageSize(data string) (w, h int) {
	b := decodeHead(data, 64)
	if len(b) >= 2 && b[0] == 0xff && b[1] == 0xd8 {
		return jpegSize(decodeHead(data, headBytes))
	}
	switch {
	case len(b) >= 24 && string(b[:8]) == "\x89PNG\r\n\x1a\n":
		return int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
	case len(b) >= 10 && (string(b[:6]) == "GIF87a" || string(b[:6]) == "GIF89a"):
		return int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	case len(b) >= 30 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return webpSize(b)
	}
	return 0, 0
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

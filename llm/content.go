package llm

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"goclaw/internal/text"
)

// ErrNoImage is the error of NewImage for data that is not an image.
var ErrNoImage = errors.New("not a PNG, JPEG, GIF or WebP")

// MaxImage is the size of the largest image that every API takes, in bytes.
const MaxImage = maxImageBytes / 4 * 3

// NewImage returns an image that every API takes. An image that they would
// refuse is an error: it would be sent and refused again in every later turn.
func NewImage(data []byte) (Image, error) {
	im := Image{Data: base64.StdEncoding.EncodeToString(data)}
	mime, w, h := im.head()
	whole := false
	switch mime {
	case "":
		for _, begin := range []string{"\x89PNG\r\n", "\xff\xd8\xff", "GIF8"} {
			if bytes.HasPrefix(data, []byte(begin)) {
				return Image{}, errors.New("the image is damaged: it is cut short")
			}
		}
		return Image{}, ErrNoImage
	case "image/png":
		whole = wholePNG(data)
	case "image/jpeg":
		whole = bytes.Contains(data, []byte{0xff, 0xd9})
	case "image/gif":
		whole = bytes.HasSuffix(bytes.TrimRight(data, "\x00"), []byte{0x3b})
	case "image/webp":
		whole = uint64(binary.LittleEndian.Uint32(data[4:]))+8 <= uint64(len(data))
	}
	switch im.MIME = mime; {
	case len(data) > MaxImage:
		return Image{}, fmt.Errorf("the image (%s, %s) is larger than the %s that can be sent; make a smaller copy", mime, text.Bytes(int64(len(data))), text.Bytes(MaxImage))
	case !whole:
		return Image{}, fmt.Errorf("the image (%s) is damaged or cut short", mime)
	case w <= 0 || h <= 0:
		return Image{}, fmt.Errorf("the image (%s) is damaged: it has no pixels", mime)
	case w > maxImageSide || h > maxImageSide:
		return Image{}, fmt.Errorf("the image (%s, %d x %d pixels) exceeds the %d pixels a side that can be sent; make a smaller copy", mime, w, h, maxImageSide)
	}
	return im, nil
}

// wholePNG reports whether the chunks of a PNG are there up to the last one, and
// undamaged: their checksums say so.
func wholePNG(data []byte) bool {
	pixels := false
	for at := 8; at+12 <= len(data); {
		n := int64(binary.BigEndian.Uint32(data[at:]))
		if n > int64(len(data)-at-12) {
			return false
		}
		end := at + 8 + int(n)
		if crc32.ChecksumIEEE(data[at+4:end]) != binary.BigEndian.Uint32(data[end:]) {
			return false
		}
		switch string(data[at+4 : at+8]) {
		case "IDAT":
			pixels = true
		case "IEND":
			return pixels
		}
		at = end + 4
	}
	return false
}

// DecodeText returns data as text, and whether it is text: UTF-8, or UTF-16 with
// a byte order mark. Bytes that are not UTF-8 become U+FFFD as long as they are
// few, as in a text of another encoding.
func DecodeText(data []byte) (text string, ok bool) {
	wide := false
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		data, wide = decodeWide(data[2:], binary.LittleEndian), true
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		data, wide = decodeWide(data[2:], binary.BigEndian), true
	case bytes.HasPrefix(data, []byte("%PDF-")):
		return "", false
	default:
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	bad := 0
	for b := data; len(b) > 0; {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == 0 || wide && r == utf8.RuneError:
			return "", false
		case r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\n\r\t\f\x1b\b", r):
			bad++
		}
		b = b[size:]
	}
	if bad*10 > len(data)*3 {
		return "", false
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), true
}

func decodeWide(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

package storekit

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// maxName is the longest name that FileName returns. File systems take 255
// bytes; suffixes and temporary names need room.
const maxName = 180

// FileName returns a file name for text that no other text shares, even on
// file systems that ignore case, and that cannot leave its folder. Lower-case
// letters, digits, '-' and inner '.' stand for themselves; everything else is
// "%" and hex. A name that would be too long ends in "%~" and the text's
// SHA-256.
func FileName(text string) string {
	if text == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.' && i > 0 && i < len(text)-1:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	name := b.String()
	if devices.MatchString(name) {
		name = "%" + name[:1] + "%" + name[1:]
	}
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(text))
		name = name[:maxName-2-2*len(sum)] + "%~" + hex.EncodeToString(sum[:])
	}
	return name
}

const hexDigits = "0123456789abcdef"

// devices are the names by which Windows opens devices.
var devices = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

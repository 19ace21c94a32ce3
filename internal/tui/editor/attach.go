package editor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"goclaw/internal/attach"
	"goclaw/internal/text"
	"goclaw/internal/transcript"
	"goclaw/llm"
)

// What is attached at most: a longer text is read by the model's tools, in
// pieces.
const (
	maxText     = 64 << 10
	maxAttached = 20
)

// attached returns the files that text names with an @, and what to tell about
// each. What names no file is only text.
func attached(read func(string, int) ([]byte, error), text string) (blocks []llm.Block, notes []string) {
	if read == nil {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, names := range refs(text) {
		for _, name := range names {
			if seen[name] {
				break
			}
			data, err := read(name, llm.MaxImage)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			seen[name] = true
			if len(seen) > maxAttached {
				return blocks, append(notes, fmt.Sprintf("only the first %d files are attached", maxAttached))
			}
			b, note := block(name, data, err)
			if b != nil {
				blocks = append(blocks, b)
			}
			notes = append(notes, note)
			break
		}
	}
	return blocks, notes
}

func block(name string, data []byte, err error) (llm.Block, string) {
	shown := transcript.Name(name)
	if err != nil {
		return nil, fmt.Sprintf("%s is named, not attached: %v", shown, err)
	}
	b, _, err := attach.File(name, data)
	switch b := b.(type) {
	case llm.Image:
		w, h := b.Size()
		return b, fmt.Sprintf("attached %s (%dx%d)", shown, w, h)
	case llm.Text:
		if len(data) > maxText {
			return nil, fmt.Sprintf("%s is named, not attached: it has %s, and the model can read it in pieces", shown, text.Bytes(int64(len(data))))
		}
		return b, fmt.Sprintf("attached %s (%s)", shown, transcript.Count(strings.Count(strings.TrimSuffix(string(data), "\n"), "\n")+1, "line"))
	}
	return nil, transcript.Printable(err.Error())
}

// refs returns what text may name with an @: for each place, the names in the
// order in which they are tried, since a sentence may end after one.
func refs(text string) (out [][]string) {
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '@')
		if i < 0 {
			break
		}
		from := at + i
		at = from + 1
		if !beginsRef(text[:from]) {
			continue
		}
		rest := text[at:]
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if end := strings.IndexAny(quoted, "\"\n"); end > 0 && quoted[end] == '"' {
				out = append(out, []string{quoted[:end]})
				at += end + 2
			}
			continue
		}
		word := rest
		if end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || isChip(r) }); end >= 0 {
			word = rest[:end]
		}
		at += len(word)
		var names []string
		for word != "" {
			names = append(names, word)
			short := strings.TrimRight(word, ".,;:!?)]}>'\"`")
			if short == word {
				break
			}
			word = short
		}
		if len(names) > 0 {
			out = append(out, names)
		}
	}
	return out
}

package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// One bad block ends a conversation: APIs refuse every later request that holds
// it. So every block that is sent passes Sendable, and its ids pass CallID. Both
// leave valid content alone and are deterministic, and these rules are nowhere
// else.

// Sendable returns the blocks of m in the form that every API accepts.
//
//   - A user message holds texts, images and results, an assistant message
//     texts, thinking and calls; a text is never blank and thinking is signed.
//   - A call has a name of allowed letters and an object for arguments.
//   - A result is not empty, and a failed one has only text: its images follow
//     the results.
//   - An image that an API would refuse becomes a text that says why.
//
// It may return no blocks.
func Sendable(m Message) []Block {
	blocks, _ := Trace(m)
	return blocks
}

// Trace is Sendable, and says from which block of m each was made.
func Trace(m Message) (blocks []Block, from []int) {
	blocks, from = make([]Block, 0, len(m.Blocks)), make([]int, 0, len(m.Blocks))
	put := func(i int, b ...Block) {
		blocks = append(blocks, b...)
		for range b {
			from = append(from, i)
		}
	}
	type images struct {
		i      int
		blocks []Block
	}
	var after []images // that follow the results
	flush := func() {
		for _, im := range after {
			put(im.i, im.blocks...)
		}
		after = nil
	}
	for i, block := range m.Blocks { // a block that stays as it is is not copied
		if r, ok := block.(ToolResult); ok && m.Role != Assistant {
			r, pictures := result(r)
			put(i, r)
			if len(pictures) > 0 {
				after = append(after, images{i, pictures})
			}
			continue
		}
		flush()
		switch b := block.(type) {
		case Text:
			if !Blank(b.Text) {
				put(i, block)
			}
		case Image:
			if m.Role != Assistant {
				put(i, picture(b))
			}
		case Thinking:
			if m.Role == Assistant && b.Signature != "" {
				put(i, block)
			}
		case ToolCall:
			if m.Role == Assistant {
				if name, args := CallName(b.Name), Object(b.Args); name != b.Name || !bytes.Equal(args, b.Args) {
					b.Name, b.Args = name, args
					block = b
				}
				put(i, block)
			}
		}
	}
	flush()
	return blocks, from
}

// Blank reports whether an API treats text as white space. Python's definition,
// which Anthropic's API follows, includes four control characters that Unicode's
// does not.
func Blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }) == ""
}

// The texts of results that have none.
const (
	noOutput  = "(no output)"
	noReason  = "(the tool failed without saying why)"
	onlyImage = "(the tool failed; what it showed follows)"
)

// result returns r in a form that can be sent, and the blocks that must follow
// it.
func result(r ToolResult) (_ ToolResult, images []Block) {
	var blocks []Block
	for _, b := range r.Blocks {
		switch b := b.(type) {
		case Text:
			if !Blank(b.Text) {
				blocks = append(blocks, b)
			}
		case Image:
			p := picture(b)
			if _, ok := p.(Image); ok && r.IsError {
				images = append(images, p)
			} else {
				blocks = append(blocks, p)
			}
		}
	}
	if len(images) > 0 {
		images = append([]Block{Text{Text: fmt.Sprintf("[from %s, call %s]", CallName(r.Name), CallID(r.CallID))}}, images...)
	}
	if len(blocks) == 0 {
		text := noOutput
		switch {
		case len(images) > 0:
			text = onlyImage
		case r.IsError:
			text = noReason
		}
		blocks = []Block{Text{Text: text}}
	}
	r.Blocks = blocks
	return r, images
}

// maxCallName and maxCallID are the longest that every API takes.
const (
	maxCallName = 64
	maxCallID   = 40
)

// noName replaces a name without a letter that an API takes.
const noName = "unknown_tool"

// CallName returns the name of a tool if every API takes it, else a name made
// from it.
func CallName(name string) string {
	clean := letters(name)
	if strings.Trim(clean, "_-") == "" && clean != name || name == "" {
		return noName
	}
	return clean[:min(len(clean), maxCallName)]
}

// CallID returns id if every API takes it, else an id made from it. Different ids
// stay different.
func CallID(id string) string {
	clean := letters(id)
	if clean == id && id != "" && len(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return clean[:min(len(clean), maxCallID-17)] + "_" + hex.EncodeToString(sum[:8])
}

// letters replaces the characters that APIs do not allow in ids and names.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
}

// rawKey is the key of the text of arguments that are no JSON object.
const rawKey = "_raw"

// maxDepth is how deep arguments may be nested. The parsers of the APIs give
// up between 200 and 1000.
const maxDepth = 100

// Object returns args if they are a JSON object that every API can parse. Empty
// args become the empty object, half a surrogate pair becomes U+FFFD, and
// anything else becomes {"_raw": "the text"}: the call keeps its place, no
// tool's schema accepts it, and the model learns what it did wrong.
func Object(args json.RawMessage) json.RawMessage {
	if !utf8.Valid(args) {
		args = bytes.ToValidUTF8(args, []byte("\uFFFD"))
	}
	t := bytes.TrimSpace(args)
	if len(t) == 0 || string(t) == "null" {
		return json.RawMessage("{}")
	}
	if t[0] == '{' && json.Valid(t) && !deep(t) {
		return whole(t)
	}
	raw, err := json.Marshal(map[string]string{rawKey: string(args)})
	if err != nil {
		panic(err) // a map of strings always has a JSON form
	}
	return raw
}

// deep reports whether valid JSON is nested too deeply.
func deep(t []byte) bool {
	if bytes.Count(t, []byte{'{'})+bytes.Count(t, []byte{'['}) <= maxDepth {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// whole replaces the escapes of half a surrogate pair in valid JSON.
func whole(t []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i+5 < len(t); {
		at := bytes.IndexByte(t[i:], '\\')
		if at < 0 {
			break
		}
		i += at
		high, ok := surrogate(t[i:])
		switch {
		case !ok:
			i += 2
			continue
		case high:
			if low, ok := surrogate(t[i+6:]); ok && !low {
				i += 12
				continue
			}
		}
		out = append(append(out, t[from:i]...), `\ufffd`...)
		i += 6
		from = i
	}
	if from == 0 {
		return t
	}
	return append(out, t[from:]...)
}

// surrogate reports whether t begins with the escape of one half of a surrogate
// pair, and whether that is the first half.
func surrogate(t []byte) (high, ok bool) {
	if len(t) < 6 || t[0] != '\\' || t[1] != 'u' {
		return false, false
	}
	n, err := strconv.ParseUint(string(t[2:6]), 16, 16)
	return n < 0xdc00, err == nil && n >= 0xd800 && n < 0xe000
}

package editor

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"goclaw/internal/attach"
	"goclaw/internal/transcript"
	"goclaw/llm"
)

// A chip stands for something that is sent and not shown in full: a large
// paste, an image, or the output of a command. In the text it is one character of
// a private range, which nothing that is typed or pasted can hold.
const (
	firstChip = rune(0xF0000)
	lastChip  = rune(0xFFFFD)
)

func isChip(r rune) bool { return r >= firstChip && r <= lastChip }

type chip struct {
	label string    // as shown, with its brackets
	text  string    // what is sent in its place; for an image its label
	block llm.Block // sent beside the text; nil: nothing
}

// chips are those made so far. They are kept after they were sent: the history
// may bring them back.
type chips struct {
	list   []chip
	images int
	pastes int
}

// add returns the character that stands for c.
func (c *chips) add(one chip) string {
	c.list = append(c.list, one)
	return string(firstChip + rune(min(len(c.list)-1, int(lastChip-firstChip))))
}

func (c *chips) of(r rune) chip {
	if i := int(r - firstChip); i >= 0 && i < len(c.list) {
		return c.list[i]
	}
	return chip{label: "[?]"}
}

func (c *chips) paste(text string) string {
	c.pastes++
	lines := transcript.Count(strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, "line")
	if strings.Count(text, "\n") < 2 {
		lines = transcript.Count(utf8.RuneCountInString(text), "character")
	}
	return c.add(chip{label: fmt.Sprintf("[pasted text #%d, %s]", c.pastes, lines), text: text})
}

// maxInline is how much text is shown as it is.
const maxInline = 64 << 10

// fitting returns text, or a chip for it if it is too long to be shown.
func (c *chips) fitting(text string) string {
	if len(text) > maxInline && !strings.ContainsFunc(text, isChip) {
		return c.paste(text)
	}
	return text
}

func (c *chips) image(im llm.Image) string {
	c.images++
	w, h := im.Size()
	kind := strings.ToUpper(strings.TrimPrefix(im.MIME, "image/"))
	label := fmt.Sprintf("[image #%d, %dx%d %s]", c.images, w, h, kind)
	return c.add(chip{label: label, text: label, block: im})
}

// command is a command that was run and what it printed.
func (c *chips) command(command, output string) string {
	name := []rune(strings.Join(strings.Fields(command), " "))
	if len(name) > 20 {
		name = append(name[:19], '…')
	}
	n := strings.Count(strings.TrimSuffix(output, "\n"), "\n") + 1
	return c.add(chip{label: fmt.Sprintf("[!%s, %s] ", string(name), transcript.Count(n, "line")), block: attach.Command(command, output)})
}

// shown returns text with the labels of its chips.
func (c *chips) shown(text string) string {
	return c.replace(text, func(one chip) string { return one.label })
}

// expanded returns text as it is sent.
func (c *chips) expanded(text string) string {
	return c.replace(text, func(one chip) string { return one.text })
}

func (c *chips) replace(text string, by func(chip) string) string {
	if !strings.ContainsFunc(text, isChip) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isChip(r) {
			b.WriteString(by(c.of(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// blocksIn returns what is sent beside text, each once.
func (c *chips) blocksIn(text string) (out []llm.Block) {
	seen := map[rune]bool{}
	for _, r := range text {
		if isChip(r) && !seen[r] {
			seen[r] = true
			if b := c.of(r).block; b != nil {
				out = append(out, b)
			}
		}
	}
	return out
}

// labelled returns text with chips for the labels of images.
func (c *chips) labelled(text string) string {
	for i, one := range c.list {
		if one.block != nil && one.text != "" {
			text = strings.ReplaceAll(text, one.label, string(firstChip+rune(i)))
		}
	}
	return text
}

// within is the opposite of shown: labels that are still as they were become
// the chips of before again.
func (c *chips) within(text, before string) string {
	for _, r := range before {
		if isChip(r) {
			text = strings.Replace(text, c.of(r).label, string(r), 1)
		}
	}
	return text
}

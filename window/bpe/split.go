package bpe

import "unicode/utf8"

// The patterns, with C for the contractions (?i:'s|'t|'re|'ve|'m|'ll|'d):
//
//	cl100k_base  C
//	             [^\r\n\p{L}\p{N}]?\p{L}+
//	             \p{N}{1,3}
//	             _?[^\s\p{L}\p{N}]+[\r\n]*       (_ is a space)
//	             \s*[\r\n]+
//	             \s+(?!\S)
//	             \s+
//	o200k_base   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+C?
//	             [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*C?
//	             \p{N}{1,3}
//	             _?[^\s\p{L}\p{N}]+[\r\n/]*
//	             \s*[\r\n]+
//	             \s+(?!\S)
//	             \s+
//
// Later releases of tiktoken spell cl100k_base with \s++$ before \s*[\r\n]: at the
// very end of a text a line break and the space after it are one piece. That is
// not followed here; o200k_base has no such rule.
//
// The first alternative that matches wins, each matches as much as it can, and
// together they match everywhere. The functions below return where the piece
// that begins at i ends; text is valid UTF-8 and i is within it.

func splitCL100K(text string, i int) int {
	c, w := classAt(text, i)
	if text[i] == '\'' {
		if end := contraction(text, i); end > i {
			return end
		}
	}
	if c&letter != 0 {
		return run(text, i+w, letter)
	}
	if c&(number|newline) == 0 {
		if end := run(text, i+w, letter); end > i+w {
			return end
		}
	}
	return splitRest(text, i, w, c, false)
}

func splitO200K(text string, i int) int {
	c, w := classAt(text, i)
	if c&(number|newline) == 0 {
		start := i
		if c&letter == 0 {
			start += w
		}
		// Upper-case runes as far as they go, noting where the last one ends that
		// is lower case as well: there the run can be parted.
		end, both := start, 0
		var next class
		for end < len(text) {
			var nw int
			if next, nw = classAt(text, end); next&upper == 0 {
				break
			}
			end += nw
			if next&lower != 0 {
				both = end
			}
		}
		switch {
		case end < len(text) && next&lower != 0:
			return contraction(text, run(text, end, lower))
		case both > 0:
			return contraction(text, both)
		case c == mark:
			// The first alternative does without its prefix before the second is
			// tried: a mark before upper case stands alone.
			return contraction(text, i+w)
		case end > start:
			return contraction(text, end)
		}
	}
	return splitRest(text, i, w, c, true)
}

// splitRest tries the alternatives that the patterns share: numbers, other
// signs, space. The rune at i has class c and width w; slash says whether
// signs take slashes along after them.
func splitRest(text string, i, w int, c class, slash bool) int {
	if c&number != 0 {
		end := i + w
		for range 2 {
			if end == len(text) {
				break
			}
			c, w := classAt(text, end)
			if c&number == 0 {
				break
			}
			end += w
		}
		return end
	}
	start := i
	if text[i] == ' ' {
		start++
	}
	end := start
	for end < len(text) {
		c, w := classAt(text, end)
		if c&(space|letter|number) != 0 {
			break
		}
		end += w
	}
	if end > start {
		for end < len(text) && (text[end] == '\n' || text[end] == '\r' || slash && text[end] == '/') {
			end++
		}
		return end
	}

	end = i
	last, line := i, 0 // where the last rune of space begins; where the last line ends
	for end < len(text) {
		c, w := classAt(text, end)
		if c&space == 0 {
			break
		}
		last = end
		end += w
		if c&newline != 0 {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end < len(text) && last > i:
		return last
	}
	return end
}

// contraction returns the end of the contraction at i, or i.
func contraction(text string, i int) int {
	if len(text)-i < 2 || text[i] != '\'' {
		return i
	}
	switch a := text[i+1] | 0x20; a {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		b := byte('e')
		if a == 'l' {
			b = 'l'
		}
		if len(text)-i > 2 && text[i+2]|0x20 == b {
			return i + 3
		}
	default:
		// The long s (U+017F) is an s when case is ignored.
		if len(text)-i > 2 && text[i+1] == 0xc5 && text[i+2] == 0xbf {
			return i + 3
		}
	}
	return i
}

// run returns where the runes from i on cease to be of one of the classes c.
func run(text string, i int, c class) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf { // classAt without the call
			if asciiClasses[b]&c == 0 {
				break
			}
			i++
			continue
		}
		k, w := classAt(text, i)
		if k&c == 0 {
			break
		}
		i += w
	}
	return i
}

package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A command that goes beyond these is taken to name something private: what
// cannot be looked through is asked about.
const (
	maxWords = 2000 // in a command
	maxBases = 20   // directories that it names
	maxGlob  = 1000 // files that one pattern fits
)

// names reports whether command, run in dir with env, names something private.
// It looks at words only: each is tried as a path, from dir and from every
// directory that the command names before it, with ~, variables and patterns
// resolved. A name that the command puts together as it runs is not seen.
func (f Fence) names(command, dir string, env []string) bool {
	if len(f.Private) == 0 {
		return false
	}
	words := pathWords(command, env)
	if len(words) > maxWords {
		return true
	}
	l, bases := f.survey(), []string{dir}
	for _, word := range words {
		if stdio[word] {
			continue
		}
		for _, base := range bases {
			path := word
			if !filepath.IsAbs(path) {
				path = base + string(filepath.Separator) + path
			}
			if l.encloses(path) || f.twin(path) || l.fits(path) {
				return true
			}
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				if path = resolve(path); !slices.Contains(bases, path) {
					bases = append(bases, path)
				}
			}
		}
		if len(bases) > maxBases {
			return true
		}
	}
	return false
}

// stdio are links into /proc, to what the command itself has open.
var stdio = map[string]bool{"/dev/stdin": true, "/dev/stdout": true, "/dev/stderr": true, "/dev/fd/0": true, "/dev/fd/1": true, "/dev/fd/2": true}

// fits reports whether a pattern fits something private.
func (l lines) fits(pattern string) bool {
	// A file that it would create counts as well: a folder that fits its
	// beginning is enough.
	for ; strings.ContainsAny(pattern, "*?["); pattern = filepath.Dir(pattern) {
		found, _ := filepath.Glob(pattern)
		if len(found) > maxGlob || slices.ContainsFunc(found, l.encloses) {
			return true
		}
	}
	return false
}

// quotes removes the characters that a shell removes from a word.
var quotes = strings.NewReplacer(`"`, "", `'`, "", `\`, "")

// pathWords returns what may be paths in a command.
func pathWords(command string, env []string) []string {
	text := os.Expand(quotes.Replace(command), func(name string) string {
		if v := variable(env, name); v != "" {
			return v
		}
		// ${NAME:-word} may be the word. What else is not known here is set by
		// the command itself, to something relative to what it names.
		if i := strings.IndexAny(name, ":-=+"); i >= 0 {
			return variable(env, name[:i]) + " " + strings.TrimLeft(name[i:], ":-=+") + " "
		}
		return "."
	})
	var out []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>(){}=,:`", r) }) {
		if len(word) > 2 && word[0] == '-' { // -Cdir: a flag and its value
			word = word[2:]
		}
		if rest, ok := strings.CutPrefix(word, "~"); ok { // another user's home is taken for this one's
			_, rest, _ = strings.Cut(rest, "/")
			word = variable(env, "HOME") + "/" + rest
		}
		out = append(out, word)
	}
	return out
}

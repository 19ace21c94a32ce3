package goclaw_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// pages returns the text of every Markdown file of the repository by its path.
func pages(t *testing.T) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		data, err := os.ReadFile(path)
		out[filepath.ToSlash(path)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("%d pages were found", len(out))
	}
	return out
}

// prose calls f for each line of text that is not code; table rows have row set.
func prose(text string, f func(n int, line string, row bool)) {
	code := false
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code {
			f(n, line, strings.HasPrefix(line, "|"))
		}
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inCode = regexp.MustCompile("`[^`]*`")
	title  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	tests  = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// anchor is what a heading is called in an address.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 0x7f:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestLinksExist(t *testing.T) {
	all := pages(t)
	for path, text := range all {
		prose(text, func(n int, line string, _ bool) {
			for _, m := range link.FindAllStringSubmatch(inCode.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				file, frag, _ := strings.Cut(m[1], "#")
				to := path
				if file != "" {
					to = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
				}
				if _, err := os.Stat(to); err != nil {
					t.Errorf("%s:%d: the link to %s leads nowhere", path, n, m[1])
				} else if frag != "" && !hasHeading(all[to], frag) {
					t.Errorf("%s:%d: %s has no heading #%s", path, n, to, frag)
				}
			}
		})
	}
}

func hasHeading(page, frag string) bool {
	for _, m := range title.FindAllStringSubmatch(page, -1) {
		if anchor(m[1]) == frag {
			return true
		}
	}
	return false
}

// Prose in docs and in CHANGELOG.md wraps at 100 columns. Table rows and code cannot wrap, and a
// line that is a single word or link has no place to.
func TestProseWraps(t *testing.T) {
	for path, text := range pages(t) {
		if !strings.HasPrefix(path, "docs/") && path != "CHANGELOG.md" {
			continue
		}
		prose(text, func(n int, line string, row bool) {
			if cols := utf8.RuneCountInString(line); cols > 100 && !row && strings.Contains(strings.TrimLeft(line, " -*"), " ") {
				t.Errorf("%s:%d: %d columns, want 100 at most", path, n, cols)
			}
		})
	}
}

// Tests that the documentation names exist. (docs/origin.md has its own test,
// which also knows testscripts.)
func TestTestsInDocsExist(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(data), -1) {
			known[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range pages(t) {
		prose(text, func(n int, line string, _ bool) {
			for _, name := range tests.FindAllString(line, -1) {
				if !known[name] && path != "CHANGELOG.md" {
					t.Errorf("%s:%d: there is no %s", path, n, name)
				}
			}
		})
	}
}

// Go names that the documentation has in code, such as `session.Store`, exist.
func TestNamesInDocsExist(t *testing.T) {
	known := map[string]map[string]bool{} // by package
	pkg := regexp.MustCompile(`(?m)^package (\w+)`)
	decl := regexp.MustCompile(`(?m)^(?:func |type |var |const |\t)([A-Z]\w*)`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if m := pkg.FindSubmatch(data); m != nil {
			if known[string(m[1])] == nil {
				known[string(m[1])] = map[string]bool{}
			}
			for _, d := range decl.FindAllSubmatch(data, -1) {
				known[string(m[1])][string(d[1])] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\b([a-z0-9]+)\.([A-Z]\w*)`)
	for path, text := range pages(t) {
		if path == "CHANGELOG.md" {
			continue
		}
		prose(text, func(n int, line string, _ bool) {
			for _, code := range inCode.FindAllString(line, -1) {
				for _, m := range name.FindAllStringSubmatch(code, -1) {
					if names := known[m[1]]; names != nil && !names[m[2]] && m[2] != "NAME" { // models.NAME is a setting
						t.Errorf("%s:%d: there is no %s", path, n, m[0])
					}
				}
			}
		})
	}
}

// replaced are words that the glossary or plain English replaces, as patterns
// in lower case, with the reason.
var replaced = []struct {
	word *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`\bfold(s|ed|ing)?\b`), "the glossary says compact and compaction"},
	{regexp.MustCompile(`\bunfold(s|ed|ing)?\b`), "a compaction is undone"},
	{regexp.MustCompile(`\banew\b`), "say again"},
	{regexp.MustCompile(`\b(which|that|it|this) is none\b`), "say there is no, or is not"},
	{regexp.MustCompile(`\bahead of time\b`), "a checkpoint is made in advance"},
	{regexp.MustCompile(`\bheal(s|ed|ing)?\b`), "the glossary says repair"},
	{regexp.MustCompile(`\bthe judge\b`), "a store is tested by storetest"},
	{regexp.MustCompile(`\bwithout a word\b`), "say what is missing"},
	{regexp.MustCompile(`\btake(s|n)? (it|that|this|them) back\b`), "say undo or bring back"},
}

// Names in code (a record type, a key suffix, a test) keep their words, so that
// only prose is checked. CHANGELOG.md tells of the past.
func TestGlossaryWords(t *testing.T) {
	for path, text := range pages(t) {
		if path == "CHANGELOG.md" {
			continue
		}
		prose(text, func(n int, line string, _ bool) {
			checkWords(t, path, n, tests.ReplaceAllString(inCode.ReplaceAllString(line, ""), ""))
		})
	}
}

// oldWords are files whose texts keep such a word, with the reason.
var oldWords = map[string]string{
	"store/sqlite/schema.go":  "columns of older databases",
	"internal/tui/program.go": "a queued message is taken back into the input",
}

// What users read in help and messages uses the same words.
func TestGlossaryWordsInHelp(t *testing.T) {
	texts := regexp.MustCompile("(?s)\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	out, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skipf("the files of the repository cannot be listed: %v", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(path, "_test.go") || oldWords[path] != "" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue // removed, and not committed yet
		}
		for _, at := range texts.FindAllIndex(data, -1) {
			s := string(data[at[0]:at[1]])
			if strings.Contains(s, " ") { // a sentence, not a name
				checkWords(t, path, 1+strings.Count(string(data[:at[0]]), "\n"), s)
			}
		}
	}
}

func checkWords(t *testing.T, path string, n int, text string) {
	for _, r := range replaced {
		if m := r.word.FindString(strings.ToLower(text)); m != "" {
			t.Errorf("%s:%d: %q: %s", path, n, m, r.why)
		}
	}
}

// AGENTS.md names every package of the tree with its floor, or the package that
// it is part of.
func TestAgentsNamesThePackages(t *testing.T) {
	page := pages(t)["AGENTS.md"]
	dirs, err := filepath.Glob("internal/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range floors {
		dirs = append(dirs, f.room)
	}
	for _, dir := range dirs {
		dir = filepath.ToSlash(dir)
		if dir == "internal" || dir == "cmd" || dir == "store/internal" {
			continue // named by what is in them
		}
		if !strings.Contains(page, "`"+dir+"`") && !strings.Contains(page, "`"+dir+"/...`") {
			t.Errorf("AGENTS.md does not name %s", dir)
		}
	}
	for _, m := range regexp.MustCompile("`(internal/[a-z0-9]+)`").FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("AGENTS.md names %s, which does not exist", m[1])
		}
	}
}

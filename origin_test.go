package goclaw_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOrigin: every test and script that docs/origin.md names exists, and every
// row that says it works names one.
func TestOrigin(t *testing.T) {
	page, err := os.ReadFile("docs/origin.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	define := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range define.FindAllStringSubmatch(string(data), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) < 2 || cells[0] == "behaviour" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		rows++
		names := regexp.MustCompile("`(Test\\w+)(?:/([\\w-]+))?`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(names) == 0 && !strings.HasPrefix(cells[1], "Not built") {
			t.Errorf("no test is named for %q", cells[0])
		}
		for _, m := range names {
			if !tests[m[1]] {
				t.Errorf("%q: there is no %s", cells[0], m[1])
			}
			if m[2] == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join("cmd/goclaw/testdata/script", m[2]+".txtar")); err != nil {
				t.Errorf("%q: %v", cells[0], err)
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows were read", rows)
	}
}

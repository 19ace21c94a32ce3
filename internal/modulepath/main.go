// Command modulepath gives the module another path, for whoever publishes it:
//
//	go run ./internal/modulepath host/you/goclaw
//
// It rewrites go.mod and every file that names a package of the module in
// quotes: imports, examples in the documentation, sources inside of tests.
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make module-path P=host/you/goclaw")
		os.Exit(2)
	}
	n, err := rewrite(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "module-path:", err)
		os.Exit(1)
	}
	fmt.Printf("the module is %s now: %d files changed\n", os.Args[1], n)
}

var (
	valid    = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._~-]*(/[a-zA-Z0-9][a-zA-Z0-9._~-]*)*$`)
	declared = regexp.MustCompile(`(?m)^module (\S+)$`)
)

// rewrite gives the module in dir the path to, and returns how many files that
// changed.
func rewrite(dir, to string) (int, error) {
	if !valid.MatchString(to) {
		return 0, fmt.Errorf("%q is no module path: write it as host/you/goclaw", to)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return 0, err
	}
	m := declared.FindSubmatch(mod)
	if m == nil {
		return 0, fmt.Errorf("%s declares no module", filepath.Join(dir, "go.mod"))
	}
	from := string(m[1])
	if from == to {
		return 0, nil
	}
	named, err := packages(dir, from)
	if err != nil {
		return 0, err
	}
	required := regexp.MustCompile(`(?m)^(\s*(?:module|require|replace) |\s+|.*=> )` + regexp.QuoteMeta(from) + `([/ ]|$)`)
	changed := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		out := named.ReplaceAll(text, []byte("${1}"+to+"/${2}"))
		if d.Name() == "go.mod" {
			out = required.ReplaceAll(out, []byte("${1}"+to+"${2}"))
		}
		if bytes.Equal(out, text) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		changed++
		return os.WriteFile(path, out, info.Mode().Perm())
	})
	return changed, err
}

// packages matches the module's packages in quotes: the module's path, and one
// of the folders in dir. Other things may begin with the same word, as the
// folder of a configuration does.
func packages(dir, module string) (*regexp.Regexp, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, regexp.QuoteMeta(e.Name()))
		}
	}
	return regexp.Compile("([\"`])" + regexp.QuoteMeta(module) + `/((?:(?:` + strings.Join(folders, "|") + ")[a-zA-Z0-9_/.-]*)?[\"`])")
}

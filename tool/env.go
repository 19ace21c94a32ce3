package tool

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// variable returns the value of name in env, the last one if there are several.
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		k, v, _ := strings.Cut(kv, "=")
		if k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// lookShell finds a shell on path, or where systems of this kind have it.
func lookShell(path string) string {
	for _, name := range shells {
		for _, dir := range append(filepath.SplitList(path), filepath.SplitList(systemPath)...) {
			if !filepath.IsAbs(dir) {
				continue
			}
			file := filepath.Join(dir, name)
			if info, err := os.Stat(file); err == nil && executable(info) {
				return file
			}
		}
	}
	return ""
}

package tool

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"goclaw/internal/secrets"
)

// withoutSecrets returns env without what looks like a secret. Commands are
// written by a model, and their output goes to one.
func withoutSecrets(env []string) []string {
	var out []string
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if ok && !strings.ContainsRune(kv, 0) && !secret(name, value) {
			out = append(out, kv)
		}
	}
	return out
}

// secret reports whether a variable holds a secret. A proxy's password is left:
// without it nothing gets out at all.
func secret(name, value string) bool {
	if strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
		value = ""
	}
	return secrets.Variable(name, value)
}

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

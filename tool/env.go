package tool

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
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

var (
	secretWords = []string{"TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE",
		"CREDENTIAL", "CREDENTIALS", "APIKEY", "PAT"}
	secretEnds = []string{"_KEY", "_KEYS", "_PWD", "_PASS", "_AUTH", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"}
	// An address with a password in it: scheme://user:password@host.
	addressWithPassword = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:[^/?#\s@]+@`)
)

func secret(name, value string) bool {
	n := strings.ToUpper(name)
	for _, end := range secretEnds {
		if strings.HasSuffix(n, end) {
			return true
		}
	}
	words := strings.FieldsFunc(n, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	for _, w := range words {
		if slices.Contains(secretWords, w) {
			return true
		}
	}
	if strings.Contains(n, "ACCESS_KEY") || strings.Contains(n, "PRIVATE_KEY") || strings.Contains(n, "API_KEY") {
		return true
	}
	// A proxy's password is left: without it nothing gets out at all.
	return addressWithPassword.MatchString(value) && !strings.HasSuffix(n, "_PROXY")
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

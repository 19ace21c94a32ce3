package secrets

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

var (
	words = []string{"TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE",
		"CREDENTIAL", "CREDENTIALS", "APIKEY", "PAT"}
	ends = []string{"_KEY", "_KEYS", "_PWD", "_PASS", "_AUTH", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"}
	// An address with a password in it: scheme://user:password@host.
	addressWithPassword = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:[^/?#\s@]+@`)
)

// Variable reports whether an environment variable holds a secret, judged by
// its name, by a value that is an address with a password, or by what Find
// finds in its value.
func Variable(name, value string) bool {
	n := strings.ToUpper(name)
	for _, end := range ends {
		if strings.HasSuffix(n, end) {
			return true
		}
	}
	for _, w := range strings.FieldsFunc(n, func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		if slices.Contains(words, w) {
			return true
		}
	}
	if strings.Contains(n, "ACCESS_KEY") || strings.Contains(n, "PRIVATE_KEY") || strings.Contains(n, "API_KEY") {
		return true
	}
	return addressWithPassword.MatchString(value) || len(Find(value)) > 0
}

// fieldName is the name of a field whose value is a secret.
var fieldName = regexp.MustCompile(`(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|\btoken|_token)$`)

// Field reports whether the value of a field with this name, in JSON, is a
// secret.
func Field(name string) bool { return fieldName.MatchString(name) }

// JSON returns a JSON value without the secrets in its texts and without the
// values of fields with a telling name, and how many there were. What is not
// JSON is redacted as a text.
func JSON(raw json.RawMessage) (json.RawMessage, int) {
	if len(raw) == 0 {
		return raw, 0
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		text, n := Redact(string(raw))
		return json.RawMessage(text), n
	}
	n := 0
	v = redactValue(v, "", &n)
	if n == 0 {
		return raw, 0
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage(`{}`), n
	}
	return bytes.TrimSpace(out.Bytes()), n
}

func redactValue(v any, name string, n *int) any {
	switch v := v.(type) {
	case string:
		if Field(name) && v != "" {
			*n++
			return Mark
		}
		text, found := Redact(v)
		*n += found
		return text
	case []any:
		for i := range v {
			v[i] = redactValue(v[i], name, n)
		}
	case map[string]any:
		for k := range v {
			v[k] = redactValue(v[k], k, n)
		}
	}
	return v
}

// Environment returns env ("NAME=value") without what looks like a secret, for
// programs that a model may direct. A proxy's password is left: without it
// nothing gets out at all.
func Environment(env []string) []string {
	var out []string
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			value = ""
		}
		if ok && !strings.ContainsRune(kv, 0) && !Variable(name, value) {
			out = append(out, kv)
		}
	}
	return out
}

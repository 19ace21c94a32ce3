package secrets

import (
	"regexp"
	"strings"
)

// assignment is a name and its value in a text: NAME=value, name: "value",
// "name" => 'value'.
type assignment struct {
	name       string
	value      string
	start, end int  // of value
	quoted     bool // the value is in quotes
	close      bool // a plain "=" between them, without blanks
}

// named finds the values of telling names. It looks at each separator once, not
// at each place where a name could begin.
func named(found []Match, text string) []Match {
	for i := 0; i < len(text); {
		at := strings.IndexAny(text[i:], "=:")
		if at < 0 {
			return found
		}
		at += i
		a, ok := assigned(text, at)
		i = max(at+1, a.end)
		if !ok {
			i = at + 1
			continue
		}
		if rule := a.rule(); rule != "" {
			found = append(found, Match{rule, a.start, a.end})
		} else {
			i = at + 1 // the value may hold a name
		}
	}
	return found
}

// Longer names and values are none. A value that is longer is cut at any rate,
// so that the time stays linear.
const (
	maxName  = 64
	maxValue = 4096
	maxBlank = 8
)

// assigned reads the assignment whose separator begins at text[at].
func assigned(text string, at int) (a assignment, ok bool) {
	sep := 1
	switch rest := text[at:]; {
	case strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, "=>"):
		sep = 2
	case strings.HasPrefix(rest, "=="), strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, "://"):
		return a, false
	}
	back := text[max(0, at-maxName-maxBlank):at]
	name := strings.TrimRight(strings.TrimRight(back, " \t"), `"'\`)
	if n := len(name); n == 0 || !nameByte(name[n-1]) {
		return a, false
	}
	begin := len(name)
	for begin > 0 && nameByte(name[begin-1]) {
		begin--
	}
	a.name = name[begin:]
	if !telling.MatchString(a.name) {
		return a, false
	}
	a.start = at + sep
	for n := 0; n < maxBlank && a.start < len(text) && (text[a.start] == ' ' || text[a.start] == '\t'); n++ {
		a.start++
	}
	a.close = sep == 1 && text[at] == '=' && a.start == at+1 && len(name) == len(back)
	a.end = a.quote(text)
	a.value = text[a.start:a.end]
	return a, len(a.value) >= 6
}

// quote returns the end of the value at a.start, and moves a.start past its
// quote if it has one. The quotes may be escaped, as they are in JSON that is
// a text in JSON.
func (a *assignment) quote(text string) int {
	rest := text[a.start:min(len(text), a.start+maxValue)]
	for _, q := range []string{`\"`, `\'`, `"`, `'`, "`"} {
		if !strings.HasPrefix(rest, q) {
			continue
		}
		a.start += len(q)
		rest = rest[len(q):]
		a.quoted = true
		if end := strings.Index(rest, q); end >= 0 && !strings.Contains(rest[:end], "\n") {
			return a.start + end
		}
		break
	}
	stop := " \t\r\n\"'`,;\\"
	if strings.ToUpper(a.name) != a.name { // it may be a query
		stop += "&"
	}
	if end := strings.IndexAny(rest, stop); end >= 0 {
		return a.start + end
	}
	return a.start + len(rest)
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

var (
	telling      = regexp.MustCompile(`(?i)passw|passphrase|_pwd$|_pass$|secret|token|credential|key`)
	passwordName = regexp.MustCompile(`(?i)(?:password|passwd|passphrase|_pwd|_pass)$`)
	// secretName tells even in lower case, where "key" alone may be that of a
	// table or a list.
	secretName = regexp.MustCompile(`(?i)secret|token|credential|(?:api|access|private|signing|encryption|account|master|auth|service|webhook)[_-]?keys?$`)
	envName    = regexp.MustCompile(`^(?:[A-Z0-9_]*_)?(?:KEYS?|TOKENS?|SECRETS?|CREDENTIALS?|[A-Z0-9]*(?:KEY|TOKEN|SECRET))(?:_[A-Z0-9]+)?$`)
	// otherName is of a value that continues a list, counts, or only names a
	// secret.
	otherName = regexp.MustCompile(`(?i)(?:page|next|cursor|continuation|sync|csrf|max|min|input|output|total|num|count)[_.-]?tokens?|tokens?[_.-]?(?:count|used|limit|type|id|name|hash)|secret[_.-]?(?:name|ref)|publish|public`)
	// reference is a piece of a program: a path of names, a call, the end of
	// one.
	joins     = regexp.MustCompile(`^\s*[+.]\s*[A-Za-z_]`) // "password=" + word
	reference = regexp.MustCompile(`^[&*!]?[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+[)\]}]*$|^[A-Za-z_][\w.]*[(\[{]|^\w+[)\]}]+$`)
)

// rule returns the name of the rule by which the value of a is a secret, or ""
// if it is a stand-in, a type, a count or a piece of a program.
func (a assignment) rule() string {
	digits := strings.ContainsAny(a.value, "0123456789")
	if standsIn(a.value) || joins.MatchString(a.value) || !a.quoted && reference.MatchString(a.value) || !digits && telling.MatchString(a.value) {
		return ""
	}
	switch {
	case passwordName.MatchString(a.name):
		// Without quotes, a plain word after a colon or a blank is more likely a
		// type, a variable or the next word of a sentence.
		if a.quoted || a.close || strings.ContainsAny(a.value, "0123456789!@#%^*+?$") {
			return "password"
		}
	case otherName.MatchString(a.name), strings.TrimLeft(a.value, "0123456789.,") == "":
	case a.close && envName.MatchString(a.name): // a line of an .env file
		if len(a.value) >= 8 && (digits || len(a.value) >= 16) && entropy(a.value) >= 2.5 {
			return "named-secret"
		}
	case secretName.MatchString(a.name):
		if len(a.value) >= 12 && digits && !strings.ContainsAny(a.value, " \t") && entropy(a.value) >= 3 {
			return "named-secret"
		}
	}
	return ""
}

package secrets

import (
	"math"
	"regexp"
	"strings"
)

// rule recognises one kind of secret. A match begins at one of the needles; the
// last group of the pattern is the secret, or without a group all of it.
//
// Looking for fixed words first is what makes a scan fast: a pattern is tried
// only where it can match, and on a short piece of the text.
type rule struct {
	name    string
	needles []string
	folds   bool // needles are in lower case and found in any case
	pattern *regexp.Regexp
	fine    func(match []string) bool // nil: every match is a secret
	after   func(before string) bool  // nil: whatever comes before the needle
	piece   int                       // how much of the text the pattern sees at first
}

// shape is a rule for secrets that are recognised by their form. They begin a
// word.
func shape(name, needles, pattern string) rule {
	return rule{name: name, needles: strings.Fields(needles), pattern: regexp.MustCompile("^(?:" + pattern + ")"), after: beginsWord, piece: 512}
}

// anyCase finds the needles in any case.
func (r rule) anyCase() rule {
	r.folds = true
	r.pattern = regexp.MustCompile("(?i)" + r.pattern.String())
	return r
}

func (r rule) check(fine func([]string) bool) rule           { r.fine = fine; return r }
func (r rule) long() rule                                    { r.piece = 1 << 14; return r }
func (r rule) following(after func(before string) bool) rule { r.after = after; return r }

var rules = []rule{
	shape("anthropic-key", "sk-ant-", `sk-ant-[A-Za-z0-9_-]{16,}`),
	shape("openai-key", "sk-", `sk-[A-Za-z0-9_-]{16,}`).check(notWords),
	shape("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", `[sr]k_(?:live|test)_[A-Za-z0-9]{10,}`),
	shape("stripe-webhook", "whsec_", `whsec_[A-Za-z0-9+/=]{20,}`),
	shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", `gh[pousr]_[A-Za-z0-9]{20,}`),
	shape("github-token", "github_pat_", `github_pat_[A-Za-z0-9_]{20,}`),
	shape("gitlab-token", "glpat- gldt- glrt- gloas- glptt- glcbt- glsoat- glft- glimt- glagent-", `gl[a-z]+-[A-Za-z0-9_.-]{16,}`),
	shape("aws-key-id", "AKIA ASIA", `(?:AKIA|ASIA)[0-9A-Z]{16}\b`),
	shape("google-key", "AIza", `AIza[0-9A-Za-z_-]{30,}`),
	shape("google-token", "ya29.", `ya29\.[0-9A-Za-z_-]{20,}`),
	shape("google-secret", "GOCSPX-", `GOCSPX-[A-Za-z0-9_-]{20,}`),
	shape("slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", `xox[a-z]-[A-Za-z0-9-]{10,}`),
	shape("slack-token", "xapp-", `xapp-\d-[A-Za-z0-9-]{20,}`),
	shape("slack-webhook", "hooks.slack", `hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{10,})`),
	shape("discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", `discord(?:app)?\.com/api/webhooks/\d+/([A-Za-z0-9_-]{20,})`),
	shape("telegram-token", ":AA", `:(AA[A-Za-z0-9_-]{33})\b`).following(endsInDigits),
	shape("huggingface-token", "hf_", `hf_[A-Za-z0-9]{20,}`),
	shape("groq-key", "gsk_", `gsk_[A-Za-z0-9]{30,}`),
	shape("xai-key", "xai-", `xai-[A-Za-z0-9]{40,}`),
	shape("npm-token", "npm_", `npm_[A-Za-z0-9]{30,}`),
	shape("pypi-token", "pypi-", `pypi-[A-Za-z0-9_-]{30,}`),
	shape("docker-token", "dckr_pat_", `dckr_pat_[A-Za-z0-9_-]{20,}`),
	shape("sendgrid-key", "SG.", `SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`),
	shape("shopify-token", "shpat_ shpca_ shppa_ shpss_", `shp[a-z]+_[0-9a-fA-F]{32}\b`),
	shape("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", `do[opr]_v1_[0-9a-f]{64}\b`),
	shape("age-key", "AGE-SECRET-KEY-", `AGE-SECRET-KEY-1[0-9A-Z]{50,}`),
	shape("jwt", "eyJ", `eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`).long(),
	{name: "private-key", needles: []string{"-----BEGIN "}, fine: hasBody, piece: 1 << 14,
		pattern: regexp.MustCompile(`^(?s:-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]*))`)},
	shape("url-password", "://", `://[^/\s:@"'<>]*:([^/\s"'<>]+)@`).check(written).following(nil),
	shape("url-key", "? &", `[?&](?:key|[a-z_-]{0,32}(?:api[_-]?key|token|secret|password)|sig|signature|auth)=([^&\s"'#<>]{8,})`).anyCase().check(hasDigit).following(nil),
	shape("curl-password", "-u --user -a --auth --proxy-user", `-[a-z-]+[ =]?["']?[^\s:"']+:([^\s"']+)`).check(written).following(curls),
	shape("auth-header", "bearer basic", `(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{12,})`).anyCase().check(hasDigit),
	shape("auth-header", "authorization", `authorization["']?\s*[:=]\s*["']?(?:[a-z]+\s+)?([^\s"',;]{8,})`).anyCase().check(notStandIn),
}

// find adds what r finds in text to found.
func (r rule) find(found []Match, text string) []Match {
	for _, needle := range r.needles {
		for at := 0; at < len(text); {
			i := index(text[at:], needle, r.folds)
			if i < 0 {
				break
			}
			at += i
			m := r.match(text, at)
			if m == nil {
				at++
				continue
			}
			found = append(found, Match{r.name, at + m[len(m)-2], at + m[len(m)-1]})
			at += m[1]
		}
	}
	return found
}

// match returns where the groups of the match that begins at text[at] are, from
// there, or nil. The piece that the pattern sees grows until the match ends
// before its end.
func (r rule) match(text string, at int) []int {
	if r.after != nil && !r.after(text[:at]) {
		return nil
	}
	for size := r.piece; ; size *= 16 {
		rest := text[at:min(len(text), at+size)]
		m := r.pattern.FindStringSubmatchIndex(rest)
		if m != nil && m[1] == len(rest) && at+size < len(text) {
			continue
		}
		if m == nil || r.fine == nil {
			return m
		}
		groups := make([]string, len(m)/2)
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = rest[m[2*i]:m[2*i+1]]
			}
		}
		if !r.fine(groups) {
			return nil
		}
		return m
	}
}

// index is strings.Index, for a word in lower case also in any case.
func index(text, word string, folds bool) int {
	if !folds {
		return strings.Index(text, word)
	}
	first := word[:1] + strings.ToUpper(word[:1])
	for at := 0; ; at++ {
		i := strings.IndexAny(text[at:], first)
		if i < 0 || at+i+len(word) > len(text) {
			return -1
		}
		at += i
		if strings.EqualFold(text[at:at+len(word)], word) {
			return at
		}
	}
}

// beginsWord reports whether a word can begin after before.
func beginsWord(before string) bool {
	if before == "" {
		return true
	}
	c := before[len(before)-1]
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_')
}

// endsInDigits reports whether before ends with the number of a Telegram bot.
func endsInDigits(before string) bool {
	rest := strings.TrimRight(before, "0123456789")
	n := len(before) - len(rest)
	return n >= 8 && n <= 10 && beginsWord(rest)
}

var sender = regexp.MustCompile(`\b(?:curl|wget|https?|xh)\b[^|;]*\s$`)

// curls reports whether before is the beginning of a command that sends a
// request.
func curls(before string) bool {
	before = before[max(0, len(before)-1024):]
	return sender.MatchString(before[strings.LastIndexByte(before, '\n')+1:])
}

// hasBody reports whether a private key is more than its first line, as it is
// in programs that look for one.
func hasBody(m []string) bool {
	if strings.Contains(m[0], "-----END ") {
		return true
	}
	_, body, _ := strings.Cut(strings.TrimPrefix(m[0], "-----BEGIN "), "-----")
	return len(strings.TrimSpace(body)) >= 16
}

// value is the last group of a match.
func value(m []string) string { return m[len(m)-1] }

func hasDigit(m []string) bool { return strings.ContainsAny(value(m), "0123456789") && notStandIn(m) }

// notWords is false for words joined by hyphens.
func notWords(m []string) bool {
	return strings.ContainsAny(value(m), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") && notStandIn(m)
}

// written is false for the name of a variable or a blank to fill in.
func written(m []string) bool {
	v := value(m)
	return !strings.ContainsAny(v[:1], "$<%{*") && !strings.Contains(v, Mark)
}

// standIn is what people write where a secret would be: $NAME, <name>,
// {{name}}, %s, ****, "your-key".
var standIn = regexp.MustCompile(`(?i)^(?:[$<%{(\[].*|[*x.•_-]+|.*\*{3,}.*|(?:your|my|the|some|example|changeme|change_me|redacted|placeholder|dummy)(?:[_-].*)?|null|none|nil|true|false|undefined|required|optional|string|unset|(?:user|db)?pass(?:word|wd)?)$`)

func notStandIn(m []string) bool { return !standsIn(value(m)) }

func standsIn(v string) bool {
	if strings.Contains(v, Mark) {
		return true
	}
	v = strings.TrimRight(v, `)]}>.,;`)
	return v == "" || standIn.MatchString(v)
}

// entropy is how many bits a character of s tells, judged by s alone: 0 if all
// are the same, 4 for 16 different ones.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

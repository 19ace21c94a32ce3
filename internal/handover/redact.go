package handover

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// shapes are secrets that can be recognised by their form.
var shapes = regexp.MustCompile(strings.Join([]string{
	`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	`\bsk-[A-Za-z0-9_-]{16,}`,
	`\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}`,
	`\bgh[pousr]_[A-Za-z0-9]{20,}`,
	`\bgithub_pat_[A-Za-z0-9_]{20,}`,
	`\bglpat-[A-Za-z0-9_-]{16,}`,
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
	`\bAIza[0-9A-Za-z_-]{30,}`,
	`\bya29\.[0-9A-Za-z_-]{20,}`,
	`\bxox[abeprs]-[A-Za-z0-9-]{10,}`,
	`\bhf_[A-Za-z0-9]{20,}`,
	`\bnpm_[A-Za-z0-9]{30,}`,
	`\bpypi-[A-Za-z0-9_-]{30,}`,
	`\b\d{8,10}:[A-Za-z0-9_-]{35}\b`, // a Telegram bot
	`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
}, "|"))

// named are secrets that follow a telling name; the second group is the secret.
var named = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{12,})`),
	regexp.MustCompile(`(://[^/\s:@]+:)([^/\s:@]+)(@)`),
	regexp.MustCompile(`(\bhooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/)([A-Za-z0-9/_-]{10,})`),
	regexp.MustCompile(`(\bdiscord(?:app)?\.com/api/webhooks/\d+/)([A-Za-z0-9_-]{20,})`),
	regexp.MustCompile(`(\b(?:curl|wget|https?|xh)\b[^\n|;]*?\s(?:-u|--user|-a|--auth|--proxy-user)[ =]?["']?[^\s:"']+:)([^\s"']+)`),
	regexp.MustCompile(`(?i)((?:` + secretWords + `)[A-Za-z0-9_]*["']?\s*(?:=>|:=|[:=])\s*["']?)([^\s"',;&]{6,})`),
}

const secretWords = `password|passwd|passphrase|secret|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|\btoken|_token`

var secretName = regexp.MustCompile(`(?i)(?:` + secretWords + `)$`)

// Redact returns text without its secrets, and how many there were.
func Redact(text string) (string, int) {
	n := 0
	text = shapes.ReplaceAllStringFunc(text, func(string) string { n++; return Mark })
	for _, re := range named {
		text = re.ReplaceAllStringFunc(text, func(s string) string {
			m := re.FindStringSubmatch(s)
			if strings.Contains(m[2], Mark) || strings.HasPrefix(m[2], "$") || strings.HasPrefix(m[2], "<") {
				return s // redacted already, or only the name of one
			}
			n++
			return m[1] + Mark + strings.Join(m[3:], "")
		})
	}
	return text, n
}

// redactor counts the secrets that it takes out.
type redactor struct{ n int }

func (r *redactor) text(s string) string {
	s, n := Redact(s)
	r.n += n
	return s
}

// json redacts the texts in a JSON value, and the value of any field with a
// telling name.
func (r *redactor) json(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return json.RawMessage(r.text(string(raw)))
	}
	before := r.n
	v = r.value(v, "")
	if r.n == before {
		return raw
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage(`{}`)
	}
	return bytes.TrimSpace(out.Bytes())
}

func (r *redactor) value(v any, name string) any {
	switch v := v.(type) {
	case string:
		if secretName.MatchString(name) && v != "" {
			r.n++
			return Mark
		}
		return r.text(v)
	case []any:
		for i := range v {
			v[i] = r.value(v[i], name)
		}
	case map[string]any:
		for k := range v {
			v[k] = r.value(v[k], k)
		}
	}
	return v
}

func (r *redactor) blocks(blocks []llm.Block) []llm.Block {
	out := make([]llm.Block, len(blocks))
	for i, b := range blocks {
		switch x := b.(type) {
		case llm.Text:
			x.Text = r.text(x.Text)
			b = x
		case llm.Thinking:
			x.Text = r.text(x.Text)
			b = x
		case llm.ToolCall:
			x.Args = r.json(x.Args)
			b = x
		case llm.ToolResult:
			x.Blocks = r.blocks(x.Blocks)
			b = x
		case llm.Other:
			x.Raw = r.json(x.Raw)
			b = x
		}
		out[i] = b
	}
	return out
}

// session returns a copy of s without its secrets. It is for display only: its
// records no longer have their lines.
func (r *redactor) session(s *session.Session) *session.Session {
	branch := make([]session.Record, 0, len(s.Branch))
	for _, rec := range s.Branch {
		switch b := rec.Body.(type) {
		case session.Message:
			b.Blocks, b.Error, b.Details = r.blocks(b.Blocks), r.text(b.Error), nil
			rec.Body = b
		case session.CustomMessage:
			b.Blocks, b.Details = r.blocks(b.Blocks), nil
			rec.Body = b
		case session.Shell:
			b.Command, b.Output = r.text(b.Command), r.text(b.Output)
			rec.Body = b
		case session.Compaction:
			b.Summary, b.Details = r.text(b.Summary), nil
			rec.Body = b
		case session.BranchSummary:
			b.Summary, b.Details = r.text(b.Summary), nil
			rec.Body = b
		case session.Checkpoint:
			b.Summary = r.text(b.Summary)
			rec.Body = b
		}
		rec.Raw = nil
		branch = append(branch, rec)
	}
	out := s.WithBranch(branch)
	out.Title = r.text(s.Title)
	return out
}

package markdown

import (
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// inline returns the text in n, in look l.
func (p *page) inline(n ast.Node, l look) (out []run) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		out = append(out, p.span(c, l)...)
	}
	return out
}

// span returns the text of one inline node.
func (p *page) span(n ast.Node, l look) []run {
	switch n := n.(type) {
	case *ast.Text:
		return p.text(n, l)
	case *ast.String:
		return []run{{printable(string(n.Value)), l}}
	case *ast.CodeSpan:
		return p.codeSpan(n, l)
	case *ast.Emphasis:
		if n.Level == 1 {
			return p.inline(n, l.and(look{attr: italic}))
		}
		return p.inline(n, l.and(look{attr: bold}))
	case *extast.Strikethrough:
		return p.inline(n, l.and(look{attr: strike}))
	case *ast.Link:
		return p.link(p.inline(n, l.and(look{attr: underline})), string(n.Destination), l)
	case *ast.Image:
		return p.image(n, l)
	case *ast.AutoLink:
		return []run{{printable(string(n.Label(p.src))), l.and(look{attr: underline})}}
	case *ast.RawHTML:
		return rawHTML(string(n.Segments.Value(p.src)), l)
	case *extast.TaskCheckBox:
		return nil // it is the mark of its item
	}
	return p.inline(n, l)
}

func (p *page) text(n *ast.Text, l look) []run {
	value := string(n.Value(p.src))
	if !n.IsRaw() {
		value = unescape(value)
	}
	out := []run{{printable(value), l}}
	// A line that the model ends is a line: poems, addresses and lists without
	// marks are written that way.
	if n.SoftLineBreak() || n.HardLineBreak() {
		out = append(out, run{"\n", l})
	}
	return out
}

func (p *page) codeSpan(n *ast.CodeSpan, l look) []run {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(p.src))
		}
	}
	code := printable(b.String())
	if !p.style.Colour {
		code = "`" + code + "`"
	}
	return []run{{code, l.and(p.style.palette().span)}}
}

// link shows where a link leads, unless its text says so.
func (p *page) link(text []run, to string, l look) []run {
	to = printable(unescape(to))
	var shown strings.Builder
	for _, r := range text {
		shown.WriteString(r.text)
	}
	switch s := shown.String(); {
	case s == "":
		return []run{{to, l.and(look{attr: underline})}}
	case to == "" || s == to || "mailto:"+s == to || strings.HasSuffix(to, "://"+s):
		return text
	}
	return append(text, run{" (" + to + ")", l.and(look{attr: dim})})
}

func (p *page) image(n *ast.Image, l look) []run {
	name := "[image]"
	var alt strings.Builder
	for _, r := range p.inline(n, look{}) {
		alt.WriteString(strings.ReplaceAll(r.text, "\n", " "))
	}
	if alt.Len() > 0 {
		name = "[image: " + alt.String() + "]"
	}
	to := string(n.Destination)
	if strings.HasPrefix(to, "data:") {
		to = "" // it is the picture itself
	}
	return p.link([]run{{name, l}}, to, l)
}

// rawHTML shows a tag as it is, except that of a line break.
func rawHTML(tag string, l look) []run {
	switch strings.ToLower(strings.ReplaceAll(tag, " ", "")) {
	case "<br>", "<br/>":
		return []run{{"\n", l}}
	}
	return []run{{printable(tag), l}}
}

// unescape resolves backslashes and entities.
func unescape(s string) string {
	if !strings.ContainsAny(s, "\\&") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
		case s[i] == '&':
			const longest = 40 // name of an entity
			if n := strings.IndexByte(s[i:min(len(s), i+longest)], ';'); n > 0 {
				if u := html.UnescapeString(s[i : i+n+1]); !strings.HasSuffix(u, ";") {
					b.WriteString(u)
					i += n
					continue
				}
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

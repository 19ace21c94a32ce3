// Package handover writes a session as a document for a person or another agent:
// one file that holds everything, with tool output collapsed and secrets taken
// out.
package handover

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"goclaw/internal/bounds"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
)

// Formats are the formats of a note.
var Formats = []string{"markdown", "html", "json"}

// Write writes the live branch of s, which must be replayed from its first
// record. With secrets, they stay in.
func Write(w io.Writer, s *session.Session, format string, secrets bool) error {
	r := &redactor{}
	if !secrets {
		s = r.session(s)
	}
	if s.Title == "" {
		titled := *s
		titled.Title = naming.Topic(s)
		s = &titled
	}
	switch format {
	case "markdown":
		if err := transcript.Markdown(w, s); err != nil || r.n == 0 {
			return err
		}
		_, err := fmt.Fprintf(w, "\n---\n\n*%s taken out of this note.*\n", many(r.n))
		return err
	case "html":
		return writeHTML(w, s, r.n)
	case "json":
		return writeJSON(w, s, r.n)
	}
	return fmt.Errorf("a note cannot be written as %q", format)
}

func many(n int) string {
	if n == 1 {
		return "1 secret was"
	}
	return fmt.Sprintf("%d secrets were", n)
}

// note is the JSON form.
type note struct {
	Format   string         `json:"format"`
	Key      session.Key    `json:"key"`
	ID       session.ID     `json:"id"`
	Title    string         `json:"title,omitempty"`
	Model    string         `json:"model,omitempty"`
	Source   string         `json:"source"`
	Origin   session.Origin `json:"origin,omitzero"`
	CWD      string         `json:"cwd,omitempty"`
	Created  string         `json:"createdAt,omitempty"`
	Updated  string         `json:"updatedAt,omitempty"`
	Turns    int            `json:"turns"`
	Usage    map[string]int `json:"usage"`
	Summary  string         `json:"summary,omitempty"` // of the last compaction
	Redacted int            `json:"redacted"`
	Messages []message      `json:"messages"`
}

type message struct {
	Role     string   `json:"role"`
	Kind     string   `json:"kind,omitempty"` // of an entry that is not a message: folded (a compaction; the name of v0.1, which programs may read), branch, shell, custom, reset
	At       string   `json:"at,omitempty"`
	Model    string   `json:"model,omitempty"`
	Text     string   `json:"text,omitempty"`
	Thinking string   `json:"thinking,omitempty"`
	Calls    []call   `json:"calls,omitempty"`
	Results  []result `json:"results,omitempty"`
	Images   []image  `json:"images,omitempty"`
	Error    string   `json:"error,omitempty"`
}

type call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type result struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Text    string `json:"text"`
	IsError bool   `json:"isError,omitempty"`
}

type image struct {
	MIME string `json:"mimeType"`
	Data string `json:"data"`
}

// messages returns everything that was said, in order.
func messages(s *session.Session) []message {
	out := []message{}
	for _, r := range s.Branch {
		m := message{At: transcript.Stamp(r.Time)}
		switch b := r.Body.(type) {
		case session.Message:
			m.fill(b)
		case session.CustomMessage:
			m.Role, m.Kind, m.Text = "user", "custom", llm.Message{Blocks: b.Blocks}.Text()
		case session.Shell:
			m.Role, m.Kind, m.Text = "user", "shell", "$ "+b.Command+"\n"+b.Output
		case session.Compaction:
			m.Role, m.Kind, m.Text = "user", "folded", b.Summary
		case session.BranchSummary:
			m.Role, m.Kind, m.Text = "user", "branch", b.Summary
		case session.Reset:
			m.Role, m.Kind, m.Text = "user", "reset", b.Reason
		default:
			continue
		}
		out = append(out, m)
	}
	return out
}

func (m *message) fill(b session.Message) {
	m.Role, m.Text, m.Error = string(b.Role), b.Text(), b.Error
	if b.Role == llm.Assistant && b.Model != "" {
		m.Model = strings.TrimPrefix(b.Provider+"/"+b.Model, "/")
	}
	for _, bl := range b.Blocks {
		switch bl := bl.(type) {
		case llm.Thinking:
			m.Thinking += bl.Text
		case llm.ToolCall:
			m.Calls = append(m.Calls, call{bl.ID, bl.Name, bl.Args})
		case llm.ToolResult:
			m.Role = "tool"
			m.Results = append(m.Results, result{bl.CallID, bl.Name, bl.Text(), bl.IsError})
			for _, in := range bl.Blocks {
				if img, ok := in.(llm.Image); ok {
					m.Images = append(m.Images, image{img.MIME, img.Data})
				}
			}
		case llm.Image:
			m.Images = append(m.Images, image{bl.MIME, bl.Data})
		}
	}
}

func writeJSON(w io.Writer, s *session.Session, redacted int) error {
	n := note{
		Format: "goclaw.handover/1", Key: s.Key, ID: s.ID, Title: s.Title, Model: s.ModelName(), Source: transcript.Source(s.Info), Origin: s.Origin, CWD: s.CWD,
		Created: transcript.Stamp(s.Created), Updated: transcript.Stamp(s.Updated), Turns: s.Turns, Redacted: redacted, Messages: messages(s),
		Usage: map[string]int{"input": s.Spent.Input, "output": s.Spent.Output, "cacheRead": s.Spent.CacheRead, "cacheWrite": s.Spent.CacheWrite},
	}
	for _, m := range n.Messages {
		if m.Kind == "folded" {
			n.Summary = m.Text
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(n)
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.5rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;color:#555}dt{font-weight:600}dd{margin:0}
section{margin:1.2rem 0;padding:.2rem 1rem;border-left:4px solid #ccc}section.user{border-color:#2a7}section.assistant{border-color:#27c}
section.aside{border-color:#b80;background:#fffaf0}header{font-size:.85rem;color:#666}details{margin:.5rem 0}summary{cursor:pointer;color:#666}
pre{background:#f5f5f5;padding:.6rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}img{max-width:100%}.error{color:#b00}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}section.aside{background:#2a2418}dl,header,summary{color:#aaa}}`

// markdown renders text. Raw HTML is left out, and so are addresses that would
// run a script.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

// paged renders text for a page: nothing in it is fetched from elsewhere, and
// nothing needs a style of its own.
var paged = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.Linkify, extension.TaskList),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(outsideLinks{}, 100))),
)

// outsideLinks opens links in a tab of their own, and makes links of pictures.
type outsideLinks struct{}

// Transform changes the links of a text.
func (outsideLinks) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var pictures []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Image:
			pictures = append(pictures, n)
		case *ast.Link, *ast.AutoLink:
			n.SetAttributeString("target", []byte("_blank"))
			n.SetAttributeString("rel", []byte("noopener noreferrer"))
		}
		return ast.WalkContinue, nil
	})
	for _, img := range pictures {
		link := ast.NewLink()
		link.Destination = img.Destination
		link.SetAttributeString("target", []byte("_blank"))
		link.SetAttributeString("rel", []byte("noopener noreferrer"))
		for c := img.FirstChild(); c != nil; c = img.FirstChild() {
			link.AppendChild(link, c)
		}
		if !link.HasChildren() {
			link.AppendChild(link, ast.NewString([]byte("picture")))
		}
		if up := img.Parent(); inLink(up) {
			up.ReplaceChild(up, img, ast.NewString([]byte("picture")))
		} else {
			up.ReplaceChild(up, img, link)
		}
	}
}

// inLink reports whether n is in a link: links do not hold others.
func inLink(n ast.Node) bool {
	for ; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

func init() { bounds.Set(paged.Parser()) }

// HTML renders one text for a page. Text that would take too long is shown as
// it is.
func HTML(text string) (out string) {
	defer func() {
		p := recover()
		if _, ok := p.(bounds.TooMuch); ok {
			out = "<pre>" + html.EscapeString(text) + "</pre>"
		} else if p != nil {
			panic(p)
		}
	}()
	var b bytes.Buffer
	if err := paged.Convert([]byte(text), &b); err != nil {
		panic(bounds.TooMuch{})
	}
	return b.String()
}

func writeHTML(w io.Writer, s *session.Session, redacted int) error {
	var b bytes.Buffer
	esc := html.EscapeString
	title := cmp.Or(s.Title, string(s.Key))
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"+
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n<title>%s</title>\n<style>%s</style></head><body>\n<h1>%s</h1>\n<dl>", esc(title), style, esc(title))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>", name, esc(value))
		}
	}
	row("Session", string(s.Key))
	row("ID", string(s.ID))
	row("From", transcript.Source(s.Info))
	row("Model", s.ModelName())
	row("Folder", s.CWD)
	if !s.Created.IsZero() {
		row("Time", s.Created.UTC().Format("2006-01-02 15:04")+" to "+s.Updated.UTC().Format("2006-01-02 15:04")+" UTC")
	}
	row("Turns", fmt.Sprint(s.Turns))
	if redacted > 0 {
		row("Redacted", many(redacted)+" taken out")
	}
	b.WriteString("</dl>\n")
	for _, m := range messages(s) {
		if err := m.html(&b); err != nil {
			return err
		}
	}
	b.WriteString("</body></html>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// asides are the headings of what is no message.
var asides = map[string]string{"folded": "Earlier turns were compacted here", "branch": "Back from a branch", "shell": "A command of the user", "custom": "On behalf of a program", "reset": "Started over"}

func (m message) html(b *bytes.Buffer) error {
	esc := html.EscapeString
	collapsed := func(name, text string) {
		fmt.Fprintf(b, "<details><summary>%s</summary><pre>%s</pre></details>\n", esc(name), esc(text))
	}
	class, who := m.Role, strings.ToUpper(m.Role[:min(1, len(m.Role))])+m.Role[min(1, len(m.Role)):]
	if a, ok := asides[m.Kind]; ok {
		class, who = "aside", a
	}
	fmt.Fprintf(b, "<section class=\"%s\"><header>%s", esc(class), esc(who))
	for _, s := range []string{m.At, m.Model} {
		if s != "" {
			fmt.Fprintf(b, " · %s", esc(s))
		}
	}
	b.WriteString("</header>\n")
	if m.Thinking != "" {
		collapsed("thinking", m.Thinking)
	}
	switch {
	case m.Text == "":
	case m.Kind == "shell":
		collapsed("output", m.Text)
	default:
		if err := markdown.Convert([]byte(m.Text), b); err != nil {
			return err
		}
	}
	for _, c := range m.Calls {
		collapsed("call "+c.Name, string(c.Input))
	}
	for _, r := range m.Results {
		name := "result " + r.Name
		if r.IsError {
			name = "failed " + r.Name
		}
		collapsed(strings.TrimSpace(name), r.Text)
	}
	for _, i := range m.Images {
		fmt.Fprintf(b, "<p><img alt=\"image\" src=\"data:%s;base64,%s\"></p>\n", esc(i.MIME), esc(i.Data))
	}
	if m.Error != "" {
		fmt.Fprintf(b, "<p class=\"error\">%s</p>\n", esc(m.Error))
	}
	b.WriteString("</section>\n")
	return nil
}

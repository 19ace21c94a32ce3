package fetch

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"goclaw/internal/text"
)

// content returns the text of an answer, and what it is.
func (t *Tool) content(resp *http.Response) (what, body string, err error) {
	declared := resp.Header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(declared)
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return "", "", fmt.Errorf("%s is encoded as %q, which is not understood", resp.Request.URL, coding)
	}
	binary := func(n int64) error {
		size := "of unknown size"
		if n >= 0 {
			size = text.Bytes(n)
		}
		return fmt.Errorf("%s is not text and is not shown: %s, %s", resp.Request.URL, kind, size)
	}
	if kind != "" && kind != "application/octet-stream" && !textual(kind) {
		return "", "", binary(resp.ContentLength)
	}
	raw, note, err := t.readAll(resp.Body)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", resp.Request.URL, err)
	}
	if !textual(kind) { // the server does not know
		if kind, _, _ = mime.ParseMediaType(http.DetectContentType(raw)); !textual(kind) {
			return "", "", binary(int64(len(raw)))
		}
		declared = ""
	}
	if bytes.IndexByte(raw, 0) >= 0 && !utf16(raw) {
		return "", "", binary(int64(len(raw)))
	}
	what = fmt.Sprintf("%s, %s%s", kind, text.Bytes(int64(len(raw))), note)
	body = decoded(raw, declared)
	if kind == "text/html" || kind == "application/xhtml+xml" {
		if body, err = markdown(body, resp.Request.URL); err != nil {
			return "", "", fmt.Errorf("%s cannot be read: %w", resp.Request.URL, err)
		}
	}
	return what, body, nil
}

// textual reports whether a media type is text.
func textual(kind string) bool {
	switch kind {
	case "application/json", "application/ld+json", "application/xml", "application/javascript", "application/ecmascript", "application/yaml", "application/x-yaml",
		"application/toml", "application/x-ndjson", "application/jsonl", "application/sql", "application/x-sh", "application/graphql", "application/x-tex", "message/rfc822":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") && kind != "image/svg+xml" || strings.HasSuffix(kind, "+yaml")
}

func utf16(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte{0xfe, 0xff}) || bytes.HasPrefix(raw, []byte{0xff, 0xfe})
}

// decoded returns raw as UTF-8: by its byte order mark, by what the server or the
// page says, or by what it looks like.
func decoded(raw []byte, declared string) string {
	enc, _, certain := charset.DetermineEncoding(raw[:min(len(raw), 1024)], declared)
	if !certain && utf8.Valid(raw) { // the beginning may be ASCII
		return strings.TrimPrefix(string(raw), "\uFEFF")
	}
	out, err := enc.NewDecoder().Bytes(raw)
	if err != nil {
		out = raw
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(out), "\uFEFF"), "\uFFFD")
}

// markdown returns a page as Markdown, its title first.
func markdown(page string, at *url.URL) (string, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	title := strings.Join(strings.Fields(tidy(doc)), " ")
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	out, err := conv.ConvertNode(doc, converter.WithDomain(at.Scheme+"://"+at.Host))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(out))
	if title != "" && !strings.HasPrefix(text, "# ") {
		text = "# " + title + "\n\n" + text
	}
	return text, nil
}

// tidy takes out what is no text, such as pictures that are in the page itself,
// and returns the title.
func tidy(n *html.Node) (title string) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.ElementNode && (c.Data == "svg" || c.Data == "template" || c.Data == "dialog" || c.Data == "img" && inline(c)):
			n.RemoveChild(c)
		case c.Type == html.ElementNode && c.Data == "title" && c.FirstChild != nil && title == "":
			title = c.FirstChild.Data
		default:
			if found := tidy(c); title == "" {
				title = found
			}
		}
		c = next
	}
	return title
}

// inline reports whether the picture img is in the page itself.
func inline(img *html.Node) bool {
	for _, a := range img.Attr {
		if a.Key == "src" && strings.HasPrefix(strings.TrimSpace(a.Val), "data:") {
			return true
		}
	}
	return false
}

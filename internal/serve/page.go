package serve

import (
	"embed"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// The page and the libraries in it are as they are: nothing is built, and
// nothing else is fetched when it runs.
//
//go:embed page
var files embed.FS

// policy lets the page run its own scripts only, and show nothing from
// elsewhere. HTML gets into it in one place, from the server's renderer.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types goclaw"

// types are those of the page's files.
var types = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}

// page answers with a file of the page.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	kind, ok := types[path.Ext(name)]
	data, err := fs.ReadFile(files, "page/"+name)
	if err != nil || !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return wrong(http.StatusNotFound, "there is no %s %s", r.Method, r.URL.Path)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", policy)
	_, err = w.Write(data)
	return err
}

// outside is what a browser without a cookie sees.
const outside = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>goclaw</title></head>
<body><main><h1>goclaw</h1><p>This page opens with a login link: <code>goclaw serve</code> prints one when it starts, and <code>goclaw serve --link</code> prints another. Each works once.</p></main></body></html>
`

// stranger shows a browser how to log in.
func stranger(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", types[".html"])
	w.WriteHeader(status)
	io.WriteString(w, outside)
}

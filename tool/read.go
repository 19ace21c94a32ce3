package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"

	"goclaw/internal/text"
	"goclaw/llm"
)

type readFile struct {
	ws  *workspace
	max int
}

const (
	defaultLines = 2000
	sniffLen     = 8 << 10
	// A file longer than this is not read to its end just to count its lines.
	maxCounted = 64 << 20
)

func (readFile) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "read_file",
		Description: "Read a file: up to 2000 lines of text, and a note how to read on. Images are shown.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "relative to the workspace"},
    "offset": {"type": "integer", "minimum": 1},
    "limit": {"type": "integer", "minimum": 1},
    "column": {"type": "integer", "minimum": 1, "description": "for very long lines"}
  },
  "required": ["path"],
  "additionalProperties": false
}`),
	}
}

func (readFile) Mutates(llm.ToolCall) bool { return false }

func (t readFile) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct {
		Path                  string
		Offset, Limit, Column count
	}](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	var rel string
	t.ws, rel, err = t.ws.look(a.Path)
	if err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	f, info, err := t.ws.open(rel)
	if err != nil {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	defer f.Close()

	r := bufio.NewReaderSize(f, 64<<10)
	start, err := r.Peek(sniffLen)
	if err != nil && err != io.EOF {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	mime := http.DetectContentType(start)
	switch {
	case mime == "image/png", mime == "image/jpeg", mime == "image/gif", mime == "image/webp":
		return showImage(call, r, info), nil
	case isBinary(start):
		return llm.Result(call, fmt.Sprintf("%s is a binary file (%s, %s), not shown. It begins with the bytes % x",
			quoted(filepath.ToSlash(rel)), mime, text.Bytes(info.Size()), start[:min(32, len(start))])), nil
	}
	p := page{first: int(cmp.Or(a.Offset, 1)), limit: int(cmp.Or(a.Limit, defaultLines)), column: int(cmp.Or(a.Column, 1)), max: t.max}
	if err := p.read(ctx, r, info.Size() <= maxCounted); err != nil {
		if ctx.Err() != nil {
			return llm.Failed(call, "interrupted"), ctx.Err()
		}
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	return p.result(call), nil
}

// isBinary judges by the beginning of a file.
func isBinary(start []byte) bool {
	_, text := llm.DecodeText(wholeRunes(start))
	return !text || bytes.IndexByte(start, 0) >= 0 // UTF-16 cannot be shown by lines
}

// page is a part of a text: from a line and a column, for some lines or bytes.
type page struct {
	first, limit, column, max int

	text   []byte
	lines  int  // in the whole file, if counted
	counts bool // lines holds for the whole file
	last   int  // the last line that is shown, at least in part
	// Where to read on; nextLine is 0 if everything was shown.
	nextLine, nextColumn int
}

// read goes through the text once, in pieces that are at most a line long.
func (p *page) read(ctx context.Context, r *bufio.Reader, countAll bool) error {
	line, col := 1, 1 // of the piece
	lineStart := 0    // where the line begins in p.text
	var sawPart bool  // the last line did not end in a newline
	for ctx.Err() == nil {
		piece, err := r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return err
		}
		if len(piece) > 0 && p.nextLine == 0 {
			if col == 1 {
				lineStart = len(p.text)
			}
			p.take(piece, line, col, lineStart)
		}
		ends := bytes.HasSuffix(piece, []byte("\n"))
		switch {
		case ends:
			line, col, sawPart = line+1, 1, false
		case len(piece) > 0:
			col, sawPart = col+len(piece), true
		}
		if err == io.EOF {
			p.lines, p.counts = line-1, true
			if sawPart {
				p.lines = line
			}
			return nil
		}
		if p.nextLine != 0 && !countAll {
			return nil
		}
	}
	return ctx.Err()
}

// take adds the wanted part of a piece of a line, or notes where to read on.
func (p *page) take(piece []byte, line, col, lineStart int) {
	if line < p.first {
		return
	}
	if line-p.first >= p.limit {
		p.nextLine, p.nextColumn = line, 1
		return
	}
	if line == p.first && col < p.column {
		skip := min(p.column-col, len(piece))
		piece, col = piece[skip:], col+skip
	}
	if room := p.max - len(p.text); len(piece) <= room {
		p.text = append(p.text, piece...)
		p.last = line
		return
	} else if lineStart > 0 {
		// Whole lines, as long as there is one.
		p.text = p.text[:lineStart]
		p.nextLine, p.nextColumn = line, 1
	} else {
		part := wholeRunes(piece[:room])
		p.text = append(p.text, part...)
		p.last, p.nextLine, p.nextColumn = line, line, col+len(part)
	}
	if p.last == p.nextLine && p.nextColumn == 1 {
		p.last-- // its pieces were taken back
	}
}

func (p *page) result(call llm.ToolCall) llm.ToolResult {
	if p.counts && p.lines == 0 {
		return llm.Result(call, "(the file is empty)")
	}
	if p.counts && p.first > p.lines {
		return llm.Failed(call, fmt.Sprintf("offset %d is past the end: the file has %d lines", p.first, p.lines))
	}
	if p.nextLine == 0 && len(p.text) == 0 {
		return llm.Failed(call, fmt.Sprintf("column %d is past the end of line %d", p.column, p.first))
	}
	text := string(p.text)
	bad := len(strings.ToValidUTF8(text, "")) != len(text)
	if strings.TrimSpace(text) == "" {
		text = withNote(text, fmt.Sprintf("[lines %d to %d hold only white space]", p.first, p.last))
	}
	if p.nextLine != 0 {
		of := ""
		if p.counts {
			of = fmt.Sprintf(" of %d", p.lines)
		}
		note := fmt.Sprintf("[lines %d to %d%s; read on with offset %d", p.first, p.last, of, p.nextLine)
		if p.nextColumn > 1 {
			note = fmt.Sprintf("[line %d%s, cut before byte %d; read on with offset %d and column %d", p.last, of, p.nextColumn, p.nextLine, p.nextColumn)
		}
		text = withNote(text, note+"]")
	}
	if bad {
		text = withNote(text, "[some bytes are not valid UTF-8 and are shown as \uFFFD]")
	}
	return llm.Result(call, text)
}

// showImage returns the picture, if an API would take it.
func showImage(call llm.ToolCall, r io.Reader, info fs.FileInfo) llm.ToolResult {
	data, err := io.ReadAll(io.LimitReader(r, llm.MaxImage+1))
	if err != nil {
		return llm.Failed(call, err.Error())
	}
	im, err := llm.NewImage(data)
	if err != nil {
		return llm.Failed(call, fmt.Sprintf("%v (%s)", err, text.Bytes(info.Size())))
	}
	w, h := im.Size()
	res := llm.Result(call, fmt.Sprintf("%s, %s, %d x %d pixels", im.MIME, text.Bytes(info.Size()), w, h))
	res.Blocks = append(res.Blocks, im)
	return res
}

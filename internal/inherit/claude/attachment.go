package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// attachment is what the program added to a prompt.
type attachment struct {
	Type     string          `json:"type"`
	Prompt   json.RawMessage `json:"prompt"`
	Mode     string          `json:"commandMode"`
	Filename string          `json:"filename"`
	Path     string          `json:"path"`
	Content  json.RawMessage `json:"content"`
}

// ambient are attachments about the program itself: its tools, its model, how it
// signs commits. They are wrong for any other program, which says its own.
var ambient = map[string]bool{"remote_session_change": true}

// attached returns what is sent of an attachment, nil if nothing is: input that
// came while the program was busy, and what it told the model as the user. What it
// told the model as the system is its own.
func (l claudeLine) attached(at time.Time) session.Body {
	var a attachment
	_ = json.Unmarshal(l.Attachment, &a) // fields of other types are no fields
	if blocks := source.Anthropic(a.Prompt); a.Type == "queued_command" && len(blocks) > 0 {
		if a.Mode == "prompt" || a.Mode == "" {
			return session.Message{Message: llm.Message{Role: llm.User, Blocks: blocks}, At: at}
		}
		return session.CustomMessage{Type: "claude-code." + a.Mode, Blocks: blocks, At: at}
	}
	var blocks []llm.Block
	_, rendered := source.TextOrList(l.Rendered)
	for _, raw := range rendered {
		var r struct {
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(raw, &r)
		blocks = append(blocks, source.Anthropic(r.Content)...)
	}
	switch {
	case len(l.Rendered) == 0: // an older version, which did not write what it sent
		blocks = a.render()
	case l.RenderedRole != "user" || ambient[a.Type]:
		return nil
	}
	if len(blocks) == 0 {
		return nil
	}
	return session.CustomMessage{Type: "claude-code." + a.Type, Blocks: blocks, At: at}
}

// render returns an attached file or folder in the words of the program.
func (a attachment) render() []llm.Block {
	reminder := func(format string, args ...any) llm.Block {
		return llm.Text{Text: "<system-reminder>\n" + fmt.Sprintf(format, args...) + "\n</system-reminder>"}
	}
	called := func(tool string, input any) llm.Block {
		args, _ := json.Marshal(input)
		return reminder("Called the %s tool with the following input: %s", tool, args)
	}
	switch a.Type {
	case "file":
		var c struct {
			Type string `json:"type"`
			File struct {
				Content string `json:"content"`
				Start   int    `json:"startLine"`
				Base64  string `json:"base64"`
				MIME    string `json:"type"`
			} `json:"file"`
		}
		read := called("Read", map[string]string{"file_path": a.Filename})
		switch _ = json.Unmarshal(a.Content, &c); {
		case c.Type == "text":
			return []llm.Block{read, reminder("Result of calling the Read tool:\n%s", numbered(c.File.Content, max(c.File.Start, 1)))}
		case c.Type == "image" && c.File.Base64 != "":
			return []llm.Block{read, llm.Image{MIME: c.File.MIME, Data: c.File.Base64}}
		}
	case "directory":
		if list, _ := source.TextOrList(a.Content); list != "" {
			return []llm.Block{called("Bash", map[string]string{"command": "ls " + a.Path}), reminder("Result of calling the Bash tool:\n%s", list)}
		}
	}
	return nil
}

// numbered returns text with the number of each line.
func numbered(text string, from int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = fmt.Sprintf("%d\t%s", from+i, l)
	}
	return strings.Join(lines, "\n")
}

package window

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"goclaw/internal/memoryfiles"
	"goclaw/llm"
)

// writesMemory reports whether call is meant to write to the workspace's
// memory: MEMORY.md, or a file below memory/. It judges by the path of
// write_file and edit_file, and for bash by a redirection or tee into such a
// path; where that cannot be told from the command, it says no. Whether the
// call succeeded is for its result to say.
func writesMemory(call llm.ToolCall) bool {
	var a map[string]any
	if json.Unmarshal(call.Args, &a) != nil {
		return false
	}
	switch call.Name {
	case "write_file", "edit_file":
		p, _ := a["path"].(string)
		return inMemory(p)
	case "bash":
		command, _ := a["command"].(string)
		for _, m := range intoFile.FindAllStringSubmatch(command, -1) {
			if inMemory(unquote.Replace(m[1])) {
				return true
			}
		}
		for _, m := range intoTee.FindAllStringSubmatch(command, -1) {
			for _, word := range strings.Fields(m[1]) {
				if inMemory(unquote.Replace(word)) {
					return true
				}
			}
		}
	}
	return false
}

var (
	intoFile = regexp.MustCompile(`>{1,2}\|?\s*([^\s;&|<>()]+)`)
	intoTee  = regexp.MustCompile(`\btee\s+([^;&|<>()\n]+)`)
	unquote  = strings.NewReplacer(`"`, "", `'`, "", `\`, "")
)

// inMemory judges a path relative to the workspace. Of an absolute one it is
// not known here where the workspace begins: any memory directory will do.
func inMemory(p string) bool {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	p = strings.TrimPrefix(p, "$PWD/")
	if memoryfiles.Is(p) {
		return true
	}
	absolute := strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, "$") || len(p) > 2 && p[1] == ':'
	return absolute && (strings.Contains(p, "/"+memoryfiles.Dir+"/") || path.Base(p) == memoryfiles.Main)
}

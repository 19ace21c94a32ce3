//go:build linux && !race

package inherit_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMemoryOfLongLines: many long lines in many files, at once, are taken in
// little memory.
func TestMemoryOfLongLines(t *testing.T) {
	src := t.TempDir()
	image := strings.Repeat("iVBORw0KGgo1", 10<<20/12)
	for i := range 4 {
		text := header(fmt.Sprint("s", i)) + "\n"
		for k := range 3 {
			text += fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":[{"type":"image","data":%q,"mimeType":"image/png"}],"timestamp":1}}`+"\n", k, image)
		}
		write(t, filepath.Join(src, fmt.Sprintf("s%d.jsonl", i)), text)
	}
	home := t.TempDir()
	child := func() int {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "INHERIT_CHILD="+home, "INHERIT_SOURCE="+src, "GOMAXPROCS=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		mb, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(out), "begin\n")))
		return mb
	}
	first := child()
	if err := os.Remove(filepath.Join(home, "memo.json")); err != nil {
		t.Fatal(err)
	}
	again := child()
	t.Logf("%d MB, and %d MB to hold them against their logs", first, again)
	if first == 0 || first > 120 || again == 0 || again > 120 {
		t.Errorf("12 lines of 10 MB in 4 files took %d MB, and %d MB to hold them against their logs: want 120 at most", first, again)
	}
	if got := dump(t, openStore(t, home)); len(got) != 4 {
		t.Errorf("%d logs, want 4", len(got))
	}
}

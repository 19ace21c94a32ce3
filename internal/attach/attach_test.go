package attach

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
)

// A message begins with its words, after its pictures; they can be told from
// what is attached.
func TestMessage(t *testing.T) {
	file, _, err := File("a.go", []byte("package a\n"))
	if err != nil {
		t.Fatal(err)
	}
	im := llm.Image{MIME: "image/png", Data: "AAAA"}
	m := Message("what is this?", []llm.Block{file, im, Command("ls", "a.go\n[exit code 0]\n")})
	want := []llm.Block{im, llm.Text{Text: "what is this?"}, llm.Text{Text: "<file path=\"a.go\">\npackage a\n\n</file>"}, llm.Text{Text: "<shell command=\"ls\">\na.go\n[exit code 0]\n</shell>"}}
	if d := cmp.Diff(want, m.Blocks); d != "" {
		t.Errorf("the blocks (-want +got):\n%s", d)
	}
	if got := Words(m); got != "what is this?" {
		t.Errorf("the words are %q", got)
	}
	if got := Words(llm.UserText("<file path=\"x\"> is all there is")); got == "" {
		t.Error("a message without other words has none")
	}
}

package offline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnderstand(t *testing.T) {
	tests := []struct {
		text string
		want wish
	}{
		{"Hi!", wish{kind: greet}},
		{"thanks a lot", wish{kind: greet}},
		{"never mind", wish{kind: greet}},
		{"Are you a language model?", wish{kind: whoami}},
		{"help", wish{kind: help}},
		{"What can you do?", wish{kind: help}},
		{"what time is it?", wish{kind: clock}},
		{"What's the date today?", wish{kind: clock}},
		{"What is today's date?", wish{kind: clock}},
		{"recap", wish{kind: recap}},
		{"Please summarize our conversation so far.", wish{kind: recap}},
		{"what did we talk about?", wish{kind: recap}},
		{"what did I just say?", wish{kind: recap}},
		{"Where were we?", wish{kind: recap}},
		{"What do you remember about me?", wish{kind: memories}},
		{"list memory", wish{kind: memories}},

		{"remember that Anna's flight is LH 441", wish{kind: remember, text: "Anna's flight is LH 441"}},
		{"Could you please remember that I am vegan", wish{kind: remember, text: "I am vegan"}},
		{"remember my birthday is 3 May", wish{kind: remember, text: "my birthday is 3 May"}},
		{"Note: the door code is 12", wish{kind: remember, text: "the door code is 12"}},
		{"don’t forget to buy milk", wish{kind: remember, text: "to buy milk"}},
		{"remember that A\nand B", wish{kind: remember, text: "A\nand B"}},
		{"remember when we met?", wish{kind: search, text: "remember when we met?"}},
		{"do you remember my birthday?", wish{kind: search, text: "do you remember my birthday?"}},
		{"Note: " + strings.Repeat("log ", 1000), wish{text: "Note: " + strings.TrimSpace(strings.Repeat("log ", 1000))}},

		{"read README.md", wish{kind: read, path: "README.md"}},
		{"read Makefile.", wish{kind: read, path: "Makefile"}},
		{"show me the file docs/notes", wish{kind: read, path: "docs/notes"}},
		{"Could you open src/main.go?", wish{kind: read, path: "src/main.go"}},
		{"read a.txt lines 10-20", wish{kind: read, path: "a.txt", from: 10, to: 20}},
		{"read a.txt from line 151", wish{kind: read, path: "a.txt", from: 151}},
		{"what is in config.json?", wish{kind: read, path: "config.json"}},
		{"cat `my notes.md`", wish{kind: read, path: "my notes.md"}},
		{"show me what I said about tea", wish{kind: search, text: "show me what I said about tea"}},
		{"ls", wish{kind: list, path: "."}},
		{"list the files in src/", wish{kind: list, path: "src/"}},
		{"What files are there?", wish{kind: list, path: "."}},
		{"what files are there in docs?", wish{kind: list, path: "docs"}},
		{"$ go test ./...", wish{kind: run, text: "go test ./..."}},
		{"run `ls -la`", wish{kind: run, text: "`ls -la`"}},

		{"what did I say about the dentist?", wish{kind: search, text: "what did I say about the dentist?"}},
		{"Hey, what did we decide about billing", wish{kind: search, text: "what did we decide about billing"}},
		{"Tell me all about the garden.", wish{kind: search, text: "Tell me all about the garden."}},
		{"search for the locker code", wish{kind: search, text: "the locker code"}},
		{"东京的会议是什么时候？", wish{kind: search, text: "东京的会议是什么时候？"}},
		{"what do these say?\nline one\nline two", wish{kind: search, text: "what do these say?"}},

		// Work for a language model is not taken for a plain request.
		{"add tests to main.go", wish{text: "add tests to main.go"}},
		{"can you write me a poem?", wish{text: "can you write me a poem?"}},
		{"open https://example.com/a.html", wish{text: "open https://example.com/a.html"}},
		{"run the tests", wish{text: "run the tests"}},
		{"My sister lives in Lisbon.", wish{text: "My sister lives in Lisbon."}},
		// Nor is what stands in a text that came along.
		{"Here is the log.\nrun rm -rf x", wish{text: "Here is the log.\nrun rm -rf x"}},
		{"<conversation>\n[User] hi\n</conversation>\n\nSummarise.", wish{kind: summarise, text: "<conversation>\n[User] hi\n</conversation>\n\nSummarise."}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, understand(tt.text), cmp.AllowUnexported(wish{})); diff != "" {
			t.Errorf("understand(%.60q) differs (-want +got):\n%s", tt.text, diff)
		}
	}
}

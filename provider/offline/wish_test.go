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
		{"Guten Morgen", wish{kind: greet}},
		{"thanks a lot", wish{kind: thank}},
		{"ok", wish{kind: nod}},
		{"never mind", wish{kind: nod}},
		{"Are you a language model?", wish{kind: whoami}},
		{"Wer bist du?", wish{kind: whoami}},
		{"help", wish{kind: help}},
		{"Can you help me?", wish{kind: help}},
		{"¿Qué puedes hacer?", wish{kind: help}},

		{"what time is it?", wish{kind: clock}},
		{"What's the date today?", wish{kind: clock}},
		{"What is today's date?", wish{kind: clock}},
		{"what time is it in Asia/Tokyo?", wish{kind: clock, path: "Asia/Tokyo"}},
		{"Wie spät ist es?", wish{kind: clock}},
		{"Quelle heure est-il ?", wish{kind: clock}},
		{"¿Qué hora es?", wish{kind: clock}},

		{"recap", wish{kind: recap}},
		{"Please summarize our conversation so far.", wish{kind: recap}},
		{"what did we talk about?", wish{kind: recap}},
		{"Where were we?", wish{kind: recap}},
		{"Fass das zusammen", wish{kind: recap}},
		{"what did I just say?", wish{kind: lastWords}},
		{"what was my first question?", wish{kind: firstWords}},
		{"What do you remember about me?", wish{kind: memories}},

		{"remember that Anna's flight is LH 441", wish{kind: remember, text: "Anna's flight is LH 441", sure: true}},
		{"Could you please remember that I am vegan?", wish{kind: remember, text: "I am vegan?", sure: true}},
		{"remember my birthday is 3 May", wish{kind: remember, text: "my birthday is 3 May"}},
		{"Note: the door code is 12", wish{kind: remember, text: "the door code is 12", sure: true}},
		{"don’t forget to buy milk", wish{kind: remember, text: "buy milk", sure: true}},
		{"remember that A\nand B", wish{kind: remember, text: "A\nand B", sure: true}},
		{"remember this", wish{kind: remember, text: "this"}},
		{"note that", wish{kind: remember}},
		{"Merk dir, dass ich keine Nüsse esse", wish{kind: remember, text: "ich keine Nüsse esse", sure: true}},
		{"Vergiss nicht: Zahnarzt am Freitag", wish{kind: remember, text: "Zahnarzt am Freitag", sure: true}},
		{"Souviens-toi que le code est 99", wish{kind: remember, text: "le code est 99", sure: true}},
		{"n'oublie pas d'acheter du pain", wish{kind: remember, text: "acheter du pain", sure: true}},
		{"Recuerda que mi vuelo es el lunes", wish{kind: remember, text: "mi vuelo es el lunes", sure: true}},
		{"remember when we met?", wish{kind: recall, text: "remember when we met?"}},
		{"do you remember my birthday?", wish{kind: recall, text: "do you remember my birthday?"}},
		{"Note: " + strings.Repeat("log ", 1000), wish{text: "Note: " + strings.TrimSpace(strings.Repeat("log ", 1000))}},
		{"forget my door code", wish{kind: forget, text: "my door code"}},

		{"read README.md", wish{kind: read, path: "README.md"}},
		{"read Makefile.", wish{kind: read, path: "Makefile"}},
		{"show me the file notes", wish{kind: read, path: "notes", sure: true}},
		{"Could you open src/main.go?", wish{kind: read, path: "src/main.go"}},
		{"read a.txt lines 10-20", wish{kind: read, path: "a.txt", from: 10, to: 20}},
		{"read a.txt from line 151", wish{kind: read, path: "a.txt", from: 151}},
		{"what is in config.json?", wish{kind: read, path: "config.json"}},
		{"cat `my notes.md`", wish{kind: read, path: "my notes.md", sure: true}},
		{"Lies die Datei README.md", wish{kind: read, path: "README.md", sure: true}},
		{"Was steht in plan.txt?", wish{kind: read, path: "plan.txt"}},
		{"Lis le fichier README.md", wish{kind: read, path: "README.md", sure: true}},
		{"Lee README.md", wish{kind: read, path: "README.md"}},
		{"show me what I said about tea", wish{kind: recall, text: "show me what I said about tea"}},
		{"summarize docs/format.md", wish{kind: digest, path: "docs/format.md"}},
		{"find port in config.json", wish{kind: findIn, old: "port", path: "config.json"}},
		{"what does README.md say about ports?", wish{kind: findIn, old: "ports", path: "README.md"}},

		{"ls", wish{kind: list, path: "."}},
		{"list the files in src/", wish{kind: list, path: "src/"}},
		{"list memory", wish{kind: memories}},
		{"tree docs", wish{kind: list, path: "docs", tree: true}},
		{"What files are there?", wish{kind: list, path: "."}},
		{"what files are there in docs?", wish{kind: list, path: "docs"}},
		{"Welche Dateien gibt es in src?", wish{kind: list, path: "src"}},
		{"Quels fichiers y a-t-il dans docs ?", wish{kind: list, path: "docs"}},
		{"¿Qué archivos hay?", wish{kind: list, path: "."}},

		{"write a.txt: two words", wish{kind: write, path: "a.txt", text: "two words"}},
		{"write a.txt:\n```\nx\n```", wish{kind: write, path: "a.txt", text: "```\nx\n```"}},
		{"save this to notes.md", wish{kind: write, path: "notes.md", text: "this"}},
		{`write "hello there" to a.txt`, wish{kind: write, path: "a.txt", text: `"hello there"`}},
		{"create file a.txt with two words", wish{kind: create, path: "a.txt", text: "two words", sure: true}},
		{"create an empty file a.txt", wish{kind: create, path: "a.txt", sure: true}},
		{"append two words to a.txt", wish{kind: appendTo, path: "a.txt", text: "two words"}},
		{"replace foo with bar in a.txt", wish{kind: replace, path: "a.txt", old: "foo", new: "bar"}},
		{"replace all \"foo in x\" with \"bar\" in a.txt", wish{kind: replace, path: "a.txt", old: "foo in x", new: "bar", all: true}},
		{"replace `- old line` with nothing in memory/2026-01-01.md", wish{kind: replace, path: "memory/2026-01-01.md", old: "- old line"}},
		{"ersetze rot durch blau in farben.txt", wish{kind: replace, path: "farben.txt", old: "rot", new: "blau"}},
		{"remplace rouge par bleu dans couleurs.txt", wish{kind: replace, path: "couleurs.txt", old: "rouge", new: "bleu"}},
		{"$ go test ./...", wish{kind: run, text: "go test ./..."}},
		{"run `ls -la`", wish{kind: run, text: "`ls -la`"}},
		{"which files mention ErrOverflow?", wish{kind: grep, old: "ErrOverflow"}},

		{"what did I say about the dentist?", wish{kind: recall, text: "what did I say about the dentist?"}},
		{"Hey, what did we decide about billing", wish{kind: recall, text: "what did we decide about billing"}},
		{"was habe ich über Nüsse gesagt", wish{kind: recall, text: "was habe ich über Nüsse gesagt"}},
		{"search for the locker code", wish{kind: recall, text: "locker code"}},
		{"what do these say?\nline one\nline two", wish{kind: recall, text: "what do these say?", attached: "line one\nline two"}},

		// Work for a language model must not be taken for an order to write
		// those very words.
		{"add tests to main.go", wish{text: "add tests to main.go"}},
		{"write a test in foo_test.go", wish{text: "write a test in foo_test.go"}},
		{"put a comment in main.go", wish{text: "put a comment in main.go"}},
		{"change the color to blue in style.css", wish{text: "change the color to blue in style.css"}},
		{"can you write me a poem?", wish{text: "can you write me a poem?"}},
		{"open https://example.com/a.html", wish{text: "open https://example.com/a.html"}},
		{"My sister lives in Lisbon.", wish{text: "My sister lives in Lisbon."}},
		// Nor what stands in a text that came along.
		{"Here is the log.\nrun rm -rf x", wish{text: "Here is the log.\nrun rm -rf x"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, understand(tt.text), cmp.AllowUnexported(wish{})); diff != "" {
			t.Errorf("understand(%.60q) differs (-want +got):\n%s", tt.text, diff)
		}
	}
}

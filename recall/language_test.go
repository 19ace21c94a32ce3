package recall

import (
	"slices"
	"testing"
)

// TestKnows: the model that is part of the program is not asked about texts of
// other languages, and about all that may be English.
func TestKnows(t *testing.T) {
	english := []string{
		"Our cat is allergic to chicken, so buy only the salmon food.",
		"feline dietary restriction",
		"cat allergy",
		"dentist appointment",
		"rent",
		"musical instrument",
		"locker code",
		"deploy failed, disk full",
		"What did Jon do in Paris?",
		"When is Zoë's birthday?",
		"favourite café in Berlin",
		"Mel: Wow, congrats! So proud of you!",
		"Thanks, will do.",
		"Let me look at the tests first.\nbash {\"command\":\"go test ./...\"}",
		"Fix the panic in parseSessionID when the line is empty",
		"rate limiting of the API",
		"The user prefers short answers.",
		"I moved from Köln to São Paulo with my wife and the kids last year.",
		"docker compose network bridge",
		"travel to Portugal",
		"half marathon training plan",
	}
	others := []string{
		"Unsere Katze verträgt kein Huhn, bitte nur Lachsfutter kaufen.",
		"Die Miete steigt ab Oktober auf 1200 Euro.",
		"Wann ist der Termin beim Zahnarzt?",
		"Katzenallergie",
		"Rechnung bezahlen",
		"Lieblingsfarbe meiner Schwester",
		"Der Server war voll, deshalb ist das Deployment fehlgeschlagen.",
		"Urlaub in Portugal gebucht",
		"Notre chat est allergique au poulet.",
		"Quand est mon rendez-vous chez le dentiste ?",
		"J'ai couru un semi-marathon dimanche et j'ai mal au genou.",
		"Nuestro gato es alérgico al pollo, compra solo comida de salmón.",
		"¿Cuándo es la cita con el dentista?",
		"El alquiler sube a 1200 euros desde octubre.",
		"Il nostro gatto è allergico al pollo.",
		"O nosso gato é alérgico a frango.",
		"Onze kat is allergisch voor kip.",
		"Vår katt är allergisk mot kyckling.",
		"Nasz kot jest uczulony na kurczaka.",
		"我们的猫对鸡肉过敏，只买三文鱼味的猫粮。",
		"猫粮",
		"我昨天用 Python 写了一个脚本",
		"うちの猫は鶏肉アレルギーです。",
		"歯医者の予約はいつですか",
		"우리 고양이는 닭고기 알레르기가 있어요.",
		"Наша кошка не переносит курицу.",
		"parseSessionID",
		"4711",
		"ENOENT /usr/lib/x86_64-linux-gnu/libssl.so.3",
	}
	for _, s := range english {
		if !(Local{}).Knows(s) {
			t.Errorf("%q is taken for another language: %+v", s, toldBy(s))
		}
	}
	for _, s := range others {
		if (Local{}).Knows(s) {
			t.Errorf("%q is taken for English: %+v", s, toldBy(s))
		}
	}
}

// TestOtherLanguages: questions in Chinese and German find the same with the
// model and without it, in the same order.
func TestOtherLanguages(t *testing.T) {
	notes := "- 我们的猫对鸡肉过敏。\n- 牙医预约在星期二。\n- 猫喜欢在窗边睡觉。\n- Unsere Katze verträgt kein Huhn.\n- Die Katze schläft gern am Fenster.\n- The cat likes the window.\n- The dentist is on Tuesday.\n"
	said := []string{
		"user: 我们的猫不能吃鸡肉", "assistant: 好的，我记住了：猫不吃鸡肉。", "user: 牙医预约改到星期三", "assistant: 猫的疫苗在五月。",
		"user: Wann muss die Katze zum Tierarzt?", "assistant: Die Katze muss im Mai zum Tierarzt, wegen der Impfung.", "user: Der Zahnarzt hat den Termin verschoben.",
		"user: The cat must see the vet in May.", "assistant: Noted: the vet in May, for the cat.",
	}
	var got [2][][]string
	for i, e := range []Embedder{nil, Local{}} {
		dir := t.TempDir()
		write(t, dir+"/MEMORY.md", notes)
		w := worlds["memory"](t, Options{Workspace: dir, Embedder: e})
		say(t, w, "a", said...)
		n, err := w.ix.Embed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e != nil && n != 4 {
			t.Errorf("%d vectors, want 4: those of the texts in English", n)
		}
		for _, text := range []string{"猫不能吃什么？", "牙医预约", "Wann muss die Katze zum Tierarzt?", "Katze Fenster", "Was verträgt unsere Katze nicht?"} {
			found := find(t, w.ix, Query{Text: text})
			if len(found) == 0 {
				t.Errorf("%s finds nothing", text)
			}
			got[i] = append(got[i], found)
		}
	}
	for i := range got[0] {
		if !slices.Equal(got[0][i], got[1][i]) {
			t.Errorf("question %d: without the model %v, with it %v", i, got[0][i], got[1][i])
		}
	}
}

// TestLabels: a word before a colon is not always a name, even where most
// messages begin with one.
func TestLabels(t *testing.T) {
	w := worlds["memory"](t, Options{})
	say(t, w, "work", "user: API: return 404 for what is missing", "assistant: Plan: first the test, then the handler", "user: Fix: the handler panics", "assistant: Done: it does not any more")
	say(t, w, "party", "user: Grace: I sold the harp", "assistant: Ada: I kept mine", "user: Grace: what for?")
	first(t, w.ix, "harp", "party#2")
	for group := range w.ix.messages.people {
		if id := w.ix.messages.ids[group]; id != "party" {
			t.Errorf("in %s people talk to each other", id)
		}
	}
	if len(w.ix.messages.people) != 1 {
		t.Errorf("people talk to each other in %d sessions, want 1", len(w.ix.messages.people))
	}
}

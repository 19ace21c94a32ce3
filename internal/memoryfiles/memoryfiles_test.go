package memoryfiles

import "testing"

func TestIs(t *testing.T) {
	for name, want := range map[string]bool{
		"MEMORY.md": true, "memory/2026-08-02.md": true, "memory/people/ada.txt": true,
		"memory": false, "memory.md": false, "notes/MEMORY.md": false, "": false,
	} {
		if got := Is(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestIsText(t *testing.T) {
	for name, want := range map[string]bool{"a.md": true, "A.MD": true, "b.markdown": true, "c.txt": true, "d.json": false, "md": false} {
		if got := IsText(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestDay(t *testing.T) {
	if !Is(OfDay("2026-08-02")) {
		t.Error("the notes of a day are no memory file")
	}
	for name, want := range map[string]string{
		OfDay("2026-08-02"):        "2026-08-02",
		"memory/2026-08-02-ada.md": "2026-08-02",
		"memory/2026-13-02.md":     "",
		"2026-08-02/notes.md":      "",
		Main:                       "",
	} {
		day, ok := Day(name)
		if got := day.Format("2006-01-02"); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %s, %v, want %q", name, got, ok, want)
		}
	}
}

package near

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"sessions", "search", "doctor", "context", "config", "fork", "help", "ask", "new", "pin", "title", "ls"}
	for got, want := range map[string]string{
		"sesions": "sessions", "serach": "search", "docotr": "doctor", "contxt": "context", "confg": "config", "frok": "fork", "nwe": "new",
		// Far words are suggested nothing, not even the least far one.
		"": "", "zebra": "", "foo": "", "hello": "", "bar": "", "xyz": "", "what": "", "fold": "", "list": "", "l": "", "weather": "", "main:cli:user": "",
	} {
		if n := Nearest(got, names); n != want {
			t.Errorf("Nearest(%q) = %q, want %q", got, n, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		d    int
		ok   bool
	}{
		{"my-prject", "my-project", 1, true}, {"ab", "ac", 0, false}, {"ab", "ab", 0, true}, {"größe", "grösse", 2, false},
		{"straße", "strasse", 2, true}, {"kitchen", "kicthen", 1, true}, {"abcdefghijkl", "abcdefgh", 4, false},
	} {
		if d, ok := Distance(c.a, c.b); ok != c.ok || ok && d != c.d {
			t.Errorf("Distance(%q, %q) = %d, %v, want %d, %v", c.a, c.b, d, ok, c.d, c.ok)
		}
	}
}

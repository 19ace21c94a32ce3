package recall

import (
	"fmt"
	"testing"
)

// TestScripts: words are found in whatever script they are written, also where
// it puts no spaces between them, or writes endings onto them.
func TestScripts(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	texts := []string{
		"데이터베이스를 이전했습니다", "北京今天下雨", "東京の天気", "データベースを移した", "ﾃﾞｰﾀ", // 2 to 6
		"ประเทศไทยสวยงาม", "Die Straße ist gesperrt", "ΟΔΥΣΣΕΥΣ ἐγύρισε", "Zażółć gęślą jaźń w Łodzi", "smørrebrød and œuvre", // 7 to 11
	}
	for i, text := range texts {
		say(t, w, fmt.Sprintf("s%d", i+2), "user: "+text)
	}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			query string
			want  int
		}{
			{"데이터베이스", 2}, {"데이터", 2}, {"이전", 2}, {"데", 2}, {"데이터베이스가", 2},
			{"데이터", 2}, // its letters one by one
			{"北", 3}, {"北京", 3}, {"雨", 3}, {"東", 4}, {"気", 4}, {"天気", 4},
			{"データベース", 5}, {"ﾍﾞｰｽ", 5}, {"移", 5},
			{"ไทย", 7},
			{"strasse", 8}, {"STRASSE", 8}, {"straße", 8},
			{"οδυσσευς", 9}, {"οδυσσεύς", 9}, {"ΟΔΥΣΣΕΎΣ", 9}, {"εγυρισε", 9},
			{"zazolc", 10}, {"lodzi", 10}, {"smorrebrod", 11}, {"oeuvre", 11},
		} {
			first(t, w.ix, c.query, fmt.Sprintf("s%d#2", c.want))
		}
		for _, query := range []string{"京", "天"} { // two have it
			got := find(t, w.ix, Query{Text: query})
			if len(got) != 2 {
				t.Errorf("%s found %v, want both", query, got)
			}
		}
		if got := find(t, w.ix, Query{Text: "南"}); len(got) != 0 {
			t.Errorf("found what nobody said: %v", got)
		}
	}
	check()
	for i := range flushAt { // in a segment, too
		say(t, w, "filler", fmt.Sprintf("user: filler %d", i))
	}
	check()
}

// TestMarked: what is found is marked as far as it goes.
func TestMarked(t *testing.T) {
	for _, c := range []struct{ text, query, want string }{
		{"나는 데이터베이스를 이전", "데이터베이스", "데이터베이스"},
		{"今日は東京へ行く", "京", "京"},
		{"今日は東京都へ行く", "東京都", "東京都"},
		{"Die Straße hier", "strasse", "Straße"},
	} {
		s, marks := Snippet(c.text, c.query, 100)
		if len(marks) != 1 || s[marks[0][0]:marks[0][1]] != c.want {
			t.Errorf("%s in %s: marked %v", c.query, s, marks)
		}
	}
}

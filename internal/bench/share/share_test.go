package share

import (
	"runtime"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	before, ok := parse("cpu  100 0 50 200 10 0 5 35 0 0\ncpu0 1 1", "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 20 10 0 0 20 0")
	after, ok2 := parse("cpu  130 10 60 230 20 0 5 45 0 0\n", "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 40 15 5 0 20 0")
	if !ok || !ok2 {
		t.Fatal("not read")
	}
	const want = "of the machine, this program had 30 %, other programs 20 %, other machines 10 %; 40 % was idle"
	if got := describe(before, after); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, s := range [][2]string{{"", ""}, {"cpu 1 2 3", "7 (a) S 1"}, {"cpu 1 2 3 4 5 6 7 8", "7 (a"}, {"cpu 1 2 3 4 5 6 7 8", ""}} {
		if _, ok := parse(s[0], s[1]); ok {
			t.Errorf("%q is read", s)
		}
	}
	if got := Begin()(); runtime.GOOS == "linux" && !strings.Contains(got, "this program") {
		t.Errorf("here it says %q", got)
	}
}

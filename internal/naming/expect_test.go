package naming

import (
	"fmt"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// A list that is expected to be short is whole all the same, in the same order,
// and has nothing twice.
func TestListExpect(t *testing.T) {
	st := memory.New()
	for i := range 100 {
		id := session.ID(fmt.Sprint("s", i))
		log := sessiontest.Log(session.Header{Version: session.Version, ID: id, Key: session.Key(fmt.Sprint("t:cli:", i))})
		if err := st.Append(t.Context(), id, log...); err != nil {
			t.Fatal(err)
		}
	}
	list := func(expect int) (ids []session.ID) {
		for in, err := range List(t.Context(), st, Choice{Expect: expect}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, in.ID)
		}
		return ids
	}
	want := fmt.Sprint(list(0))
	for _, expect := range []int{1, 3, 99, 100, 101} {
		if got := fmt.Sprint(list(expect)); got != want {
			t.Errorf("expecting %d gives %s, want %s", expect, got, want)
		}
	}
}

package rawjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ obj, key, val, want string }{
		{`{}`, "a", `1`, `{"a":1}`},
		{"{\n  \"a\": 1\n}", "b", `"x"`, "{\n  \"a\": 1,\"b\":\"x\"\n}"},
		{`{"a": "x", "b": [1]}`, "a", `{}`, `{"a": {}, "b": [1]}`},
		{`{"a": 1, "b": 2, "c": 3}`, "b", ``, `{"a": 1, "c": 3}`},
		{`{"a": 1, "b": 2 }`, "b", ``, `{"a": 1 }`},
		{`{ "a": 1 }`, "a", ``, `{  }`},
		{` {"a":1} `, "b", ``, ` {"a":1} `},
		{`{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
	} {
		var val []byte
		if c.val != "" {
			val = []byte(c.val)
		}
		if got, err := Set([]byte(c.obj), c.key, val); err != nil || string(got) != c.want {
			t.Errorf("Set(%s, %s, %s) = %s, %v, want %s", c.obj, c.key, c.val, got, err, c.want)
		}
	}
	for _, obj := range []string{`[]`, `{`, ``} {
		if got, err := Set([]byte(obj), "a", []byte("1")); err == nil {
			t.Errorf("Set(%s) = %s", obj, got)
		}
	}
}

// Set does to the bytes what an assignment does to a map.
func TestSetIsAssignment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]string{"a", "b", "", "a b", "\"\n", "ü.x"})
		obj, want := []byte(`{ }`), map[string]int{}
		for i, n := 0, rapid.IntRange(0, 12).Draw(t, "steps"); i < n; i++ {
			k := keys.Draw(t, "key")
			val := []byte("7")
			if rapid.Bool().Draw(t, "delete") {
				val = nil
				delete(want, k)
			} else {
				want[k] = 7
			}
			var err error
			if obj, err = Set(obj, k, val); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]int{}
		if err := json.Unmarshal(obj, &got); err != nil {
			t.Fatalf("%s: %v", obj, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: %s", obj, d)
		}
	})
}

package json5

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStandardize(t *testing.T) {
	for in, want := range map[string]string{
		`{a: 'b', /* c */ "d": [1, +2, .5, 0x10, 5.,], // e` + "\n}": `{"a":"b","d":[1,2,0.5,16,5]}`,
		`[Infinity, -NaN, true, null]`:                               `[null,null,true,null]`,
		`'it\'s "a"\x41\v\
\q'`: `"it's \"a\"A\u000bq"`,
		"\ufeff{a_$1\u00a0: '\\ud83d\\ude00'}": `{"a_$1":"😀"}`,
		`{"http://x": 'a:b', c :1}`:            `{"c":1,"http://x":"a:b"}`,
	} {
		var got any
		if err := Unmarshal([]byte(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if b, _ := json.Marshal(got); string(b) != want {
			t.Errorf("%s is %s, want %s", in, b, want)
		}
	}
	// JSON values stay byte for byte.
	const kept = `[1.0, 1e5, 12345678901234567890, "p\u0041"`
	if got, err := Standardize([]byte(kept + ",]")); err != nil || !strings.HasPrefix(string(got), kept) {
		t.Errorf("%s,] became %s, %v", kept, got, err)
	}
	for _, in := range []string{``, `{`, `{a: hello}`, `{a 1}`, `'a`, `/* a`, `{}{}`, strings.Repeat("[", 1<<14)} {
		if got, err := Standardize([]byte(in)); err == nil {
			t.Errorf("%.20s became %s", in, got)
		}
	}
}

// FuzzStandardize: whatever a file holds, what comes out of it is JSON, and JSON
// comes out as it was meant.
func FuzzStandardize(f *testing.F) {
	for _, s := range []string{
		`{a: 'b', /* c */ "d": [1, +2, .5, 0x10,], // e` + "\n}", `{"a":"\u00e9\n"}`, `[Infinity, -NaN, true, null]`, "'a\\\nb'", `{`, "", "'\\u'", "1__2", "{'\xff':1,}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Standardize(data)
		if err == nil && !json.Valid(out) {
			t.Errorf("%q became %q, which is not JSON", data, out)
		}
		var a, b map[string]string
		if json.Unmarshal(data, &a) == nil && (Unmarshal(data, &b) != nil || len(a) != len(b)) {
			t.Errorf("%q is JSON and was read as %v", data, b)
		}
	})
}

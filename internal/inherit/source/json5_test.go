package source

import (
	"encoding/json"
	"testing"
)

// FuzzJSON5: whatever an index holds, what comes out of it is JSON, and JSON
// comes out as it was meant.
func FuzzJSON5(f *testing.F) {
	for _, s := range []string{
		`{a: 'b', /* c */ "d": [1, +2, .5, 0x10,], // e` + "\n}", `{"a":"\u00e9\n"}`, `[Infinity, -NaN, true, null]`, "'a\\\nb'", `{`, "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := fromJSON5(data)
		if err == nil && !json.Valid(out) {
			t.Errorf("%q became %q, which is no JSON", data, out)
		}
		var a, b map[string]string
		if json.Unmarshal(data, &a) == nil && (Unmarshal(data, &b) != nil || len(a) != len(b)) {
			t.Errorf("%q is JSON and was read as %v", data, b)
		}
	})
}

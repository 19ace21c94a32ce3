package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Sample returns a configuration file with every setting commented out at
// its default, so that a default that changes later is not frozen in it.
func Sample() []byte {
	var b strings.Builder
	b.WriteString("// goclaw's configuration. Every setting is optional; those below show the\n// defaults. goclaw config shows what is in effect, and why.\n{\n")
	c := Default()
	sample(&b, reflect.ValueOf(c), "  ")
	b.WriteString("}\n")
	return []byte(b.String())
}

func sample(b *strings.Builder, v reflect.Value, indent string) {
	for i := range v.NumField() {
		f, fv := v.Type().Field(i), v.Field(i)
		name, doc := f.Tag.Get("json"), setting{tag: f.Tag}.doc()
		if doc != "" {
			fmt.Fprintf(b, "%s// %s\n", indent, doc)
		}
		if fv.Kind() == reflect.Struct {
			fmt.Fprintf(b, "%s%q: {\n", indent, name)
			sample(b, fv, indent+"  ")
			fmt.Fprintf(b, "%s},\n", indent)
			continue
		}
		var val any = fv.Interface()
		if d, ok := val.(Duration); ok {
			val = d.String()
		}
		if fv.Kind() == reflect.Map {
			val = struct{}{}
		}
		var text strings.Builder
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(val); err != nil {
			panic(err) // a default that is no JSON
		}
		fmt.Fprintf(b, "%s// %q: %s,\n", indent, name, strings.TrimSpace(text.String()))
	}
}

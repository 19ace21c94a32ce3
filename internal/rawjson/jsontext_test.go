//go:build goexperiment.jsonv2

package rawjson

import (
	"bytes"
	"encoding/json/jsontext"
	json2 "encoding/json/v2"
	"io"
	"testing"
)

// BenchmarkJSONText fills a tape from the tokens of jsontext, and reads a
// struct by encoding/json/v2.
func BenchmarkJSONText(b *testing.B) {
	duplicates := jsontext.AllowDuplicateNames(true)
	b.Run("tape", func(b *testing.B) {
		var nodes []node
		var stack []int
		d := jsontext.NewDecoder(bytes.NewBuffer(nil), duplicates)
		benchmark(b, func(l []byte) error {
			d.Reset(bytes.NewBuffer(l), duplicates)
			nodes, stack = nodes[:0], stack[:0]
			for {
				tok, err := d.ReadToken()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				end := uint32(d.InputOffset())
				switch tok.Kind() {
				case '{', '[':
					stack = append(stack, len(nodes))
					nodes = append(nodes, node{start: end - 1})
				case '}', ']':
					top := &nodes[stack[len(stack)-1]]
					top.end, top.next = end, uint32(len(nodes))
					stack = stack[:len(stack)-1]
				default:
					nodes = append(nodes, node{end: end, next: uint32(len(nodes) + 1)})
				}
			}
		})
	})
	b.Run("struct", func(b *testing.B) {
		benchmark(b, func(l []byte) error {
			var v line
			return json2.Unmarshal(l, &v, duplicates, json2.MatchCaseInsensitiveNames(true))
		})
	})
}

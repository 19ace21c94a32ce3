package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/tool"
)

// noise is a PNG that does not compress: its size is about 3 bytes a pixel.
func noise(t *testing.T, w, h int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	random.Read(img.Pix)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ask -a refuses what read_file refuses, for the same reason, before anything is
// recorded.
func TestAttachmentsAreCheckedAsReadFileDoes(t *testing.T) {
	dir := t.TempDir()
	small := noise(t, 20, 20)
	var wide bytes.Buffer
	if err := png.Encode(&wide, image.NewPaletted(image.Rect(0, 0, 9000, 1), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	broken := bytes.Clone(small)
	broken[len(broken)/2] ^= 1
	set, err := tool.New(tool.Options{Workspace: dir, Now: time.Now, DisableBash: true})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for name, c := range map[string]struct {
		data []byte
		says string // "": it is taken
	}{
		"fine.png":   {small, ""},
		"large.png":  {noise(t, 1300, 1300), "larger than the 3.8 MB that can be sent"},
		"wide.png":   {wide.Bytes(), "exceeds the 8000 pixels a side"},
		"broken.png": {broken, "is damaged"},
		"cut.png":    {small[:len(small)-13], "is damaged"},
		"lies.png":   {append([]byte("\x89PNG\r\n\x1a\n"), "IEND"...), "is damaged"},
		"jpeg.png":   {[]byte("\xff\xd8\xff\xd9"), "is damaged"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := (&env{}).attachment(path)
		args, _ := json.Marshal(map[string]string{"path": name})
		r, toolErr := set.Run(t.Context(), llm.ToolCall{ID: "c1", Name: "read_file", Args: args})
		if toolErr != nil {
			t.Fatal(toolErr)
		}
		if c.says == "" {
			if _, ok := b.(llm.Image); !ok || err != nil || r.IsError {
				t.Errorf("%s: %T, %v, %s", name, b, err, r.Text())
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || !r.IsError || !strings.Contains(r.Text(), c.says) {
			t.Errorf("%s: ask says %v, read_file says %q; want %q", name, err, r.Text(), c.says)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "empty.png"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&env{}).attachment(filepath.Join(dir, "empty.png")); err == nil || !strings.Contains(err.Error(), "it is empty") {
		t.Errorf("an empty file: %v", err)
	}
}

package window

import (
	"math"

	"goclaw/llm"
)

// unknownImage is what an image costs when its size cannot be read.
const unknownImage = 1500

// Models scale images down to this many pixels on the longer edge and to this
// many tokens; 750 pixels are a token.
const (
	maxEdge        = 1568
	maxImageTokens = 1600
	pixelsPerToken = 750
)

// imageCost is how many tokens im costs, by its width and height.
func imageCost(im llm.Image) int {
	w, h := im.Size()
	if w <= 0 || h <= 0 {
		return unknownImage
	}
	fw, fh := float64(w), float64(h)
	if long := max(fw, fh); long > maxEdge {
		fw, fh = fw*maxEdge/long, fh*maxEdge/long
	}
	return min(maxImageTokens, max(1, int(math.Ceil(fw*fh/pixelsPerToken))))
}

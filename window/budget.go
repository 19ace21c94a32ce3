package window

import "fmt"

// Budget is how much of a window is used.
type Budget struct {
	Window  int // tokens that the model takes, prompt and answer together
	Reserve int // tokens kept free for the answer; 0: what the function Reserve returns
	Used    int // tokens of the context
	Counted int // the part of Used that no model reported; it may be wrong
}

// The reserve is at most maxRoom or a tenth of the window, whichever is less,
// and at least minRoom. Neither the user's setting nor minRoom takes more than a
// quarter of a small window.
const (
	maxRoom = 16_000
	minRoom = 1024
)

// Reserve is how many tokens of a window are kept free for the answer, for a
// model whose answers have at most output tokens (0: not known) and a user who
// wants at least want.
func Reserve(window, output, want int) int {
	room := min(maxRoom, window/10)
	if output > 0 {
		room = min(room, output)
	}
	return max(0, min(max(room, want, minRoom), window/4))
}

// Percent is how full the window is, at most 100.
func (b Budget) Percent() int {
	if b.Window <= 0 {
		return 0
	}
	return min(100, b.Used*100/b.Window)
}

// Kept is how many tokens are kept free for the answer.
func (b Budget) Kept() int {
	if b.Reserve > 0 {
		return b.Reserve
	}
	return Reserve(b.Window, 0, 0)
}

// slack is how far a count may be wrong, in percent. beside, in thousandths of
// the window, and maxBeside are for what is not counted: the context line,
// notices, and what servers put between messages.
const (
	slack     = 5
	beside    = 25
	maxBeside = 250
)

// Free is how many tokens are left for the answer, with a margin: a strict server
// refuses a request that is one token too long.
func (b Budget) Free() int {
	return b.Window - b.Used - b.Counted*slack/100 - min(b.Window*beside/1000, maxBeside)
}

// Full reports whether less is free than the reserve.
func (b Budget) Full() bool { return b.Window > 0 && b.Free() < b.Kept() }

// Scarce reports whether so little is free that an answer is likely to be cut:
// less than a quarter of the reserve, or, if the reserve is larger than that,
// fewer than 1,024 tokens.
func (b Budget) Scarce() bool {
	least := b.Kept() / 4
	if b.Kept() >= minRoom {
		least = max(least, minRoom)
	}
	return b.Window > 0 && b.Free() < least
}

// Answer is how many tokens an answer may have: want, or what still fits, but
// never less than a few words. A want of 0 leaves the choice to the provider as
// long as there is ample room.
func (b Budget) Answer(want int) int {
	const ample, least = 32_000, 256 // no provider chooses more than 32,000 by default
	if b.Window <= 0 {
		return want
	}
	room := max(least, b.Free())
	if want == 0 && room >= ample {
		return 0
	}
	if want == 0 {
		return room
	}
	return min(want, room)
}

// String is the context line: "[Context: 156k/200k tokens (78%)]", or "[Context:
// 156k tokens]" if the window is not known.
func (b Budget) String() string {
	if b.Window <= 0 {
		return fmt.Sprintf("[Context: %s tokens]", Short(b.Used))
	}
	return fmt.Sprintf("[Context: %s/%s tokens (%d%%)]", Short(b.Used), Short(b.Window), b.Percent())
}

// Short writes a number of tokens as people do: 950, 1.5k, 156k, 1M.
func Short(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000 && n%1000 >= 100:
		return fmt.Sprintf("%d.%dk", n/1000, n%1000/100)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	case n%1_000_000 >= 100_000:
		return fmt.Sprintf("%d.%dM", n/1_000_000, n%1_000_000/100_000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}

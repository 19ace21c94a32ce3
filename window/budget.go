package window

import "fmt"

// Budget is how much of a window is used.
type Budget struct {
	Window  int // what the model takes, prompt and answer together
	Reserve int // what is kept free for the answer; 0: what Reserve says of the window
	Used    int // what the context holds
	Counted int // the part of Used that no model reported: it may be off
}

// What is kept free for an answer: at most maxRoom or a tenth of the window,
// whichever is less, and at least minRoom. Neither a wish of the user nor
// minRoom takes more than a quarter of a small window.
const (
	maxRoom = 16_000
	minRoom = 1024
)

// Reserve is how many tokens of a window are kept free for the answer of a
// model that gives output tokens at most (0: not known), where the user wants
// want of them at least.
func Reserve(window, output, want int) int {
	room := min(maxRoom, window/10)
	if output > 0 {
		room = min(room, output)
	}
	return max(0, min(max(room, want, minRoom), window/4))
}

// Percent is how full the window is, 100 where more is used than fits.
func (b Budget) Percent() int {
	if b.Window <= 0 {
		return 0
	}
	return min(100, b.Used*100/b.Window)
}

// Kept is what is kept free for the answer.
func (b Budget) Kept() int {
	if b.Reserve > 0 {
		return b.Reserve
	}
	return Reserve(b.Window, 0, 0)
}

// slack is how far a count may be off, in percent of it; beside is what comes on
// top of it, in thousandths of the window and at most: the context line, notices,
// and what servers put between messages.
const (
	slack     = 5
	beside    = 25
	maxBeside = 250
)

// Free is what is left for the answer, with a margin: a server that is strict
// refuses a request that is one token too long.
func (b Budget) Free() int {
	return b.Window - b.Used - b.Counted*slack/100 - min(b.Window*beside/1000, maxBeside)
}

// Full reports whether less is free than is kept for the answer.
func (b Budget) Full() bool { return b.Window > 0 && b.Free() < b.Kept() }

// Scarce reports whether so little is free that an answer is likely to be cut:
// a quarter of what is kept, or fewer than 1,024 tokens where so many are kept.
func (b Budget) Scarce() bool {
	least := b.Kept() / 4
	if b.Kept() >= minRoom {
		least = max(least, minRoom)
	}
	return b.Window > 0 && b.Free() < least
}

// Answer is how long an answer may be beside what is used: want, or what
// still fits, but never less than a few words. A want of 0 leaves the choice
// to the provider as long as there is ample room.
func (b Budget) Answer(want int) int {
	const ample, least = 32_000, 256 // no provider chooses more than 32,000 by itself
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

// String is the line that tells the model: "[Context: 156k/200k tokens (78%)]",
// or "[Context: 156k tokens]" where the window is not known.
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

package window

import "fmt"

// Budget is how much of a window is used.
type Budget struct {
	Window  int // what the model takes
	Reserve int // what is kept free for the answer
	Used    int // what the context holds
}

// Percent is how full the window is, 100 where more is used than fits.
func (b Budget) Percent() int {
	if b.Window <= 0 {
		return 0
	}
	return min(100, b.Used*100/b.Window)
}

// Full reports whether nothing more fits beside the reserve.
func (b Budget) Full() bool { return b.Window > 0 && b.Used >= b.Window-b.Reserve }

// slack is how far an estimate may be off, in percent of what is used.
const slack = 3

// Answer is how long an answer may be beside what is used: want, or what
// still fits, but never less than a few words. A want of 0 leaves the choice
// to the provider as long as there is ample room.
func (b Budget) Answer(want int) int {
	const ample, least = 16_000, 256
	if b.Window <= 0 {
		return want
	}
	room := max(least, b.Window-b.Used-b.Used*slack/100-overhead)
	if want == 0 && room >= ample {
		return 0
	}
	if want == 0 {
		return room
	}
	return min(want, room)
}

// String is the line that tells the model: "[Context: 156k/200k tokens (78%)]".
func (b Budget) String() string {
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

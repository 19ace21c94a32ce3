package progress

import (
	"fmt"
	"math"
	"time"

	"goclaw/internal/text"
)

// pace says how fast something is done, and how long the rest will take. It is
// smoothed: what was done lately counts most. As long as that would be a guess
// it says nothing.
type pace struct {
	last  time.Time
	done  float64
	took  time.Duration // how long it has been watched
	count float64       // done lately, and in how many seconds
	secs  float64
}

// smooth is the time after which something done counts only a third;
// rateAfter and leftAfter are when a rate and the time left are known well
// enough.
const (
	smooth    = 8 * time.Second
	rateAfter = time.Second
	leftAfter = 2 * time.Second
)

// at notes how much is done now. Less than before begins another pass.
func (p *pace) at(now time.Time, done float64) {
	if p.last.IsZero() || done < p.done {
		*p = pace{last: now, done: done}
		return
	}
	passed := now.Sub(p.last)
	if passed <= 0 {
		return // it counts the next time
	}
	fades := math.Exp(-passed.Seconds() / smooth.Seconds())
	p.count = p.count*fades + done - p.done
	p.secs = p.secs*fades + passed.Seconds()
	p.last, p.done, p.took = now, done, p.took+passed
}

// rate is how much is done in a second; 0: not known yet.
func (p *pace) rate() float64 {
	if p.took < rateAfter {
		return 0
	}
	return p.count / p.secs
}

// left is how long the rest takes, which is rest in the same unit; 0: not known
// yet.
func (p *pace) left(rest float64) time.Duration {
	rate := p.rate()
	if p.took < leftAfter || rate <= 0 || rest <= 0 || rest/rate > 99*3600 {
		return 0
	}
	return max(time.Duration(rest/rate*float64(time.Second)), time.Second)
}

// rates are what a line of progress says besides how much is done: each is empty
// as long as it is not known.
type rates struct{ speed, left string }

// rates returns what is known now; speed writes a rate.
func (p *pace) rates(rest float64, speed func(perSecond float64) string) (r rates) {
	if rate := p.rate(); rate > 0 {
		r.speed = speed(rate)
	}
	switch left := p.left(rest); {
	case rest <= 0:
		r.left = "nearly done"
	case left > 0:
		r.left = remaining(left) + " left"
	}
	return r
}

// remaining writes a time as precisely as it is known.
func remaining(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(math.Ceil(d.Seconds())))
	case d < 10*time.Minute:
		d = d.Round(10 * time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d.Round(time.Minute)/time.Minute)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// perSecond writes a rate of things.
func perSecond(rate float64) string {
	if rate < 9.95 {
		return fmt.Sprintf("%.1f/s", rate)
	}
	return fmt.Sprintf("%.0f/s", rate)
}

// bytesPerSecond writes a rate of bytes.
func bytesPerSecond(rate float64) string { return text.Bytes(int64(rate)) + "/s" }

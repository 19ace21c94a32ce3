// Package share says how much of the machine a measurement had: a time that was
// measured beside other programs says little without it.
package share

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// tick is the unit of Linux's counters.
const tick = 10 * time.Millisecond

// times are processor times since the machine started.
type times struct {
	all, idle, stolen time.Duration
	own               time.Duration // of this process and the children that have ended
}

// Begin begins a measurement. The function that it returns says who had the
// machine since: "" where that is not known.
func Begin() func() string {
	before, ok := now()
	return func() string {
		after, ok2 := now()
		if !ok || !ok2 {
			return ""
		}
		return describe(before, after)
	}
}

func describe(before, after times) string {
	all := max(after.all-before.all, tick)
	of := func(d time.Duration) float64 { return 100 * max(0, d.Seconds()) / all.Seconds() }
	own, idle, stolen := of(after.own-before.own), of(after.idle-before.idle), of(after.stolen-before.stolen)
	return fmt.Sprintf("of the machine, this program had %.0f %%, other programs %.0f %%, other machines %.0f %%; %.0f %% was idle",
		own, max(0, 100-own-idle-stolen), stolen, idle)
}

func now() (t times, ok bool) {
	machine, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, false
	}
	process, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return t, false
	}
	return parse(string(machine), string(process))
}

// parse reads Linux's /proc/stat and /proc/self/stat.
func parse(machine, process string) (t times, ok bool) {
	line, _, _ := strings.Cut(machine, "\n")
	var user, nice, system, idle, waiting, irq, softirq, stolen time.Duration
	if n, _ := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &irq, &softirq, &stolen); n != 8 {
		return t, false
	}
	t.idle, t.stolen = (idle+waiting)*tick, stolen*tick
	t.all = (user+nice+system+irq+softirq)*tick + t.idle + t.stolen
	at := strings.LastIndex(process, ") ") // the name before it may hold anything
	fields := strings.Fields(process[at+1:])
	if at < 0 || len(fields) < 15 {
		return t, false
	}
	for _, f := range fields[11:15] { // user and system time, and those of children
		var n time.Duration
		if _, err := fmt.Sscan(f, &n); err != nil {
			return t, false
		}
		t.own += n * tick
	}
	return t, true
}

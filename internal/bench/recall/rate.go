package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"goclaw/recall"
)

const (
	rateGoal = 300 // messages a second that one core is to embed
	rateOf   = 512 // messages that are measured
)

// rates prints how many messages of each set the model embeds in a second. It
// uses one core.
func rates(ctx context.Context, out io.Writer, sets []*set) error {
	for _, s := range sets {
		var texts []string
		bytes := 0
		for _, name := range slices.Sorted(maps.Keys(s.docs)) {
			for _, d := range s.docs[name] {
				if len(texts) < rateOf {
					texts = append(texts, d.Text)
					bytes += len(d.Text)
				}
			}
		}
		if len(texts) == 0 {
			continue
		}
		began, worked := time.Now(), cpuTime()
		for batch := range slices.Chunk(texts, 64) {
			if _, err := (recall.Local{}).Vectors(ctx, batch); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "vectors of %s (%d bytes on average): %.0f messages/s on one core, %.0f in a second of processor time, goal %d\n", s.name, bytes/len(texts),
			float64(len(texts))/time.Since(began).Seconds(), float64(len(texts))/max(cpuTime()-worked, 10*time.Millisecond).Seconds(), rateGoal)
	}
	return nil
}

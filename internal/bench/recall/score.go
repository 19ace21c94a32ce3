package main

import (
	"math"
	"math/rand/v2"
)

// score is recall@5, recall@10, nDCG@10 and MRR of one question, from 0 to 1.
type score [4]float64

var measures = [4]string{"recall@5", "recall@10", "nDCG@10", "MRR"}

// rate compares what was found with what should have been found.
func rate(gold, found []string) (s score) {
	want := map[string]bool{}
	for _, g := range gold {
		want[g] = true
	}
	seen := map[string]bool{}
	rank, dcg := 0, 0.0
	for _, id := range found {
		if seen[id] {
			continue
		}
		seen[id] = true
		if rank++; !want[id] {
			continue
		}
		if rank <= 5 {
			s[0] += 1 / float64(len(want))
		}
		if rank <= 10 {
			s[1] += 1 / float64(len(want))
			dcg += 1 / math.Log2(float64(rank)+1)
		}
		if s[3] == 0 {
			s[3] = 1 / float64(rank)
		}
	}
	ideal := 0.0
	for i := range min(len(want), 10) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	if ideal > 0 {
		s[2] = dcg / ideal
	}
	return s
}

// mean returns the means of all in percent.
func mean(all []score) (m score) {
	for _, s := range all {
		for i := range m {
			m[i] += 100 * s[i] / float64(len(all))
		}
	}
	return m
}

// noise returns the standard error of the mean of recall@10 in percent, by
// drawing the questions again; minus is subtracted from each, if there is any.
func noise(all, minus []score) float64 {
	rng := rand.New(rand.NewPCG(7, 7))
	const draws = 1000
	sum, squares := 0.0, 0.0
	for range draws {
		mean := 0.0
		for range all {
			i := rng.IntN(len(all))
			x := all[i][1]
			if minus != nil {
				x -= minus[i][1]
			}
			mean += 100 * x / float64(len(all))
		}
		sum += mean / draws
		squares += mean * mean / draws
	}
	return math.Sqrt(max(0, squares-sum*sum))
}

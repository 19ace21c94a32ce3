// Package cores shares work among the cores of the machine.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do for 0 to n-1, on several cores at the same time and in no
// particular order. Each core has a T of its own, which is zero at first; Each
// returns them.
func Each[T any](n int, do func(own *T, i int)) []T {
	all := make([]T, min(n, runtime.GOMAXPROCS(0)))
	var next atomic.Int64
	work := func(own *T) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(own, i)
		}
	}
	var others sync.WaitGroup
	for i := 1; i < len(all); i++ {
		others.Go(func() { work(&all[i]) })
	}
	if len(all) > 0 {
		work(&all[0])
	}
	others.Wait()
	return all
}

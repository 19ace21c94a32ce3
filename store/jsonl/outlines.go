package jsonl

import (
	"slices"
	"sync"
)

// maxOutlined is how many records all outlines in memory may have: some 50 MB.
const maxOutlined = 1 << 18

// outlines are the logs that have an outline in memory, the latest last.
// Together they have at most maxOutlined records; the latest may have more.
type outlines struct {
	mu   sync.Mutex
	used []outlined
}

type outlined struct {
	log  *log
	size int
}

// use notes that l, which the caller holds, is in use. If there are too many
// records, the logs that were not used for the longest time drop their outline.
func (o *outlines) use(l *log) {
	size := len(l.view.places)
	if size == 0 {
		return
	}
	o.mu.Lock()
	o.used = slices.DeleteFunc(o.used, func(u outlined) bool { return u.log == l })
	o.used = append(o.used, outlined{l, size})
	var drop []outlined
	sum := 0
	for i, u := range slices.Backward(o.used) {
		if sum += u.size; sum > maxOutlined && u.log != l {
			drop = slices.Clone(o.used[:i+1])
			o.used = slices.Delete(o.used, 0, i+1)
			break
		}
	}
	o.mu.Unlock()
	for _, u := range drop {
		if u.log.mu.TryLock() { // whoever holds it calls use
			u.log.view.outline, u.log.view.places = nil, nil
			u.log.mu.Unlock()
		}
	}
}

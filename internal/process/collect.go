// Package process is about the process of goclaw itself: what others can see of it,
// how it starts itself again in the background, and when it collects garbage.
package process

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is from which size of the heap on garbage is collected, in
// percent of the 4 MB that Go begins with. Most commands end before that.
const firstCollection = 800

// CollectLate lets a short command end without collecting garbage, which takes
// longer than to start. After the first collection it is as often as usual.
func CollectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(firstCollection)
	// What nothing refers to is gone with the first collection.
	runtime.AddCleanup(new([64]byte), func(usual int) {
		if now := debug.SetGCPercent(usual); now != firstCollection {
			debug.SetGCPercent(now) // an import has changed it meanwhile
		}
	}, usual)
}

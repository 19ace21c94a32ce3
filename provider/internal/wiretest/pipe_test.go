package wiretest_test

import (
	"net/http"
	"sync"
	"testing"

	"goclaw/provider/internal/wiretest"
)

// A request that arrives while the test ends is either served to its end before the
// test is over, or not at all.
func TestPipedEnds(t *testing.T) {
	var clients sync.WaitGroup
	for range 200 {
		var mu sync.Mutex
		over, late := false, false
		t.Run("", func(t *testing.T) {
			t.Cleanup(func() { // after that of Piped
				mu.Lock()
				over = true
				mu.Unlock()
			})
			arrived := make(chan struct{}, 8)
			client := wiretest.Piped(t, func(http.ResponseWriter, *http.Request) {
				arrived <- struct{}{}
				mu.Lock()
				late = late || over
				mu.Unlock()
			})
			for range 8 {
				clients.Go(func() {
					if resp, err := client.Get("http://x/"); err == nil {
						resp.Body.Close()
					}
				})
			}
			<-arrived // the others are on their way
		})
		mu.Lock()
		if late {
			t.Error("a request was served after the test")
		}
		mu.Unlock()
	}
	clients.Wait()
}

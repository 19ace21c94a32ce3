package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goclaw/provider/retry"
)

// Calls that may succeed later are marked with Again.
func Example() {
	p := retry.Policy{Max: 2, Base: time.Millisecond}
	tries := 0
	err := p.Do(context.Background(), func() error {
		tries++
		if tries < 3 {
			return &retry.Again{Err: errors.New("overloaded")}
		}
		return nil
	}, nil)
	fmt.Println(tries, err)
	// Output: 3 <nil>
}

package anthropic

import (
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/provider/internal/wiretest"
)

func at(url string) (llm.Provider, *[]time.Duration) { return provider(url) }

func TestRecordedErrors(t *testing.T) { wiretest.Recorded(t, "claude-nine", at) }

//go:build !linux

package main

import (
	"time"

	"goclaw/internal/pgtest"
)

// CPU times are known on Linux only.
func own() time.Duration { return 0 }

func used(*pgtest.Server) time.Duration { return 0 }

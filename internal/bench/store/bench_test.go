package main

import (
	"fmt"
	"testing"
	"time"

	"goclaw/store/storetest"
)

// BenchmarkStore measures what the table shows, one figure at a time, for
// profiles. Every figure that has a limit is a ratio of two things measured
// alternately within one run, because the machine is busy:
//
//	append       one durable append; x-raw: of a raw write+fdatasync of the same bytes
//	group        64 writers on 64 sessions; x-one: of the records per second of one writer
//	length/N     one append to a session of N records; x-100: of one to a session of 100
//	sessions/N   one append in a store of N sessions; x-1: of one in a store of one
//	restore/N    open and session.Open of N records, compacted near the end; x-1k: of 1,000
//	list         all of 10,000 sessions
func BenchmarkStore(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { measure(b, inSQLite()) })
	b.Run("jsonl", func(b *testing.B) { measure(b, inFolder) })
}

func measure(b *testing.B, open storetest.Opener) {
	b.Run("append", func(b *testing.B) {
		one, raw, err := benchAppend(open, b.TempDir(), b.N)
		report(b, err, median(one), ratio(median(one), median(raw)), "x-raw")
	})
	b.Run("group", func(b *testing.B) {
		one, many, err := benchGroup(open, b.TempDir(), b.N, true)
		report(b, err, time.Duration(float64(time.Second)/many), many/one, "x-one")
	})
	b.Run("length", func(b *testing.B) {
		sizes := lengths(false)
		took, err := benchLength(open, b.TempDir(), sizes, max(b.N, 50))
		for i, n := range sizes {
			b.Run(fmt.Sprint(n), func(b *testing.B) { report(b, err, took[i], ratio(took[i], took[0]), "x-100") })
		}
	})
	b.Run("sessions", func(b *testing.B) {
		took, list, _, err := benchSessions(open, b.TempDir(), manyCounts, max(b.N, 50))
		for i, n := range manyCounts {
			b.Run(fmt.Sprint(n), func(b *testing.B) { report(b, err, took[i], ratio(took[i], took[0]), "x-1") })
		}
		b.Run("list", func(b *testing.B) {
			report(b, err, median(list), float64(median(list))/float64(time.Millisecond), "ms")
		})
	})
	b.Run("restore", func(b *testing.B) {
		sizes := restoreLengths(false)
		took, err := benchRestore(open, b.TempDir(), sizes)
		for i, n := range sizes {
			b.Run(fmt.Sprint(n), func(b *testing.B) { report(b, err, took[i], ratio(took[i], took[0]), "x-1k") })
		}
	})
}

func report(b *testing.B, err error, took time.Duration, figure float64, unit string) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(took), "ns/op")
	b.ReportMetric(figure, unit)
}

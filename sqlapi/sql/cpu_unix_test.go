//go:build unix

package sql

import (
	"syscall"
	"testing"
	"time"
)

// reportCPU reports the process's CPU time for each operation, which is more reliable than elapsed time on a busy
// machine.
func reportCPU(b *testing.B) func() {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := used()
	return func() { b.ReportMetric(float64((used()-began).Microseconds())/float64(b.N), "cpu-µs/op") }
}

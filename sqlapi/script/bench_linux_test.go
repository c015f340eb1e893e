package script_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// cpu returns the CPU time of this process and of the pool's workers.
func cpu(b *testing.B, pool *script.Pool) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	total := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	for _, pid := range script.Pids(pool) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
		const utime, tick = 11, 10 * time.Millisecond
		for _, text := range fields[utime : utime+2] {
			n, err := strconv.Atoi(text)
			if err != nil {
				b.Fatal(err)
			}
			total += time.Duration(n) * tick
		}
	}
	return total
}

package script_test

import (
	"fmt"
	"os"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// residentOf returns the bytes of memory that the workers of a pool have.
func residentOf(pool *script.Pool) (total int64) {
	for _, pid := range script.Pids(pool) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue // it has ended
		}
		var size, resident int64
		if _, err := fmt.Sscan(string(b), &size, &resident); err == nil {
			total += resident * int64(os.Getpagesize())
		}
	}
	return total
}

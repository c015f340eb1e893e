package admit

import (
	"math"
	"runtime/metrics"
	"time"
)

// runtimeDelay reads from the runtime's metrics how long goroutines have waited for a processor since the last reading.
type runtimeDelay struct {
	sample []metrics.Sample
	before []uint64
}

func newRuntimeDelay() *runtimeDelay {
	d := &runtimeDelay{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
	d.read() // the time before doesn't count
	return d
}

// read returns the 90th percentile of the waits since the last reading. With too few waits it returns a negative
// number, and they count in the next reading.
func (d *runtimeDelay) read() time.Duration {
	metrics.Read(d.sample)
	if d.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return -1
	}
	h := d.sample[0].Value.Float64Histogram()
	if len(d.before) != len(h.Counts) {
		d.before = make([]uint64, len(h.Counts))
	}
	counts := make([]uint64, len(h.Counts))
	for i, n := range h.Counts {
		counts[i] = n - d.before[i]
	}
	q := quantile(counts, h.Buckets)
	if q >= 0 {
		copy(d.before, h.Counts)
	}
	return q
}

// fewest is the smallest number of waits for a percentile.
const fewest = 16

// quantile returns the upper bound of the bucket that contains the 90th percentile, or -1 if there are too few counts.
func quantile(counts []uint64, bounds []float64) time.Duration {
	var all uint64
	for _, n := range counts {
		all += n
	}
	if all < fewest {
		return -1
	}
	var seen uint64
	for i, n := range counts {
		if seen += n; seen*10 >= all*9 {
			hi := bounds[i+1]
			if math.IsInf(hi, 0) {
				hi = bounds[i]
			}
			return time.Duration(hi * float64(time.Second))
		}
	}
	return 0
}

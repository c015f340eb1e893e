package ru

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The last minute is measured in steps.
const (
	step  = 10 * time.Second
	steps = 6
)

// Meter counts the request units that a physical partition has used. To count costs one atomic addition. Sample, which
// must be called about once a second, computes the rates. Safe for concurrent use.
type Meter struct {
	hundredths atomic.Int64
	Bucket     Bucket // of the partition's throughput

	mu     sync.Mutex // guards the rest
	last   sample
	second float64           // RU/s between the last two samples
	minute [steps + 1]sample // the newest one first, a step apart
}

// sample is the count at a time. The zero value is no sample.
type sample struct {
	at         time.Duration
	hundredths int64
}

// Add counts a charge in RU.
func (m *Meter) Add(charge float64) { m.hundredths.Add(int64(math.Round(charge * 100))) }

// Total returns the RU that were counted since the meter was made.
func (m *Meter) Total() float64 { return float64(m.hundredths.Load()) / 100 }

// Sample computes the rates. now is the time since a fixed moment, and is more than 0. Samples less than half a second
// apart are one.
func (m *Meter) Sample(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := sample{now, m.hundredths.Load()}
	if m.last.at == 0 { // the first one: everything before it counts as of the second before
		m.last.at = now - time.Second
		m.minute[0] = m.last
	}
	if now-m.last.at < time.Second/2 {
		return
	}
	m.second, m.last = s.rate(m.last), s
	if now-m.minute[0].at >= step {
		copy(m.minute[1:], m.minute[:steps])
		m.minute[0] = s
	}
}

// Rates returns the RU/s of the second before the last Sample, and of the 50 to 60 seconds before it.
func (m *Meter) Rates() (second, minute float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.minute[0]
	for _, s := range m.minute[1:] {
		if s.at != 0 && m.last.at-s.at <= steps*step {
			first = s
		}
	}
	if m.minute[steps].at == 0 { // the meter is younger than a minute
		first.at = m.last.at - steps*step
	}
	return m.second, m.last.rate(first)
}

// Whole reports whether the minute of Rates began after the meter was made. Before, its rate isn't comparable to that
// of an older meter.
func (m *Meter) Whole() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.minute[steps].at != 0
}

// rate returns the RU/s since an earlier sample.
func (s sample) rate(from sample) float64 {
	if s.at <= from.at {
		return 0
	}
	return float64(s.hundredths-from.hundredths) / 100 / (s.at - from.at).Seconds()
}

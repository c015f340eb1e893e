package ru

import (
	"math"
	"sync"
	"testing"
	"time"
)

// TestBucket: a bucket admits what a second gives, at once or little by little. A charge above that is taken later,
// from the requests that follow.
func TestBucket(t *testing.T) {
	var b Bucket
	now := time.Hour
	take := func(charge float64, rate int) {
		t.Helper()
		if w := b.Wait(now); w != 0 {
			t.Fatalf("%v: not admitted, wait %v", now-time.Hour, w)
		}
		b.Take(now, charge, rate)
	}
	wait := func(want time.Duration) {
		t.Helper()
		if w := b.Wait(now); (w == 0) != (want == 0) || (w-want).Abs() > time.Microsecond {
			t.Fatalf("%v: wait %v, want %v", now-time.Hour, w, want)
		}
	}
	for range 40 {
		take(10, 400)
	}
	wait(time.Nanosecond) // exactly empty
	now += 25 * time.Millisecond
	take(1000, 400) // 10 RU are there
	wait(2475 * time.Millisecond)
	now += 2475 * time.Millisecond
	wait(time.Nanosecond)
	now += time.Hour // it never holds more than a second's
	take(400, 400)
	wait(time.Nanosecond)
	now += time.Second
	take(5000, 10000) // another rate: half of the bucket
	now += 250 * time.Millisecond
	take(7500, 10000)
	wait(time.Nanosecond)
}

// TestBucketTogether: charges of concurrent requests add up.
func TestBucketTogether(t *testing.T) {
	var b Bucket
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				b.Take(time.Second, 1, 400)
			}
		})
	}
	wg.Wait()
	if w := b.Wait(time.Second); (w - 9*time.Second).Abs() > time.Microsecond {
		t.Errorf("wait %v after 4,000 RU at 400 RU/s", w)
	}
}

// TestMeter: the rates of the last second and the last minute, from samples that don't come exactly every second.
func TestMeter(t *testing.T) {
	var m Meter
	now := 50 * time.Second
	near := func(want, wantMinute float64) {
		t.Helper()
		if s, min := m.Rates(); math.Abs(s-want) > 0.01 || math.Abs(min-wantMinute) > 0.01 {
			t.Errorf("%v: %v RU/s in the last second, %v in the last minute, want %v and %v", now, s, min, want,
				wantMinute)
		}
	}
	near(0, 0)
	m.Add(60)
	m.Sample(now)
	near(60, 1)
	now += time.Second / 4
	m.Add(30)
	m.Sample(now) // too early
	near(60, 1)
	now += 5 * time.Second / 4
	m.Sample(now)
	near(20, 1.5)
	for range 120 {
		now += time.Second
		m.Add(7)
		m.Sample(now)
	}
	near(7, 7)
	now += time.Second
	m.Sample(now)
	if _, minute := m.Rates(); minute > 7*59./60 || minute < 7*49./50 {
		t.Errorf("%v RU/s in the last minute, of which 7 RU/s until a second ago", minute)
	}
	for range 70 {
		now += time.Second
		m.Sample(now)
	}
	near(0, 0)
	if m.Total() != 60+30+120*7 {
		t.Errorf("total %v", m.Total())
	}
}

func BenchmarkMeterAdd(b *testing.B) {
	var m Meter
	for b.Loop() {
		m.Add(1.14)
	}
}

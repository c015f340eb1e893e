// Package clock provides time, unique ids and randomness as one injectable value. No other package calls time.Now, rand
// or uuid.New (internal/imports checks this), so tests and users can freeze and advance time.
package clock

import (
	"crypto/rand"
	"math/big"
	mrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Clock tells the time and makes ids. The zero value is not usable: call New or Fake. Safe for concurrent use.
type Clock struct {
	mu   sync.Mutex // of those who change it; readers take no lock, because each request reads the time
	hand atomic.Pointer[hand]
}

// hand is what a clock shows. It is never changed, only replaced.
type hand struct {
	frozen bool
	at     time.Time
	ahead  time.Duration // of a running clock: its time minus the machine's
	start  time.Time     // of a running clock, with the reading of the monotonic clock
	passed time.Duration // Elapsed of a frozen clock; of a running one, Elapsed minus the time since start
}

// New returns the wall clock.
func New() *Clock { return showing(hand{start: time.Now()}) }

// Fake returns a frozen clock at time t. Only Advance and Set move it.
func Fake(t time.Time) *Clock { return showing(hand{frozen: true, at: t, start: time.Now()}) }

func showing(h hand) *Clock {
	c := &Clock{}
	c.hand.Store(&h)
	return c
}

// Now returns the time in UTC.
func (c *Clock) Now() time.Time { return c.hand.Load().now().UTC() }

func (h *hand) now() time.Time {
	if h.frozen {
		return h.at
	}
	return time.Now().Add(h.ahead)
}

// change replaces what the clock shows by what f makes of it.
func (c *Clock) change(f func(h *hand)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := *c.hand.Load()
	f(&h)
	c.hand.Store(&h)
}

// Frozen reports whether only Advance and Set move the clock.
func (c *Clock) Frozen() bool { return c.hand.Load().frozen }

// Freeze stops the clock at its present time.
func (c *Clock) Freeze() { c.change((*hand).freeze) }

func (h *hand) freeze() {
	if !h.frozen {
		h.at, h.passed = h.now(), h.elapsed()
		h.frozen = true
	}
}

// Run lets a frozen clock run from its present time.
func (c *Clock) Run() {
	c.change(func(h *hand) {
		if h.frozen {
			h.frozen = false
			h.ahead, h.passed = time.Until(h.at), h.passed-time.Since(h.start)
		}
	})
}

// Set moves the clock to time t. A frozen clock stays frozen, a running one runs on from there.
func (c *Clock) Set(t time.Time) {
	c.change(func(h *hand) {
		d := t.Sub(h.now())
		h.passed += max(0, d)
		if h.frozen {
			h.at = t
		} else {
			h.ahead += d
		}
	})
}

// Advance moves a frozen clock forward by d. A running clock is frozen first.
func (c *Clock) Advance(d time.Duration) {
	c.change(func(h *hand) {
		h.freeze()
		h.at = h.at.Add(d)
		h.passed += max(0, d)
	})
}

// Elapsed returns how much time has passed since some moment before. It never falls, and it doesn't change when the
// machine's clock is set. So it measures waiting, and says nothing to other processes. It may stand still while the
// machine is suspended. It moves with Set and Advance; a move to the past doesn't change it.
func (c *Clock) Elapsed() time.Duration { return c.hand.Load().elapsed() }

func (h *hand) elapsed() time.Duration {
	if h.frozen {
		return h.passed
	}
	return time.Since(h.start) + h.passed
}

// UUID returns a random (version 4) UUID.
func (c *Clock) UUID() uuid.UUID { return uuid.New() }

// Random fills b with cryptographically strong random bytes.
func (c *Clock) Random(b []byte) {
	if _, err := rand.Read(b); err != nil {
		panic("clock: no randomness: " + err.Error())
	}
}

// Float64 returns a pseudo-random number in [0, 1).
func (c *Clock) Float64() float64 { return mrand.Float64() }

// Int63 returns a cryptographically strong non-negative random number.
func (c *Clock) Int63() int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic("clock: no randomness: " + err.Error())
	}
	return n.Int64()
}

// Package clock provides time, unique ids and randomness as one injectable value. No other package calls time.Now, rand
// or uuid.New (internal/imports checks this), so tests and users can freeze and advance time.
package clock

import (
	"crypto/rand"
	"math/big"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Clock tells the time and makes ids. The zero value is not usable: call New or Fake. Safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	frozen bool
	at     time.Time
	ahead  time.Duration // of a running clock: its time minus the machine's
	start  time.Time     // of a running clock, with the reading of the monotonic clock
	passed time.Duration // Elapsed of a frozen clock; of a running one, Elapsed minus the time since start
}

// New returns the wall clock.
func New() *Clock { return &Clock{start: time.Now()} }

// Fake returns a frozen clock at time t. Only Advance and Set move it.
func Fake(t time.Time) *Clock { return &Clock{frozen: true, at: t, start: time.Now()} }

// Now returns the time in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().UTC()
}

func (c *Clock) now() time.Time {
	if c.frozen {
		return c.at
	}
	return time.Now().Add(c.ahead)
}

// Frozen reports whether only Advance and Set move the clock.
func (c *Clock) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// Freeze stops the clock at its present time.
func (c *Clock) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.frozen {
		c.at, c.passed = c.now(), c.elapsed()
		c.frozen = true
	}
}

// Run lets a frozen clock run from its present time.
func (c *Clock) Run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.frozen = false
		c.ahead, c.passed = time.Until(c.at), c.passed-time.Since(c.start)
	}
}

// Set moves the clock to time t. A frozen clock stays frozen, a running one runs on from there.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := t.Sub(c.now())
	c.passed += max(0, d)
	if c.frozen {
		c.at = t
	} else {
		c.ahead += d
	}
}

// Advance moves a frozen clock forward by d. A running clock is frozen first.
func (c *Clock) Advance(d time.Duration) {
	c.Freeze()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.passed += max(0, d)
}

// Elapsed returns how much time has passed since some moment before. It never falls, and it doesn't change when the
// machine's clock is set. So it measures waiting, and says nothing to other processes. It may stand still while the
// machine is suspended. It moves with Set and Advance; a move to the past doesn't change it.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed()
}

func (c *Clock) elapsed() time.Duration {
	if c.frozen {
		return c.passed
	}
	return time.Since(c.start) + c.passed
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

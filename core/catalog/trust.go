package catalog

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// Over a shared store a request has to know whether another process has changed the catalog. Without anything else it
// reads the version, one key of the whole store: a round trip for each request, to a place that nobody can spread. So a
// process trusts a version that it has read for TrustTime, and who changes the catalog waits for that time before the
// change is answered (Engine.published). When it has been answered nobody trusts the version before it.
//
// The time begins before the version is asked for. So if a process was shown the version from before a change, its
// time began before the change was committed, and ends within TrustTime of that.
//
// Who changes the catalog waits for nobody if there is no other process. It finds them by their signs of life. So a
// process trusts only while it surely has one (package lease), and only what it has asked for since it has that one.
//
// The time is measured by each process for itself, and not compared. So clocks may differ, but not in how fast they
// are: the wait is longer by an eighth. A machine that was suspended may trust for what was left of the time. Commits
// don't depend on that (core/store/trust.go).
//
// What is created needs no wait: a process that doesn't find a name reads the version before it says so.
//
// The version is read again before the time is over (Renew), so no request waits for that while a process is in use.
//
// Example: A reads version 12 at 0 ms, and is cut off from the store then. B drops container "c" at 50 ms, which is
// version 13, and answers at 275 ms. A request to A at 300 ms can't read the version, and fails. One at 100 ms may
// still find "c": the drop hasn't been answered.

// TrustTime is how long a process trusts a version of the catalog after it has asked for it.
const TrustTime = 200 * time.Millisecond

// AnswerTime is how long a change of the catalog waits when there are other processes.
const AnswerTime = TrustTime + TrustTime/8

// realTime measures TrustTime: other processes know nothing of the clock that a test has set.
var realTime = clock.New()

// trust is what a process trusts.
type trust struct {
	sign func() uint64 // the number of the sign of life that the process surely has; 0: none. nil: it never has one
	last atomic.Pointer[trusted]
	used atomic.Bool // since the last call of Renew
	idle int         // calls of Renew in which nothing was used
}

type trusted struct {
	version uint64
	sign    uint64
	begun   time.Time
}

// Look is the beginning of a read of the version.
type Look struct {
	sign uint64
	at   time.Time
}

// TrustWhile lets the catalog trust versions while the process has a sign of life. sign returns its number, 0 for none;
// a number doesn't come back. It is called before the catalog is used.
func (c *Catalog) TrustWhile(sign func() uint64) { c.trust.sign = sign }

// BeginLook is called before a read of the version, for Saw.
func (c *Catalog) BeginLook() (l Look) {
	if c.trust.sign != nil {
		l = Look{c.trust.sign(), realTime.Now()}
	}
	return l
}

// Saw notes that a read which has begun with l has shown a version. The version is trusted from then on.
func (c *Catalog) Saw(l Look, version uint64) {
	if l.sign != 0 {
		c.trust.last.Store(&trusted{version: version, sign: l.sign, begun: l.at})
	}
}

// Trusts reports whether a version needs no look: it is the one that this process knows, and is trusted.
func (c *Catalog) Trusts(version uint64) bool {
	t := c.trust.last.Load()
	return t != nil && t.version == version && c.Version() == version && realTime.Now().Sub(t.begun) < TrustTime &&
		c.trust.sign() == t.sign
}

// Current reports whether the catalog in memory needs no look, because its version is trusted.
func (c *Catalog) Current() bool {
	if c.trust.sign == nil {
		return false
	}
	if !c.trust.used.Load() {
		c.trust.used.Store(true)
	}
	return c.Trusts(c.Version())
}

// RenewTime is the time between two calls of Renew. One may fail, and the version is still trusted.
const RenewTime = TrustTime * 2 / 5

// idleTime is how long the version is read for nobody.
const idleTime = 5 * time.Second

// Renew reads the version for all requests, if there were any in the last seconds. One goroutine calls it again and
// again.
func (c *Catalog) Renew(ctx context.Context) {
	t := &c.trust
	if t.idle++; t.used.Swap(false) {
		t.idle = 0
	}
	if time.Duration(t.idle)*RenewTime > idleTime || t.sign() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, RenewTime)
	defer cancel()
	_, _ = c.Refresh(ctx) // a request that reads the version itself gets the error
}

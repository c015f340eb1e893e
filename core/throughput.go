package core

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// PartitionUse is what a physical partition uses of its throughput, in request units.
type PartitionUse struct {
	ID         string  // of the partition
	Total      float64 // since the container was opened: it is closed after some idle minutes
	Second     float64 // per second, in the last second
	Minute     float64 // per second, in the last minute
	Whole      bool    // the partition was metered for all of that minute
	Share      float64 // per second: what it may use. 0: there is no throughput
	Normalized float64 // Second / Share, 0 without Share
}

// Consumption returns what the container's physical partitions use, in the order of their ranges. It reads nothing. The
// partitions of a container without a throughput of its own have the throughput of the database as their Share, which
// all of its containers share.
func (c *Container) Consumption() []PartitionUse { return consumption(c.rt, c.rt.Slots()) }

func consumption(rt *store.Container, slots *store.Slots) []PartitionUse {
	share := rt.Share()
	out := make([]PartitionUse, len(slots.Map().Partitions))
	for i, m := range rt.Meters(slots) {
		u := &out[i]
		u.ID, u.Total, u.Share = strconv.Itoa(slots.Map().Partitions[i].ID), m.Total(), share
		u.Whole = m.Whole()
		if u.Second, u.Minute = m.Rates(); share > 0 {
			u.Normalized = u.Second / share
		}
	}
	return out
}

// ContainerUse is the consumption of one container.
type ContainerUse struct {
	Definition
	Partitions []PartitionUse
}

// Consumption returns the consumption of the containers in use, in no order.
func (e *Engine) Consumption() (out []ContainerUse) {
	for _, rt := range e.store.Opened() {
		out = append(out, ContainerUse{Definition{rt.Def()}, consumption(rt, rt.Slots())})
	}
	return out
}

// Throttled returns how many requests were refused because request units were used up.
func (e *Engine) Throttled() int64 { return e.store.Refused() }

// Limits of a throughput in request units per second.
const (
	DefaultThroughput = 400 // of a container that is created without one, where its database shares none
	MinThroughput     = 400
	MinAutoscale      = 1000 // of its maximum
	MaxThroughput     = 1000000
	ThroughputStep    = 100
	AutoscaleStep     = 1000  // of its maximum
	MaxFixed          = 10000 // of a container without a partition key
	SharedFree        = 25    // containers that share a database's throughput without raising its least one
)

// AutoscaleRange is the ratio of an autoscale maximum to its lower end.
const AutoscaleRange = 10

// ThroughputIn returns the throughput of a container that is created without one in a database: none if the database
// shares its own, otherwise DefaultThroughput.
func ThroughputIn(d *Database) (t Throughput) {
	if d.Throughput.Max() == 0 {
		t.Manual = DefaultThroughput
	}
	return t
}

// Held is what a throughput serves. The least value to which it can be lowered depends on it.
type Held struct {
	Bytes  int64 // of all items
	Shared int   // containers that share the throughput: of a database
}

// LeastThroughput returns the least throughput to which one can be lowered: manual, or an autoscale maximum. It is the
// greatest of the lower limit, a part of the highest throughput ever, a rate for the storage, and one for containers
// that share it above SharedFree:
//
//	             limit   highest ever   each GB   each container above 25
//	manual         400          1/100         1                      100
//	autoscale     1000           1/10        10                     1000
//
// Example: 30 GB that once had 100,000 RU/s need 1,000 RU/s, or an autoscale maximum of 10,000.
func LeastThroughput(t Throughput, held Held) int {
	gb, more := int((held.Bytes+1<<30-1)>>30), max(0, held.Shared-SharedFree)
	if t.AutoscaleMax > 0 {
		n := max(MinAutoscale+more*AutoscaleStep, t.Ever()/AutoscaleRange, AutoscaleRange*gb)
		return roundUp(n, AutoscaleStep)
	}
	return roundUp(max(MinThroughput+more*ThroughputStep, t.Ever()/100, gb), ThroughputStep)
}

// Migrated returns the throughput that a change between manual and autoscale gives. From manual it is an autoscale
// maximum that isn't below the manual value or the least maximum. From autoscale it is the maximum.
func Migrated(t Throughput, held Held) Throughput {
	if t.AutoscaleMax > 0 {
		return Throughput{Manual: max(MinThroughput, t.AutoscaleMax)}
	}
	least := LeastThroughput(Throughput{AutoscaleMax: MinAutoscale, Highest: t.Ever()}, held)
	return Throughput{AutoscaleMax: max(least, roundUp(t.Manual, AutoscaleStep))}
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// HeldBy returns what the throughput of a database serves: the containers without one of their own. It reads the sizes
// of all of them.
func (e *Engine) HeldBy(ctx context.Context, d *Database) (h Held, err error) {
	for st, err := range e.Stats(ctx, d.ID) {
		if err != nil {
			return h, err
		}
		if st.Spec().Throughput.Max() == 0 {
			h.Bytes, h.Shared = h.Bytes+st.Bytes, h.Shared+1
		}
	}
	return h, nil
}

// CheckThroughput refuses a throughput, which isn't none, outside of the limits. least is the least manual one or
// autoscale maximum; 0 = that of a new container.
func CheckThroughput(t Throughput, least int) error {
	if t.AutoscaleMax != 0 {
		if least == 0 && t.AutoscaleMax < MinAutoscale {
			return status.New(status.BadRequest, "Requested throughput %d is less than required minimum throughput %d.",
				t.AutoscaleMax, MinAutoscale)
		}
		if least = max(least, MinAutoscale); t.AutoscaleMax < least || t.AutoscaleMax > MaxThroughput ||
			t.AutoscaleMax%AutoscaleStep != 0 {
			return status.New(status.BadRequest, "The autoscale maximum throughput must be between %d and %d, in "+
				"steps of %d.", least, MaxThroughput, AutoscaleStep)
		}
		if t.AutoscaleIncrement < 0 || t.AutoscaleIncrement > 100 {
			return status.New(status.BadRequest,
				"The incrementPercent of autoscale settings must be between 0 and 100.")
		}
		return nil
	}
	if least = max(least, MinThroughput); t.Manual < least || t.Manual > MaxThroughput ||
		t.Manual%ThroughputStep != 0 {
		return status.New(status.BadRequest, "The offer should have valid throughput values between %d and %d "+
			"inclusive in increments of %d.", least, MaxThroughput, ThroughputStep)
	}
	return nil
}

// CheckIdle returns Locked for a throughput that isn't the present one while partitions of the container are split for
// its last change, by this process or another one over the store. The service refuses another change until then; here
// it is possible.
func (e *Engine) CheckIdle(ctx context.Context, d Definition, to Throughput) error {
	if to.Highest = d.def.Throughput.Highest; to == d.def.Throughput || !e.small(d.def) {
		return nil
	}
	_, waits := e.waiting.Load(d.RID())
	_, runs := e.resizing.Load(d.RID())
	if !waits && !runs {
		held, err := e.leases().List(ctx)
		if err != nil {
			return kv.Status(err)
		}
		resize := lease.Name{Kind: lease.Resize, Gen: d.def.Gen}
		if !slices.ContainsFunc(held, func(h lease.Held) bool { return h.Name == resize }) {
			return nil
		}
	}
	return status.New(status.Locked, "The throughput can't be changed while its last change is in progress: "+
		"partitions are being split.")
}

// checkFixed refuses a throughput that a container without a partition key can't have: it is one partition for ever.
func checkFixed(s *ContainerSpec) error {
	if s.PartitionKey.SystemKey && s.Throughput.Max() > MaxFixed {
		return status.New(status.BadRequest, "A container without a partition key has at most %d RU/s.", MaxFixed)
	}
	return nil
}

// meterTurn is the interval at which the rates of consumption are computed.
const meterTurn = time.Second

// startMeters computes the rates in the background.
func (e *Engine) startMeters() {
	e.work.Go("rates of consumption", func() {
		for e.work.Sleep(meterTurn) {
			e.store.Sample()
		}
	})
}

// SpendCount admits a query that is answered from counters, and counts and returns its charge: the fixed one in each
// physical partition that holds a part of the scope.
func (c *Container) SpendCount(sc feed.Scope) (charge float64, err error) {
	slots := c.scopeSlots(sc)
	if c.rt.Throttled() {
		if err := c.rt.AdmitIn(slots); err != nil {
			return 0, err
		}
	}
	charge = ru.QueryBase * float64(c.rt.CountPartitions(slots))
	c.rt.SpendIn(slots, charge)
	return charge, nil
}

// admit refuses a request on one logical partition when its physical partition has no request units. A key that doesn't
// fit is admitted: the request itself finds the error.
func (c *Container) admit(pk PartitionKey) (place []byte, err error) {
	place, _, complete, bad := c.rt.Place(pk)
	if bad != nil || !complete {
		return nil, nil
	}
	return place, c.rt.Admit(place)
}

// admitWrite is admit for a write.
func (c *Container) admitWrite(w *Write) (place []byte, err error) {
	pk := w.PK
	if pk == nil && w.Doc != nil {
		if pk, _, err = c.rt.KeyOf(w.Doc); err != nil {
			return nil, nil
		}
	}
	return c.admit(pk)
}

// spendRead counts the charge of a point read.
func (c *Container) spendRead(sl *Slot, it *Item, err error) {
	n := 0
	if err == nil {
		n = len(it.Doc)
	}
	c.spend(sl, ru.Read(n), err)
}

// FeedCharge returns the charge of a page of a change feed.
func FeedCharge(p *feed.Page) float64 {
	n := 0
	for _, it := range p.Items {
		n += len(it.Doc)
	}
	for _, ch := range p.Changes {
		n += ch.Size()
	}
	return ru.Feed(len(p.Items)+len(p.Changes), n)
}

// scopeSlots returns the slots that hold the part of the container that a scope names. For a malformed scope these are
// all slots: the request itself finds the error.
func (c *Container) scopeSlots(sc feed.Scope) []*Slot {
	slots := c.rt.Slots()
	all, m := slots.All(), slots.Map()
	var lo, hi []byte
	switch {
	case len(sc.PK) > len(c.rt.Def().KeyPaths()):
		return all
	case sc.PK != nil:
		place, _, complete, err := c.rt.Place(sc.PK)
		if err != nil {
			return all
		}
		if lo, hi = place, place; !complete {
			hi = keys.After(place)
		}
	case sc.Range != (epk.Range{}):
		var err error
		if lo, hi, _, err = c.rt.Places(sc.Range); err != nil {
			return all
		}
	}
	from := m.Slot(lo)
	to := from + 1
	for to < len(all) && (hi == nil || bytes.Compare(all[to].Min(), hi) < 0) {
		to++
	}
	return all[from:to]
}

// spend counts the charge of an operation on one item. A refused operation has the least charge.
func (c *Container) spend(sl *Slot, charge float64, err error) {
	switch {
	case sl == nil || err != nil && status.Is(err, status.TooManyRequests):
	case err != nil:
		c.rt.Spend(sl.Min(), ru.Refused)
	default:
		c.rt.Spend(sl.Min(), charge)
	}
}

// spendMany counts the charges of writes.
func (c *Container) spendMany(out []Outcome) {
	for i := range out {
		c.spend(out[i].Result.Slot, out[i].Result.Charge, out[i].Err)
	}
}

// admitted is a write of a bulk that was admitted, with the charge that it has in any case.
type admitted struct {
	at     int
	place  []byte
	charge float64
}

// writeMany does what WriteMany does while throughput limits consumption. A write is admitted if the ones before it,
// at the least charges that they can have, leave something of the request units of its partition. So of a large bulk a
// part is done, and the rest is refused write by write.
func (c *Container) writeMany(ctx context.Context, ws []Write, ordered bool) []Outcome {
	out := make([]Outcome, len(ws))
	var todo []Write
	var from []admitted
	for i := range ws {
		a := admitted{at: i, charge: ru.Write(len(ws[i].Doc), 0)}
		if a.place, out[i].Err = c.admitWrite(&ws[i]); out[i].Err == nil {
			c.rt.Reserve(a.place, a.charge)
			todo, from = append(todo, ws[i]), append(from, a)
		} else if ordered {
			out = out[:i+1]
			break
		}
	}
	done := c.doMany(ctx, todo, ordered)
	for i, o := range done {
		out[from[i].at] = o
	}
	for _, a := range from {
		c.rt.Reserve(a.place, -a.charge)
	}
	c.spendMany(done)
	if len(done) < len(todo) { // with ordered, the last one has failed
		out = out[:len(done)]
	}
	return out
}

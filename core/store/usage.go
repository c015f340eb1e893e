package store

import (
	"iter"
	"time"

	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
)

// Consumption of request units, by physical partition, and its limits.
//
// Each physical partition has a meter, which belongs to the partition's id: it stays when the map changes otherwise.
// Charges are counted after the work, when they are known, in the partition that holds the placement then. With
// Limits.Throttle a partition serves at most its share of the container's throughput: T/N RU/s, from a bucket that
// holds one second's. Containers without a throughput of their own share the bucket of their database. Where neither
// has a throughput there is no limit.

// Meters returns the meters of the physical partitions of a version of the slot map, in the order of the map. The
// current version keeps no meters but its own: those of partitions that were split or merged are dropped. A reader of
// an older version whose meters were never used counts in ones that nobody reads.
func (c *Container) Meters(s *Slots) []*ru.Meter {
	if ms := s.meters.Load(); ms != nil {
		return *ms
	}
	c.meterMu.Lock()
	defer c.meterMu.Unlock()
	out := make([]*ru.Meter, len(s.m.Partitions))
	kept := make(map[int]*ru.Meter, len(out))
	for i := range out {
		id := s.m.Partitions[i].ID
		if out[i] = c.metered[id]; out[i] == nil {
			out[i] = new(ru.Meter)
		}
		kept[id] = out[i]
	}
	if s == c.Slots() {
		c.metered = kept
	}
	s.meters.Store(&out)
	return out
}

// Spend counts a charge in the physical partition that holds a placement.
func (c *Container) Spend(place []byte, charge float64) {
	s := c.Slots()
	m := c.Meters(s)[s.m.Partition(place)]
	m.Add(charge)
	if c.st.lim.Throttle {
		c.take(s, m, charge)
	}
}

// SpendIn counts a charge in equal parts in the physical partitions that hold slots, in their order.
func (c *Container) SpendIn(slots []*Slot, charge float64) {
	s, n := c.Slots(), c.CountPartitions(slots)
	meters := c.Meters(s)
	for i := range s.partitions(slots) {
		m := meters[i]
		m.Add(charge / float64(n))
		if c.st.lim.Throttle {
			c.take(s, m, charge/float64(n))
		}
	}
}

// CountPartitions returns the number of physical partitions that hold slots, which are in their order.
func (c *Container) CountPartitions(slots []*Slot) (n int) {
	for range c.Slots().partitions(slots) {
		n++
	}
	return n
}

// partitions gives the numbers of the physical partitions that hold slots, in their order, each once.
func (s *Slots) partitions(slots []*Slot) iter.Seq[int] {
	return func(yield func(int) bool) {
		at := 0
		for n, sl := range slots {
			i := s.m.PartitionFrom(at, sl.min)
			if (n == 0 || i != at) && !yield(i) {
				return
			}
			at = i
		}
	}
}

// bucket returns the bucket that limits a physical partition, and the RU/s that fill it; nil if there is no limit.
func (c *Container) bucket(s *Slots, m *ru.Meter) (b *ru.Bucket, rate int) {
	def := c.def.Load()
	if t := def.Throughput.Max(); t > 0 {
		return &m.Bucket, max(1, t/len(s.m.Partitions))
	}
	d, err := c.st.cat.Database(def.Database)
	if err != nil || d.Throughput.Max() == 0 {
		return nil, 0
	}
	shared, ok := c.st.shared.Load(d.Num)
	if !ok {
		shared, _ = c.st.shared.LoadOrStore(d.Num, new(ru.Bucket))
	}
	return shared.(*ru.Bucket), d.Throughput.Max()
}

// Reserve takes a charge from the bucket of the physical partition that holds a placement, without counting it. A
// negative charge gives it back.
func (c *Container) Reserve(place []byte, charge float64) {
	s := c.Slots()
	c.take(s, c.Meters(s)[s.m.Partition(place)], charge)
}

func (c *Container) take(s *Slots, m *ru.Meter, charge float64) {
	if b, rate := c.bucket(s, m); b != nil {
		b.Take(c.st.Uptime(), charge, rate)
	}
}

// Throttled reports whether consumption is limited: then requests call Admit before their work.
func (c *Container) Throttled() bool { return c.st.lim.Throttle }

// Admit refuses a request with TooManyRequests and sub-status 3200 when the physical partition that holds a placement
// has used up its request units.
func (c *Container) Admit(place []byte) error {
	s := c.Slots()
	return c.admit(s, s.m.Partition(place))
}

// AdmitIn does what Admit does for a request that reads slots, in their order. One partition without request units is
// enough to refuse it.
func (c *Container) AdmitIn(slots []*Slot) error {
	s := c.Slots()
	for i := range s.partitions(slots) {
		if err := c.admit(s, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Container) admit(s *Slots, partition int) error {
	b, _ := c.bucket(s, c.Meters(s)[partition])
	if b == nil {
		return nil
	}
	wait := b.Wait(c.st.Uptime())
	if wait == 0 {
		return nil
	}
	c.st.refused.Add(1)
	e := status.WithSub(status.TooManyRequests, status.SubThrottled, "Request rate is large. More Request Units may "+
		"be needed, so no changes were made. Please retry this request later. Learn more: "+
		"http://aka.ms/cosmosdb-error-429")
	e.RetryAfter = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	return e
}

// Share returns the RU/s that one of the container's physical partitions serves: T/N of the container's own throughput,
// or the whole of the throughput that its database shares; 0 if there is none.
func (c *Container) Share() float64 {
	def := c.def.Load()
	if t := def.Throughput.Max(); t > 0 {
		return float64(t) / float64(len(c.Slots().m.Partitions))
	}
	if d, err := c.st.cat.Database(def.Database); err == nil {
		return float64(d.Throughput.Max())
	}
	return 0
}

// Refused returns how many requests were refused because request units were used up.
func (s *Store) Refused() int64 { return s.refused.Load() }

// Uptime returns the time that has passed by the store's clock since the store was opened, and a little more: it is
// never 0, and doesn't fall when the clock is set back.
func (s *Store) Uptime() time.Duration { return s.clk.Elapsed() - s.began + time.Second }

// Sample computes the rates of all meters of containers in use. It must be called about once a second.
func (s *Store) Sample() {
	now := s.Uptime()
	for _, c := range s.Opened() {
		if slots := c.Slots(); slots.meters.Load() != nil { // otherwise nothing was used
			for _, m := range c.Meters(slots) {
				m.Sample(now)
			}
		}
	}
}

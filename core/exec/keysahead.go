package exec

import "github.com/orrerydb/orrery/core/plan"

// On an engine over a network keyOrder begins the next logical partitions in parallel: one at first, and four times as
// many with each group that follows. So a partition that fills the page is read alone.
//
// Example: a page of 20 entities of a table in which each has a partition key of its own. 1, 4 and 16 partitions are
// begun together. The walk of the keys, which finds them, reads its entries ahead.
//
// Entries that were read to find a partition are counted when the reader reaches the partition.

// partsAhead are logical partitions that were begun before keyOrder reaches them.
type partsAhead struct {
	parts []keyPart
	size  int // of the last group
	over  bool
	err   error // why no more partitions follow; nil at the end
	rest  int   // index entries that were examined after the last partition
}

// partitionAhead begins the next logical partition, as partition does.
func (k *keyOrder) partitionAhead() (bool, error) {
	a := &k.ahead
	if len(a.parts) == 0 && !a.over {
		k.collect()
		if err := k.beginParts(); err != nil {
			return false, err
		}
	}
	st := &k.b.rows.stats
	if len(a.parts) == 0 {
		st.Entries += a.rest
		a.rest = 0
		return false, a.err
	}
	p := &a.parts[0]
	a.parts = a.parts[1:]
	st.Entries += p.passed
	var err error
	k.part, err = p.open(k.node, p.order)
	return true, err
}

// collect finds the logical partitions of the next group.
func (k *keyOrder) collect() {
	a, st := &k.ahead, &k.b.rows.stats
	if a.size = min(a.size*slotsGrowth, chunkMost); a.size == 0 {
		a.size = 1
	}
	for a.parts = nil; len(a.parts) < a.size; {
		before := st.Entries
		slot, err := k.move()
		passed := st.Entries - before
		st.Entries = before
		var p keyPart
		if err == nil && slot != nil {
			p, err = k.begun(slot)
		}
		if err != nil || slot == nil {
			a.over, a.err, a.rest = true, err, passed
			return
		}
		p.passed = passed
		a.parts = append(a.parts, p)
	}
}

// beginParts moves to the first item of each partition of the group, and looks at its first and last id.
func (k *keyOrder) beginParts() error {
	parts := k.ahead.parts
	return k.b.beside(remoteAtOnce, 2*len(parts), func(own *builder, i, _ int) error {
		p := &parts[i/2]
		if b := *own; i%2 == 0 {
			b.spans = p.b.spans
			p.order = plan.PartitionOrder(&b)
			return nil
		}
		p.scan = p.newScan(own)
		p.scan.ahead.want = own.wantedOf(len(parts))
		_, err := p.scan.settle()
		p.scan.b = p.b
		return err
	})
}

func (a *partsAhead) close() {
	for i := range a.parts {
		a.parts[i].close()
	}
	a.parts = nil
}

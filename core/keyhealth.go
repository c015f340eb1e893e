package core

import (
	"context"
	"fmt"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/store"
)

// LogicalPartition is a logical partition among the largest of its container.
type LogicalPartition struct {
	Key       string // its partition key, as a JSON array
	Partition string // id of the physical partition that holds it
	Items     int64
	Bytes     int64
}

// KeyReport says how a container's partition key distributes the data.
type KeyReport struct {
	Partitions []Partition
	Uses       []PartitionUse     // of the partitions, by this process
	Heaviest   []LogicalPartition // the largest logical partitions
	Logical    int64              // number of logical partitions that were looked at
	Whole      bool               // these are all of them
	Advice     string             // a sentence about the key
}

// The bounds of a report.
const (
	heaviest    = 5       // logical partitions that it names
	mostLogical = 200_000 // logical partitions that it looks at
	fewItems    = 100     // with less nothing is said about the key
	fewKeys     = 10      // logical partitions for each physical one, below which there are too few
	hotShare    = 0.25    // of all bytes, in one logical partition
	skew        = 2.0     // size of the largest physical partition, as a multiple of the mean
	nearLimit   = 0.5     // of the limit of a logical partition
	fewUnits    = 100     // request units in the last minute: with less nothing is said about the load
	busyShare   = 0.5     // of all request units, in one physical partition
	busySkew    = 1.5     // the same as a multiple of the mean
)

// ReportKey looks at the physical partitions and at the heads of up to 200,000 logical ones.
func (c *Container) ReportKey(ctx context.Context) (KeyReport, error) {
	if err := c.fresh(ctx); err != nil {
		return KeyReport{}, err
	}
	var h store.Heaviest
	err := store.Again(func() (err error) {
		h, err = c.rt.Heaviest(ctx, heaviest, mostLogical)
		return err
	})
	if err != nil {
		return KeyReport{}, err
	}
	slots := c.rt.Slots()
	m := slots.Map()
	r := KeyReport{Logical: h.Seen, Whole: h.Whole, Uses: consumption(c.rt, slots)}
	for i := range m.Partitions {
		r.Partitions = append(r.Partitions, c.partition(slots, i))
	}
	for _, l := range h.List {
		key := []byte{'['}
		for i, v := range l.PK {
			if i > 0 {
				key = append(key, ',')
			}
			if !v.IsDefined() {
				key = append(key, "{}"...) // as in the header of the partition key
				continue
			}
			key = doc.AppendJSON(key, v)
		}
		r.Heaviest = append(r.Heaviest, LogicalPartition{Key: string(append(key, ']')),
			Partition: r.Partitions[m.Partition(l.Place)].ID, Items: l.Items, Bytes: l.Bytes})
	}
	r.Advice = r.advise(c.rt.MaxLogical(), c.rt.Def())
	return r, nil
}

// advise returns a sentence about the key of a container. limit is that of a logical partition in bytes.
func (r *KeyReport) advise(limit int64, def *catalog.Container) string {
	var items, bytes int64
	for _, p := range r.Partitions {
		items, bytes = items+p.Items, bytes+p.Bytes
	}
	n := int64(len(r.Partitions))
	busy, load := r.busiest()
	uneven := fmt.Sprintf("The load is uneven: physical partition %s has %.0f %% of the request units of the last "+
		"minute.", busy, load*100)
	switch {
	case items < fewItems:
		return fmt.Sprintf("There are too few items (%d) to judge the partition key.", items)
	case def.KeyIsID() && load > 0:
		return uneven
	case def.KeyIsID():
		return "The partition key is the id: every item is a logical partition, and the data is spread evenly."
	}
	hot := LogicalPartition{Key: "none"}
	if len(r.Heaviest) > 0 {
		hot = r.Heaviest[0]
	}
	share := float64(hot.Bytes) / float64(max(bytes, 1))
	full := float64(hot.Bytes) / float64(limit)
	switch {
	case def.PartitionKey.SystemKey && r.Whole && r.Logical == 1:
		return fmt.Sprintf("The container has no partition key, so its data is never divided. It has %.0f %% of the "+
			"size at which it takes no more.", full*100)
	case full >= nearLimit:
		return fmt.Sprintf("The partition key is bad: the key %s alone has %.0f %% of the size at which a key "+
			"takes no more data.", hot.Key, full*100)
	case r.Whole && r.Logical < fewKeys*n:
		return fmt.Sprintf("The partition key is bad: it has only %d values for %d physical partitions. The data "+
			"of one value is never divided.", r.Logical, n)
	case share >= hotShare:
		return fmt.Sprintf("The partition key is bad: the key %s has %.0f %% of all data, which can't be divided over "+
			"partitions.", hot.Key, share*100)
	}
	for _, p := range r.Partitions {
		if times := float64(p.Bytes*n) / float64(max(bytes, 1)); times >= skew {
			return fmt.Sprintf("The data is uneven: physical partition %s has %.1f times the average.", p.ID, times)
		}
	}
	if load > 0 {
		return uneven
	}
	return "The partition key spreads the data evenly."
}

// busiest returns the physical partition that has most of the request units of the last minute, and its part of them.
// The part is 0 if there is no such partition, if there were few requests, or if a partition is younger than a minute:
// what its parent has used would count for the others only.
func (r *KeyReport) busiest() (id string, share float64) {
	most, sum := PartitionUse{}, 0.
	for _, u := range r.Uses {
		if !u.Whole {
			return "", 0
		}
		if sum += u.Minute; u.Minute > most.Minute {
			most = u
		}
	}
	if sum*60 < fewUnits {
		return "", 0
	}
	if share = most.Minute / sum; share < busyShare || share*float64(len(r.Uses)) < busySkew {
		return "", 0
	}
	return most.ID, share
}

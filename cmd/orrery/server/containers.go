package server

import (
	"cmp"
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
)

// ContainerStatus is one container in Status. The sizes of its physical partitions show whether its key distributes the
// data.
type ContainerStatus struct {
	Database   string            `json:"database"`
	Container  string            `json:"container"`
	Items      int64             `json:"items"`
	Bytes      int64             `json:"bytes"`
	Rebuild    *int              `json:"indexRebuildPercent,omitempty"` // only during a rebuild
	Partitions []PartitionStatus `json:"partitions"`
}

// PartitionStatus is one physical partition.
type PartitionStatus struct {
	ID    string `json:"id"`
	Min   string `json:"minInclusive"` // effective partition keys
	Max   string `json:"maxExclusive"`
	Items int64  `json:"items"`
	Bytes int64  `json:"bytes"` // keys and documents, without the index
}

// listed is the largest number of containers that Status lists.
const listed = 1000

// containersOf returns the first containers of an engine, and the number of all others. It reads counters in memory,
// and the stored heads of containers that aren't in use. Containers that can't be read are left out; the error is that
// of the first one.
func containersOf(ctx context.Context, e *core.Engine) (out []ContainerStatus, more int, err error) {
	out = []ContainerStatus{}
	dbs, err := e.Databases(ctx)
	for i := 0; err == nil && i < len(dbs); i++ {
		n := 0
		n, err = e.ContainerCount(ctx, dbs[i].ID)
		more += n
	}
	if err != nil {
		return nil, 0, err
	}
	var first error
	for c, err := range e.Stats(ctx, "") {
		if len(out) == listed || ctx.Err() != nil {
			first = cmp.Or(first, kv.Status(ctx.Err()))
			break
		}
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		st := ContainerStatus{Database: c.Database(), Container: c.ID(), Items: c.Items, Bytes: c.Bytes}
		if c.Rebuild < 100 {
			st.Rebuild = &c.Rebuild
		}
		for _, p := range c.Partitions {
			st.Partitions = append(st.Partitions, PartitionStatus{p.ID, p.Min, p.Max, p.Items, p.Bytes})
		}
		out = append(out, st)
	}
	return out, max(0, more-len(out)), first
}

package server

import (
	"context"
	"github.com/orrerydb/orrery/core"
)

// ContainerStatus is one container in Status: a bar per physical partition shows whether its key spreads.
type ContainerStatus struct {
	Database   string            `json:"database"`
	Container  string            `json:"container"`
	Items      int64             `json:"items"`
	Bytes      int64             `json:"bytes"`
	Rebuild    *int              `json:"indexRebuildPercent,omitempty"` // while one is under way
	Partitions []PartitionStatus `json:"partitions"`
}

// PartitionStatus is one physical partition.
type PartitionStatus struct {
	ID    string `json:"id"`
	Min   string `json:"minInclusive"` // effective partition keys
	Max   string `json:"maxExclusive"`
	Items int64  `json:"items"`
	Bytes int64  `json:"bytes"` // keys and documents, without index
}

// listed is the most containers that Status lists.
const listed = 1000

// containersOf lists the first containers of an engine, and tells how many more there are. It reads counters that are
// kept in memory, and the heads of containers that nobody uses.
func containersOf(ctx context.Context, e *core.Engine) (out []ContainerStatus, more int, err error) {
	out = []ContainerStatus{}
	for _, d := range e.Databases() {
		more += e.ContainerCount(d.ID)
	}
	for c, err := range e.Stats(ctx, "") {
		if err != nil {
			return nil, 0, err
		}
		if len(out) == listed {
			break
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
	return out, max(0, more-len(out)), nil
}

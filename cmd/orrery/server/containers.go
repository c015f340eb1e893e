package server

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
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

// containersOf lists the containers of an engine. It reads counters that are kept in memory, no data.
func containersOf(e *core.Engine) ([]ContainerStatus, error) {
	out := []ContainerStatus{}
	for _, d := range e.Databases() {
		cs, err := e.Containers(d.ID)
		if status.Is(err, status.NotFound) { // dropped meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range cs {
			st := ContainerStatus{Database: d.ID, Container: c.ID(), Items: c.Count(), Bytes: c.Size()}
			if n := c.IndexProgress(); n < 100 {
				st.Rebuild = &n
			}
			for _, p := range c.Partitions() {
				st.Partitions = append(st.Partitions, PartitionStatus{p.ID, p.Min, p.Max, p.Items, p.Bytes})
			}
			out = append(out, st)
		}
	}
	return out, nil
}

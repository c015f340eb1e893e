package catalog

import "github.com/orrerydb/orrery/core/status"

// DefaultPartitionRU is the most request units per second that one physical partition serves by default, as in the
// service.
const DefaultPartitionRU = 10000

// maxPartitions bounds the number of partitions that a container's throughput may need: the slots of each partition are
// in memory.
const maxPartitions = 4096

// PartitionsFor returns the number of physical partitions that a throughput needs: N = ceil(T/t), where t is what one
// partition serves. It is 1 for a container without a throughput of its own.
//
// Example: 20,000 RU/s need 2 partitions of 10,000 RU/s; 30,000 RU/s need 5 of 6,000.
func (c *Catalog) PartitionsFor(t Throughput) int {
	return max(1, (t.Max()-1)/c.set.PartitionRU+1)
}

// checkThroughput refuses a throughput that no container may have. The APIs have narrower limits.
func (c *Catalog) checkThroughput(t Throughput) error {
	if t.Manual < 0 || t.AutoscaleMax < 0 || c.PartitionsFor(t) > maxPartitions {
		return status.New(status.BadRequest, "The throughput is out of range.")
	}
	return nil
}

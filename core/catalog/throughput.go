package catalog

import "github.com/orrerydb/orrery/core/status"

// DefaultPartitionRU is the most request units per second that one physical partition serves by default, as in the
// service.
const DefaultPartitionRU = 10000

// maxPartitions bounds the number of partitions that a container's throughput may need: the slots of each partition are
// in memory.
const maxPartitions = 4096

// PartitionsFor returns the number of physical partitions that a container's throughput needs: N = ceil(T/t), where t
// is what one partition serves. It is 1 for a container without a throughput of its own. It is 1 without a partition
// key too: items without a key have one placement, so a second partition would hold none, and have half of the
// throughput.
//
// Example: 20,000 RU/s need 2 partitions of 10,000 RU/s; 30,000 RU/s need 5 of 6,000.
func (c *Catalog) PartitionsFor(s *Spec) int {
	if s.PartitionKey.SystemKey {
		return 1
	}
	return max(1, (s.Throughput.Max()-1)/c.set.PartitionRU+1)
}

// checkThroughput refuses a throughput that no container may have. The APIs have narrower limits.
func (c *Catalog) checkThroughput(s *Spec) error {
	if s.Throughput.Manual < 0 || s.Throughput.AutoscaleMax < 0 {
		return status.New(status.BadRequest, "A throughput can't be below 0.")
	}
	if c.PartitionsFor(s) > maxPartitions {
		return status.New(status.BadRequest, "The throughput is at most %d RU/s: %d physical partitions, which serve "+
			"%d RU/s each (--partition-ru).", maxPartitions*c.set.PartitionRU, maxPartitions, c.set.PartitionRU)
	}
	return nil
}

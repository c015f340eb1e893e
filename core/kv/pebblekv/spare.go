package pebblekv

import "math"

// Spare returns how many bytes may be written next to the store before new data is refused: the free bytes minus those
// for flushes and merges and minus Options.MinFree. It asks the file system. The result is negative when data is
// refused already, and very large if the file system doesn't report its free space.
func (e *Engine) Spare() int64 {
	s := &e.disk.space
	if !s.known || e.disk.ask() != nil {
		return math.MaxInt64
	}
	return s.free.Load() - s.kept()
}

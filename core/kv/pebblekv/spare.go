package pebblekv

import "math"

// Spare returns how many bytes may be written beside the store before new data would be refused: what is free without
// what flushes and merges will need and Options.MinFree. It asks the file system. It is below 0 when data is refused
// already, and very large where the file system doesn't tell.
func (e *Engine) Spare() int64 {
	s := &e.disk.space
	if !s.known || e.disk.ask() != nil {
		return math.MaxInt64
	}
	return s.free.Load() - s.kept()
}

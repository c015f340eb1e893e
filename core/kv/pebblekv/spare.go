package pebblekv

import "math"

// Spare returns the number of bytes that may be written beside the store before new data would be refused: the free
// bytes without the part for flushes and merges and without Options.MinFree. It asks the file system. It is below 0
// when data is refused already, and very large if the file system doesn't tell.
func (e *Engine) Spare() int64 {
	s := &e.disk.space
	if !s.known || e.disk.ask() != nil {
		return math.MaxInt64
	}
	return s.free.Load() - s.kept()
}

package exec

import "sync"

// mergeRoom is the memory of the streams of a merge. A query that has ended leaves it to another one, because it is
// more than all else that a short page over many slots allocates. No row refers to it: what a row keeps of an entry is
// copied.
type mergeRoom struct {
	all     []entries
	keys    []byte // of all: see entries.use
	heap    []*entries
	streams []copied
	copies  []copiedEntry // of streams
	copied  []byte        // the keys and values of copies
}

// mostRoom is the largest number of streams whose memory is left to other queries.
const mostRoom = 64

var mergeRooms = sync.Pool{New: func() any { return new(mergeRoom) }}

// room returns an empty slice with capacity n, in the memory of s if that is large enough.
func room[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, 0, n)
	}
	return (*s)[:0:n]
}

// wipe clears the first n elements of room, so that they keep nothing alive.
func wipe[T any](s []T, n int) { clear(s[:min(n, cap(s))]) }

// begin returns an empty list of streams with capacity n. The merge must be ended by end.
func (h *mergeHeap) begin(n int) []entries {
	h.room = mergeRooms.Get().(*mergeRoom)
	return room(&h.room.all, n)
}

// end closes the streams. They can't be used any more. A second call does nothing.
func (h *mergeHeap) end(all []entries) {
	r := h.room
	if r == nil {
		return
	}
	for i := range all {
		all[i].close()
	}
	if h.list, h.room = nil, nil; len(all) <= mostRoom {
		wipe(r.all, len(all))
		wipe(r.heap, len(all))
		wipe(r.streams, len(all))
		mergeRooms.Put(r)
	}
}

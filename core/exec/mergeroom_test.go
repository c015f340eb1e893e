package exec

import "testing"

// TestMergeRoom checks that the memory of a merge that has ended keeps no query alive, and isn't given away twice.
func TestMergeRoom(t *testing.T) {
	for _, n := range []int{1, 16, mostRoom, mostRoom + 1} {
		var h mergeHeap
		all := h.begin(n)
		r := h.room
		if len(all) != 0 || cap(all) != n {
			t.Fatalf("%d streams: length %d, capacity %d", n, len(all), cap(all))
		}
		h.list = room(&r.heap, n)
		streams := room(&r.streams, n)[:n]
		for i := range n {
			all = append(all, entries{b: &builder{}})
			h.list = append(h.list, &all[i])
			streams[i].e = &all[i]
		}
		h.end(all)
		if h.list != nil || h.room != nil {
			t.Errorf("%d streams: the merge still has memory", n)
		}
		if n > mostRoom {
			continue // left to the collector
		}
		for i := range n {
			if r.all[:n][i].b != nil || r.heap[:n][i] != nil || r.streams[:n][i].e != nil {
				t.Fatalf("%d streams: stream %d is kept", n, i)
			}
		}
		h.end(all)
		var one, other mergeHeap
		if one.begin(n); other.begin(n) != nil && one.room == other.room {
			t.Errorf("%d streams: two merges have the same memory", n)
		}
	}
}

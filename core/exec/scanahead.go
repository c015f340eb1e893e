package exec

// On an engine over a network a scan begins the next spans in parallel: as many as probably have the items that the
// reader takes, and four times as many items with each group that follows. The slots tell how many items they have.
//
// Example: a page of 20 items from 400 slots with about one item each. 20 slots are begun together. From four slots
// with 1,000 items each, the same page begins one.

// scanAtOnce bounds the bytes of the slots that are begun together, except for the last one.
const scanAtOnce = 4 << 20

// spansAhead are spans that were begun before a scan reaches them.
type spansAhead struct {
	begunAhead[spanWalk]
	want  int // items that are probably needed; 0: as the query says
	items int // that the group has, or more
}

// openFar moves to the first candidate of span i, as openSpan does.
func (s *scan) openFar() error {
	s.spanWalk.close(s.b)
	if !s.ahead.has(s.i) {
		s.ahead.begin(s.b, s.group(), func(own *builder, at int, to *spanWalk) error {
			sp := &s.spans[at]
			n := min(sp.slot.Items(), int64(s.ahead.items), chunkMost)
			return to.start(own, sp, s.resume, int(n)+1) // one more: the engine sees that there is none
		})
	}
	var err error
	s.spanWalk, err = s.ahead.pop(s.b)
	return err
}

// group returns the spans that are begun next.
func (s *scan) group() (out []int) {
	switch {
	case s.b.q.Whole:
		s.ahead.items = scanAtOnce // scanAtOnce bytes hold fewer
	case s.ahead.items == 0 && s.ahead.want > 0:
		s.ahead.items = s.ahead.want
	case s.ahead.items == 0:
		s.ahead.items = s.b.firstChunk()
	default:
		s.ahead.items = min(s.ahead.items*slotsGrowth, scanAtOnce)
	}
	var items, bytes int64
	for i := s.i; i < len(s.spans) && len(out) < remoteAtOnce; i++ {
		if items >= int64(s.ahead.items) || bytes >= scanAtOnce {
			break
		}
		st := s.spans[i].slot.Stats()
		items, bytes = items+st.Items, bytes+st.Bytes
		out = append(out, i)
	}
	return out
}

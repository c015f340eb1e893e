package run

// A walk over a dense graph reaches the same vertex along many paths. If nothing asks for the paths, or for the order
// of the results, the traversers that meet at a vertex go on as one, whose bulk is their number. Its edges are then
// read once.
//
// Example: in g.V('a').out().out().out().count(), with ten edges from each of the vertices a to j to all of them, the
// second out() turns ten traversers into a hundred. The third one gets ten with the bulk ten, and reads the edges of
// ten vertices.

// meeting merges the traversers on their way to a step. It takes up to maxBatch of them at a time.
type meeting struct {
	base
	ready []*trav
	held  holder
	key   []byte
}

func (s *meeting) next(x *exec) (*trav, error) {
	if len(s.ready) == 0 {
		if x.noBulk || x.ends.off { // the changes of a step that writes are done for each traverser
			return s.prev.next(x)
		}
		if err := s.gather(x); err != nil || len(s.ready) == 0 {
			return nil, err
		}
	}
	t := s.ready[0]
	s.ready[0] = nil
	s.ready = s.ready[1:]
	s.held.drop(t)
	return t, nil
}

// meetBytes bounds the approximate size of the traversers of a batch.
const meetBytes = 4 << 20

// gather takes the next traversers and merges them. It stops when they are many, or the request has no memory for more.
func (s *meeting) gather(x *exec) error {
	s.ready = s.ready[:0]
	var at map[string]*trav
	for range maxBatch {
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return err
		}
		s.key = appendKey(s.key[:0], t.v)
		if have := at[string(s.key)]; have != nil && s.merge(have, t) {
			continue
		}
		full := s.held.bytes > meetBytes || s.held.keep(x, t) != nil
		if s.ready = append(s.ready, t); full {
			return nil
		}
		if at == nil {
			at = map[string]*trav{}
		}
		at[string(s.key)] = t
	}
	return nil
}

// merge adds t to have, which is at the same vertex, and reports whether they could be merged.
func (s *meeting) merge(have, t *trav) bool {
	if have.sack != nil || t.sack != nil || !have.loops.equal(t.loops) {
		return false
	}
	sum, fits := addBulk(have.bulk, t.bulk)
	if fits {
		have.bulk = sum
	}
	return fits
}

// equal reports whether traversers with these counters are in the same rounds of the same loops.
func (l *loopNode) equal(m *loopNode) bool {
	for ; l != m; l, m = l.prev, m.prev {
		if l == nil || m == nil || l.n != m.n || l.name != m.name {
			return false
		}
	}
	return true
}

func (s *meeting) reset() {
	s.ready = nil
	s.held.release()
}

// walkStep follows edges. Its input is merged if the order of its results doesn't matter.
type walkStep struct {
	flatStep
	meet *meeting // nil: it isn't merged
}

func (s *walkStep) link(prev step) {
	if s.meet != nil {
		s.meet.link(prev)
		prev = s.meet
	}
	s.flatStep.link(prev)
}

func (s *walkStep) reset() {
	if s.meet != nil {
		s.meet.reset()
	}
	s.flatStep.reset()
}

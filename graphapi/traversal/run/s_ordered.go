package run

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// orderStep is order() over traversers. It computes the keys of each traverser when it arrives, once. It sorts in
// memory, and goes on in temporary files when its memory is used up.
//
// Example: memory for two, input c, a, d, b. a and c are written as a run, then b and d as another one. The merge gives
// a, b, c, d. Equal traversers keep the order in which they came: of those of several runs, the older run is first.
//
// With top, only the first traversers are needed, because a limit() follows. Then the others are dropped again and
// again while the input is read, so nothing is written for a small limit.
//
// Example: order().limit(10) sorts whenever it has 1040 traversers, and keeps 10 of them. From then on it drops
// traversers that are behind the tenth one at once.
type orderStep struct {
	base
	bs   []*by
	top  int // 0: all are needed
	full bool
	list []ordered
	at   int // the next one of list
	come int // traversers that came
	// worst has the keys of the last traverser that is needed so far. One that comes later with these keys, or with
	// greater ones, isn't needed. nil: fewer than top came.
	worst []any
	keys  []any // room for the keys of the next ones
	mem   stash
	runs  *spill.Runs[orderedRow]   // nil: nothing was written
	rows  *spill.Merged[orderedRow] // the rest of runs
}

// ordered is a traverser with its keys, and its place among those that came.
type ordered struct {
	t    *trav
	keys []any
	came int
}

// orderedRow is a traverser with its keys in a file. Its encoding: the keys, the traverser. It is decoded when it is
// returned, and copied as it is when runs are merged into a longer one.
type orderedRow struct {
	keys []any
	t    *trav  // when it is written for the first time
	enc  []byte // else
}

// orderedSize is the size in bytes of an ordered without its traverser and keys.
const orderedSize = 40

// maxKeyRoom is the number of traversers for whose keys there is room at a time.
const maxKeyRoom = 256

func newOrderStep(bs []*by) *orderStep {
	s := &orderStep{bs: bs}
	s.mem = stash{what: "sort of traversers", write: s.write}
	return s
}

// compareKeys compares keys in the order that the by() modulators ask for.
func compareKeys(a, b []any, bs []*by) int {
	for i := range a {
		c := compareAll(a[i], b[i])
		if c == 0 {
			continue
		}
		if isDesc(bs[i].order) {
			return -c
		}
		return c
	}
	return 0
}

func (s *orderStep) next(x *exec) (*trav, error) {
	if !s.full {
		if err := s.fill(x); err != nil {
			return nil, err
		}
	}
	if s.rows != nil {
		r, ok, err := s.rows.Next()
		if err != nil {
			return nil, x.cause(err)
		}
		if ok {
			return x.carrier().readTrav(r.enc)
		}
		s.reset()
		s.full = true
		return nil, nil
	}
	if s.at == len(s.list) {
		s.list, s.at, s.keys = s.list[:0], 0, nil
		s.mem.release()
		return nil, nil
	}
	t := s.list[s.at].t
	s.list[s.at] = ordered{}
	s.at++
	s.mem.drop(1, t.cost)
	t.cost = 0
	return t, nil
}

// fill reads all input and sorts it.
func (s *orderStep) fill(x *exec) error {
	for {
		t, err := s.prev.next(x)
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		if err := s.add(x, t); err != nil {
			return err
		}
		if err := x.tick(); err != nil {
			return err
		}
	}
	s.full = true
	if s.runs == nil {
		return s.sort(x)
	}
	if err := s.mem.flush(); err != nil {
		return err
	}
	s.list, s.keys = nil, nil
	rows, err := s.runs.Merge(x.ctx)
	if err != nil {
		return x.cause(err)
	}
	s.rows = rows
	return nil
}

// add keeps a traverser with its keys. It is dropped if a by() has no result for it.
func (s *orderStep) add(x *exec, t *trav) error {
	n := len(s.bs)
	if len(s.keys) < n {
		s.keys = make([]any, n*min(max(8, s.come), maxKeyRoom))
	}
	keys := s.keys[:n:n]
	for i, b := range s.bs {
		if b.order == gvalue.Shuffle {
			keys[i] = x.random()
			continue
		}
		k, ok, err := b.apply(x, t)
		if !ok || err != nil {
			return err
		}
		keys[i] = k
	}
	if s.worst != nil && compareKeys(keys, s.worst, s.bs) >= 0 {
		return nil
	}
	s.keys = s.keys[n:]
	cost := t.size() + orderedSize + int64(n)*valueSize/2 + sizeOfKeys(keys)
	if err := s.mem.hold(x, 1, cost); err != nil {
		return err
	}
	t.cost = cost
	s.list = append(s.list, ordered{t, keys, s.come})
	s.come++
	if s.top > 0 && len(s.list) > 4*s.top+1000 {
		return s.cut(x)
	}
	return nil
}

// cut sorts, and drops all traversers after the first top ones.
func (s *orderStep) cut(x *exec) error {
	if err := s.sort(x); err != nil {
		return err
	}
	n := min(s.top, len(s.list))
	for _, o := range s.list[n:] {
		s.mem.drop(1, o.t.cost)
	}
	clear(s.list[n:])
	s.list = s.list[:n]
	for i := range s.list { // keys that are few mustn't keep the room of many
		s.list[i].keys = slices.Clone(s.list[i].keys)
	}
	if n == s.top {
		s.worst = s.list[n-1].keys
	}
	return nil
}

// sort sorts the list. It stops if the request ends meanwhile.
func (s *orderStep) sort(x *exec) error {
	n, over := 0, false
	slices.SortFunc(s.list, func(a, b ordered) int {
		if n++; n&4095 == 0 {
			over = over || x.ctx.Err() != nil
		}
		if over { // makes the rest of the sort fast
			return 0
		}
		if c := compareKeys(a.keys, b.keys, s.bs); c != 0 {
			return c
		}
		return cmp.Compare(a.came, b.came)
	})
	if over {
		return x.timeout()
	}
	return nil
}

// write writes the list to a run.
func (s *orderStep) write() error {
	x := s.mem.x
	if s.top > 0 {
		if err := s.cut(x); err != nil {
			return err
		}
	} else if err := s.sort(x); err != nil {
		return err
	}
	if s.runs == nil {
		s.runs = spill.NewRuns(x.files.space, s.mem.acct, spill.Codec[orderedRow]{Append: s.appendRow,
			Decode: s.readRow, Compare: func(a, b orderedRow) int { return compareKeys(a.keys, b.keys, s.bs) }})
		s.mem.files = append(s.mem.files, s.runs)
	}
	err := s.runs.Write(x.ctx, func(yield func(orderedRow) bool) {
		for _, o := range s.list {
			if !yield(orderedRow{keys: o.keys, t: o.t}) {
				return
			}
		}
	})
	n := len(s.list)
	clear(s.list)
	s.list, s.keys = s.list[:0], nil
	if err != nil {
		return err
	}
	return s.mem.wrote(n, s.runs.Bytes())
}

func (s *orderStep) appendRow(dst []byte, r orderedRow) []byte {
	c := s.mem.x.carrier()
	for _, k := range r.keys {
		dst = c.appendValue(dst, k, true)
	}
	if r.t == nil {
		return append(dst, r.enc...)
	}
	return c.appendTrav(dst, r.t)
}

func (s *orderStep) readRow(b []byte) (orderedRow, error) {
	r := record{c: s.mem.x.carrier(), b: b}
	keys := make([]any, len(s.bs))
	for i := range keys {
		keys[i] = r.value()
	}
	if r.bad {
		return orderedRow{}, damagedRecord()
	}
	return orderedRow{keys: keys, enc: r.b}, nil
}

func (s *orderStep) nextRound() { s.reset() }

func (s *orderStep) reset() {
	s.rows.Close()
	s.mem.reset()
	clear(s.list)
	s.full, s.list, s.at, s.come, s.keys, s.worst = false, s.list[:0], 0, 0, nil, nil
	s.rows, s.runs = nil, nil
}

package sql

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
)

// ORDER BY RANK RRF combines scores by the ranks of the items in each of them ("reciprocal rank fusion"): an item's
// result is the sum over the scores of weight / (60 + rank). Items with the same score have the same rank. A score with
// a negative weight ranks its lowest values first. It is what SDKs do with the answers of several partitions
// (gateway.hybridPlan): for the best n items they take from each partition the best shape.Candidates(n) by each score,
// and rank the items that are in any of these lists.
//
// Example with the scores of two terms, and n = 2:
//
//	item   scores   ranks   result
//	A      3   1    1   2   1/61 + 1/62 = 0.03252
//	B      2   0    2   3   1/62 + 1/63 = 0.03200
//	C      1   5    3   1   1/63 + 1/61 = 0.03227
//
// gives A and C. All items are read once. For each score a heap has the best candidates so far.

const rankConstant = 60

// candidate is an item that is among the best ones by one of the scores.
type candidate struct {
	item   core.Item
	stored bool // item is one; a row of a list has only doc
	doc    doc.Doc
	number uint64    // the order of items with the same scores
	keys   []float64 // a greater one is better
	in     int       // the number of heaps that have it
	size   int64
	result float64
}

// better reports whether a comes before b by a score.
func better(a, b *candidate, score int) bool {
	if a.keys[score] != b.keys[score] {
		return a.keys[score] > b.keys[score]
	}
	return a.number < b.number
}

// fusion gathers the candidates of a query.
type fusion struct {
	most  int64 // candidates for each score, -1: all items are
	heaps []candidateHeap
	acct  *budget.Account
	probe candidate // the item that is offered
}

// candidateHeap has the best candidates by a score, the worst of them on top.
type candidateHeap struct {
	list  []*candidate
	score int
}

func (h *candidateHeap) Len() int           { return len(h.list) }
func (h *candidateHeap) Less(i, j int) bool { return better(h.list[j], h.list[i], h.score) }
func (h *candidateHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *candidateHeap) Push(x any)         { h.list = append(h.list, x.(*candidate)) }
func (h *candidateHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// fusedRows is a rowSource of the items in the order of RRF. It is kept between pages.
type fusedRows struct {
	list []*candidate
	i    int
	acct *budget.Account
}

func (s *fusedRows) next() bool { s.i++; return s.i <= len(s.list) }
func (s *fusedRows) err() error { return nil }

func (s *fusedRows) item() (doc.Doc, *core.Item) {
	c := s.list[s.i-1]
	if c.stored {
		return c.item.Doc, &c.item
	}
	return c.doc, nil
}

// position implements rowSource: the number of rows up to the current one.
func (s *fusedRows) position() string {
	if s.i >= len(s.list) {
		return ""
	}
	return strconv.Itoa(s.i)
}

// Held implements spill.State.
func (s *fusedRows) Held() int64 { return s.acct.Used() }

// Close implements spill.State.
func (s *fusedRows) Close() { s.acct.Close() }

// seek continues behind a position.
func (s *fusedRows) seek(position string) {
	s.i = 0
	if n, err := strconv.Atoi(position); err == nil {
		s.i = min(max(n, 0), len(s.list))
	}
}

// fuse reads all items of src and returns them in the order of RRF. n is the number of rows that the query wants, -1
// for all.
func (r *ranking) fuse(f *frame, src rowSource, n int64) (*fusedRows, error) {
	if f.bud == nil {
		f.bud = budget.New(maxGathered, 0)
	}
	x := &fusion{most: -1, heaps: make([]candidateHeap, len(r.scores)), acct: f.bud.Open("ORDER BY RANK RRF")}
	if n >= 0 {
		x.most = shape.Candidates(n)
	}
	for i := range x.heaps {
		x.heaps[i].score = i
	}
	keys := make([]float64, len(r.scores))
	for at := uint64(0); f.step() && src.next(); at++ {
		d, item := src.item()
		f.setRoot(d, item)
		for i := range r.scores {
			keys[i] = f.rank.key(i, r.scores[i].value(f))
		}
		if f.err == nil {
			f.err = x.offer(d, item, at, keys)
		}
	}
	err := f.err
	if err == nil {
		err = src.err()
	}
	if err != nil {
		x.acct.Close()
		return nil, err
	}
	x.acct.Rest()
	return &fusedRows{list: x.ranked(f.rank), acct: x.acct}, nil
}

// key returns the sort key of a score: greater is better, and an item without a score comes last.
func (st *rankState) key(i int, v value.Value) float64 {
	switch {
	case !v.IsNumber():
		return math.Inf(-1)
	case i < len(st.weights) && st.weights[i] < 0:
		return -v.Float()
	}
	return v.Float()
}

// weight returns the weight of a score.
func (st *rankState) weight(i int) float64 {
	if i < len(st.weights) {
		return math.Abs(st.weights[i])
	}
	return 1
}

// offer keeps an item if it is among the best ones by a score.
func (x *fusion) offer(d doc.Doc, item *core.Item, at uint64, keys []float64) error {
	x.probe = candidate{number: at, keys: keys}
	if item != nil {
		x.probe.number = item.Number
	}
	if !slices.ContainsFunc(x.heaps, x.enters) {
		return nil
	}
	c := &candidate{number: x.probe.number, keys: slices.Clone(keys), doc: d}
	if item != nil {
		c.item, _ = item.CloneTo(nil)
		c.stored, c.doc = true, nil
	}
	c.size = int64(candidateSize + 8*len(keys) + len(c.item.Doc) + len(c.item.Identity()))
	if err := x.acct.Grow(c.size); err != nil {
		return err
	}
	for i := range x.heaps {
		h := &x.heaps[i]
		switch {
		case !x.enters(*h):
			continue
		case x.most < 0 || int64(len(h.list)) < x.most:
			heap.Push(h, c)
		default:
			worst := h.list[0]
			h.list[0] = c
			heap.Fix(h, 0)
			if worst.in--; worst.in == 0 {
				x.acct.Shrink(worst.size)
			}
		}
		c.in++
	}
	return nil
}

// enters reports whether the item that is offered is among the best ones of a heap.
func (x *fusion) enters(h candidateHeap) bool {
	return x.most < 0 || int64(len(h.list)) < x.most || len(h.list) > 0 && better(&x.probe, h.list[0], h.score)
}

// candidateSize is the memory of a candidate without its document, keys and identity, with its places in heaps.
const candidateSize = 256

// ranked returns the candidates in the order of RRF.
func (x *fusion) ranked(st *rankState) []*candidate {
	var all []*candidate
	seen := map[*candidate]bool{}
	for i := range x.heaps {
		for _, c := range x.heaps[i].list {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	for i := range x.heaps {
		slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(b.keys[i], a.keys[i]) })
		rank := 0
		for k, c := range all {
			if k == 0 || c.keys[i] != all[k-1].keys[i] {
				rank++
			}
			c.result += st.weight(i) / float64(rankConstant+rank)
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.result, a.result), cmp.Compare(a.number, b.number))
	})
	return all
}

// takeFused takes the rows that the previous page has kept.
func (r *runner) takeFused() {
	if s, ok := r.kept.take(r.st.kept).(*fusedRows); ok {
		s.seek(r.st.core)
		r.fused = s
	}
}

// fuse computes the rows of a page, and of those behind it. begin is the state of a first page.
func (r *runner) fuse(begin state) (err error) {
	n := int64(-1)
	if begin.left >= 0 {
		n = begin.left + begin.skip
	}
	if r.fused, err = r.p.rank.fuse(r.f, r.src, n); err == nil {
		r.fused.seek(r.st.core)
	}
	return err
}

// keepFused keeps the rows for the next page.
func (r *runner) keepFused(next *state) {
	rows := r.fused
	r.fused = nil
	if r.kept.all == nil || rows.Held() > r.kept.all.Most() {
		rows.Close()
		return
	}
	next.kept = r.kept.all.Put(r.kept.owner, rows)
}

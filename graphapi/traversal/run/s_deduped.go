package run

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/spill"
)

// dedup() passes each traverser on when it meets its key for the first time, while the keys fit into memory. When they
// don't fit, they are written to a file. From then on the step can't tell at once whether a key is new. So it gathers
// the traversers that follow, one for each key, up to the last one. Then the runs are merged, and the traversers whose
// keys weren't met before follow in the order in which they came.
//
// Example: memory for two keys, input a, b, a, c, b, d. a and b are passed on. c is too much: run 1 = a, b (given).
// c, b and d are gathered, and become the runs b, c and d. The merge gives a and b, which were given, and c and d,
// which are passed on now.

// dedupRow is a key in a file, with the first traverser that had it.
type dedupRow struct {
	key   string
	given bool // the traverser was passed on, and isn't there
	came  int64
	t     *trav  // when it is written for the first time
	enc   []byte // else
}

// gathering is what dedup() does after its keys were written.
type gathering struct {
	list []dedupRow
	at   map[string]struct{} // the keys of list
	came int64
	runs *spill.Runs[dedupRow]
	rest *spill.Sorter[dedupRow] // at the end of the input: what is left to return
}

// write writes the keys in memory to a run, and with them the traversers that were gathered.
func (s *dedupStep) write() error {
	x, g := s.mem.x, s.more
	if g == nil {
		g = &gathering{}
		g.runs = spill.NewRuns(x.files.space, s.mem.acct, spill.Codec[dedupRow]{
			Append: s.appendRow, Decode: readDedupRow,
			Compare: func(a, b dedupRow) int { return strings.Compare(a.key, b.key) },
			Merge:   func(a, _ dedupRow) (dedupRow, error) { return a, nil }})
		s.more, s.mem.files = g, append(s.mem.files, g.runs)
		for k := range s.seen {
			g.list = append(g.list, dedupRow{key: k, given: true})
		}
		s.seen = nil
	}
	slices.SortFunc(g.list, func(a, b dedupRow) int { return strings.Compare(a.key, b.key) })
	err := g.runs.Write(x.ctx, slices.Values(g.list))
	n := len(g.list)
	g.list, g.at = nil, nil
	if err != nil {
		return err
	}
	return s.mem.wrote(n, g.runs.Bytes())
}

// appendRow appends a row: its key, the place at which it came, or 0 if it was given, and its traverser.
func (s *dedupStep) appendRow(dst []byte, r dedupRow) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(r.key))), r.key...)
	if r.given {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(r.came)+1)
	if r.t == nil {
		return append(dst, r.enc...)
	}
	return s.mem.x.carrier().appendTrav(dst, r.t)
}

func readDedupRow(b []byte) (dedupRow, error) {
	r := record{b: b}
	row := dedupRow{key: r.text()}
	n := r.uvarint()
	row.given, row.came, row.enc = n == 0, int64(n)-1, r.b
	if r.bad {
		return row, damagedRecord()
	}
	return row, nil
}

// gather keeps a traverser until the end of the input, if its key wasn't met since the last run.
func (s *dedupStep) gather(x *exec, t *trav, key []byte) error {
	g := s.more
	if _, ok := g.at[string(key)]; ok {
		return nil
	}
	t.bulk = 1
	if err := s.mem.hold(x, 1, 2*entrySize+int64(len(key))+t.size()); err != nil {
		return err
	}
	if g.at == nil {
		g.at = map[string]struct{}{}
	}
	k := string(key)
	g.at[k] = struct{}{}
	g.list = append(g.list, dedupRow{key: k, came: g.came, t: t})
	g.came++
	return nil
}

// finish merges the runs, and sorts the traversers that weren't given by the places at which they came.
func (s *dedupStep) finish(x *exec) error {
	g := s.more
	if err := s.mem.flush(); err != nil {
		return err
	}
	rows, err := g.runs.Merge(x.ctx)
	if err != nil {
		return x.cause(err)
	}
	defer rows.Close()
	rest := spill.NewSorter(x.ctx, x.files.space, s.mem.acct, spill.Codec[dedupRow]{Append: s.appendRow,
		Decode: readDedupRow, Compare: func(a, b dedupRow) int { return cmp.Compare(a.came, b.came) }})
	s.mem.files = append(s.mem.files, rest)
	for {
		r, ok, err := rows.Next()
		if err != nil {
			return x.cause(err)
		}
		if !ok {
			break
		}
		if err := x.tick(); err != nil {
			return err
		}
		if r.given {
			continue
		}
		r.key, r.enc = "", copyOf(r.enc)
		if err := rest.Add(r, valueSize*2+len(r.enc)); err != nil {
			return x.cause(err)
		}
	}
	rows.Close()
	g.runs.Close()
	if err := rest.End(x.ctx); err != nil {
		return x.cause(err)
	}
	g.rest = rest
	return nil
}

// left returns the next traverser that was gathered, nil at the end.
func (s *dedupStep) left(x *exec) (*trav, error) {
	if s.more.rest == nil {
		if err := s.finish(x); err != nil {
			return nil, err
		}
	}
	r, ok, err := s.more.rest.Next()
	if !ok || err != nil {
		if err != nil {
			return nil, x.cause(err)
		}
		return nil, nil
	}
	return x.carrier().readTrav(r.enc)
}

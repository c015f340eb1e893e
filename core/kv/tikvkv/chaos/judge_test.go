//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// known is what is known about the write of a value.
type known struct {
	event
	maybe bool // it may have been applied, or not
}

// history returns the reads and the acknowledged writes of registers, and all writes that may have been applied by
// register and value.
func (r *run) history() (events []event, written map[string]map[int64]known) {
	written = map[string]map[int64]known{}
	for i := range registers {
		written[registerName(i)] = map[int64]known{0: {maybe: true}} // of make
	}
	for _, p := range r.all {
		for _, e := range p.events {
			switch {
			case e.Op == "set" && e.End == 0: // until its end is found
				e.End = math.MaxInt64
				written[e.Key][e.Value] = known{e, true}
			case e.Op == "set" && e.Err != "" && !e.Unsure:
				delete(written[e.Key], e.Value)
			case e.Op == "set":
				written[e.Key][e.Value] = known{e, e.Unsure}
			}
			if e.Err == "" && e.End != math.MaxInt64 && (e.Op == "set" || e.Op == "get") {
				events = append(events, e)
			}
		}
	}
	return events, written
}

// judge checks that the reads and writes of each register are linearizable. The LSNs of its versions are the order in
// which they were written. So it is enough that
//   - two versions have different LSNs, and a read shows the LSN that its version was written with,
//   - a version is not shown before its write has begun, and a refused write is never shown,
//   - after a read or a write has ended, nothing older is shown, and a write that begins then has a greater LSN.
func (r *run) judge() {
	events, written := r.history()
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.Begun, b.Begun) })
	byEnd := slices.Clone(events)
	slices.SortFunc(byEnd, func(a, b event) int { return cmp.Compare(a.End, b.End) })
	versions := map[string]map[int64]int64{} // by register and LSN: the value
	ended, least := 0, map[string]int64{}    // the greatest LSN of what has ended
	for _, e := range events {
		for ; ended < len(byEnd) && byEnd[ended].End < e.Begun; ended++ {
			b := &byEnd[ended]
			least[b.Key] = max(least[b.Key], b.LSN)
		}
		if versions[e.Key] == nil {
			versions[e.Key] = map[int64]int64{}
		}
		if v, ok := versions[e.Key][e.LSN]; ok && v != e.Value {
			r.t.Errorf("%s: the values %d and %d have LSN %d", e.Key, v, e.Value, e.LSN)
		}
		versions[e.Key][e.LSN] = e.Value
		if e.LSN < least[e.Key] || e.Op == "set" && e.LSN == least[e.Key] {
			r.t.Errorf("%+v after LSN %d", e, least[e.Key])
		}
		if w, ok := written[e.Key][e.Value]; !ok || !w.maybe && w.LSN != e.LSN || w.Begun > e.End {
			r.t.Errorf("%+v, but the write was %+v", e, w)
		}
	}
}

// report checks the times of operations, and for how long users have waited. It logs the longest wait by the fault that
// was then.
func (r *run) report() {
	ops, failures, moves := map[string]int{}, map[string]int{}, 0
	longest, why, late := map[string]time.Duration{}, map[string]string{}, []string{}
	waits := func(p *process, user int, from, to int64, nothing string) {
		d, f := p.without(from, to), r.during(from, to)
		if d > longest[f] {
			longest[f], why[f] = d, nothing+p.attempts(user, from, to)
		}
		if most := r.promised(from, to); most > 0 && d > most {
			late = append(late, fmt.Sprintf("%s: a user has waited for %v, want %v at most%s%s", f,
				d.Round(time.Millisecond), most, nothing, p.attempts(user, from, to)))
		}
	}
	for _, p := range r.all {
		answered := map[int]int64{} // by user: the end of its last operation with an answer, or the begin of its first
		for _, e := range p.events {
			if e.End == 0 {
				continue
			}
			if e.Wrong != "" {
				r.t.Errorf("%s: %s", e.Op, e.Wrong)
			}
			if took := p.without(e.Begun, e.End); took > bound {
				r.t.Errorf("%s took %v: %s", e.Op, took, e.Err)
			}
			if e.Op == "move" {
				moves++
				continue
			}
			if answered[e.User] == 0 {
				answered[e.User] = e.Begun
			}
			if e.Err != "" {
				failures[e.Op]++
			} else {
				ops[e.Op]++
			}
			if e.Err != "" && !e.Overtaken {
				continue
			}
			waits(p, e.User, answered[e.User], e.End, "")
			answered[e.User] = e.End
		}
		for user, at := range answered {
			waits(p, user, at, p.ended.UnixNano(), "\n\tnothing until its process ended")
		}
	}
	var faults []string
	for _, f := range r.done {
		faults = append(faults, f.kind)
	}
	r.t.Logf("succeeded: %v, failed: %v, moves: %d, faults: %q", ops, failures, moves, faults)
	for f, d := range longest {
		r.t.Logf("longest wait, %s: %v%s", f, d.Round(time.Millisecond), why[f])
	}
	if ended := r.cluster.panics(); len(ended) > 0 {
		r.t.Logf("no majority, so the waits are no result: %q", ended)
		return
	}
	for _, what := range late {
		r.t.Error(what)
	}
}

const (
	// promise is the longest wait of users of other processes after a process was killed or paused.
	promise = 3 * time.Second
	// settles is the longest time for which the end of a fault of a store, or of the Placement Driver, has an effect:
	// an election with the stores' own settings.
	settles = 20 * time.Second
)

// promised returns the longest wait that is promised in a time; 0: none is.
func (r *run) promised(from, to int64) (most time.Duration) {
	for _, f := range r.done {
		switch begun := f.from.UnixNano() < to; {
		case begun && strings.HasPrefix(f.kind, "process"):
			most = max(most, promise)
		case begun && r.others > 0:
			most = max(most, r.others)
		case begun && from < f.to.Add(settles).UnixNano():
			return 0
		}
	}
	return most
}

// attempts describes the operations of a user that ended in a time.
func (p *process) attempts(user int, from, to int64) string {
	var b strings.Builder
	for _, e := range p.events {
		if e.User == user && e.End > from && e.End <= to {
			fmt.Fprintf(&b, "\n\t%s %s, %v after its begin, took %v %s", e.Op, e.Key,
				time.Duration(e.Begun-from).Round(time.Millisecond),
				time.Duration(e.End-e.Begun).Round(time.Millisecond), e.Err)
		}
	}
	return b.String()
}

// without returns the time from one moment to another, without that in which the process was paused.
func (p *process) without(from, to int64) time.Duration {
	d := time.Duration(to - from)
	for _, f := range p.pauses {
		d -= time.Duration(max(0, min(to, f.to.UnixNano())-max(from, f.from.UnixNano())))
	}
	return d
}

// during returns the kind of the last fault that had begun in the middle of a time.
func (r *run) during(from, to int64) string {
	kind := "no fault before"
	for _, f := range r.done {
		if f.from.UnixNano() < from/2+to/2 {
			kind = f.kind
		}
	}
	return kind
}

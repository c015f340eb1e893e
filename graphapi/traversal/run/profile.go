package run

import (
	"time"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// probe is a step after each step of a profiled traversal. It measures the output. Time and store operations include
// those of the previous steps, which are subtracted at the end.
type probe struct {
	base
	op   string
	in   gvalue.Instruction
	time time.Duration
	n    int64 // results
	trav int64
	ops  storeOps
	// plan is how the step's look-ups found their documents: that of the first one, with the figures of all that were
	// found alike. nil: there was none.
	plan    *plan.Explanation
	spilled spilled
}

// saw adds a look-up that ends.
func (p *probe) saw(rows graph.Rows) {
	if p == nil {
		return
	}
	if e, ok := rows.(graph.Explainer); ok {
		if p.plan == nil {
			p.plan = e.Explain()
		} else {
			p.plan.Add(e.Explain())
		}
	}
}

// storeOps counts store operations.
type storeOps struct {
	count, items, bytes int64
}

func (p *probe) next(x *exec) (*trav, error) {
	before, ops, outer := x.g.clock.Now(), x.ops, x.probe
	x.probe = p
	t, err := p.prev.next(x)
	x.probe = outer
	p.time += x.g.clock.Now().Sub(before)
	p.ops.count += x.ops.count - ops.count
	p.ops.items += x.ops.items - ops.items
	p.ops.bytes += x.ops.bytes - ops.bytes
	if t != nil {
		p.trav++
		p.n, _ = addBulk(p.n, t.bulk)
	}
	return t, err
}

// profiled reports whether the traversal ends in a profile step.
func profiled(ins []gvalue.Instruction) bool {
	if len(ins) == 0 {
		return false
	}
	switch ins[len(ins)-1].Op {
	case "profile", "executionProfile", "executionprofile":
		return true
	}
	return false
}

// buildProfile makes profile(), with TinkerPop's figures, and executionProfile(), with the service's. Both run the
// traversal and return the figures instead of its results.
func buildProfile(c *compiler, in *inst) (step, error) {
	if c.probes == nil || c.depth != 1 {
		return nil, errf(Unsupported, "The step %s() is supported at the end of a traversal only", in.op)
	}
	probes, x := c.probes, c.x
	return &reduceStep{make: func(*exec) reducer {
		return &profileReducer{c: c, probes: probes, service: in.op != "profile", start: x.g.clock.Now()}
	}}, nil
}

type profileReducer struct {
	c       *compiler
	probes  *[]*probe
	service bool
	start   time.Time
}

func (r *profileReducer) add(*exec, *trav) error { return nil }

// own returns the figures of each step without those of the previous steps.
func own(ps []*probe) []probe {
	out := make([]probe, len(ps))
	for i, p := range ps {
		out[i] = *p
		if i > 0 {
			q := ps[i-1]
			out[i].time = max(0, p.time-q.time)
			out[i].ops = storeOps{count: p.ops.count - q.ops.count, items: p.ops.items - q.ops.items,
				bytes: p.ops.bytes - q.ops.bytes}
		}
	}
	return out
}

func (r *profileReducer) result(x *exec) (any, bool, error) {
	total := x.g.clock.Now().Sub(r.start)
	for _, it := range x.open { // look-ups that nobody has read to their end
		if it.rows != nil {
			it.by.saw(it.rows)
			it.by = nil
		}
	}
	steps := own(*r.probes)
	if r.service {
		return r.serviceForm(steps, total), true, nil
	}
	m := &gvalue.TraversalMetrics{Duration: int64(total)}
	for i, p := range steps {
		counts := gvalue.MapOf("traverserCount", p.trav, "elementCount", p.n)
		name := gvalue.Text(&gvalue.Bytecode{Steps: []gvalue.Instruction{p.in}})
		share := 0.0
		if total > 0 {
			share = 100 * float64(p.time) / float64(total)
		}
		m.Metrics = append(m.Metrics, &gvalue.Metrics{
			ID: stepID(i), Name: name, Duration: int64(p.time), Counts: counts,
			Annotations: annotations(&p, share)})
	}
	return m, true, nil
}

// annotations are what the figures of a step say beside its counts: the plan of its look-ups, and what it has written
// to temporary files.
func annotations(p *probe, share float64) *gvalue.Map {
	m := gvalue.MapOf("percentDur", share)
	if p.plan != nil {
		m.Put("plan", p.plan.String())
	}
	if p.spilled.runs > 0 {
		m.Put("spilled", p.spilled.shown())
	}
	return m
}

// shown is what a profile shows: how many sorted runs a step has written to temporary files, how many traversers or
// groups they had, and the most bytes that the files had at a time.
func (s *spilled) shown() *gvalue.Map {
	return gvalue.MapOf("runs", s.runs, "rows", s.rows, "bytes", s.bytes)
}

func stepID(i int) string { return gvalue.Text(int32(i)) + ".0.0()" }

// serviceNames are the names of steps in the service's profile.
var serviceNames = map[string]string{
	"V": "GetVertices", "E": "GetEdges", "out": "GetNeighborVertices", "in": "GetNeighborVertices",
	"both": "GetNeighborVertices",
	"outE": "GetEdges", "inE": "GetEdges", "bothE": "GetEdges", "outV": "GetNeighborVertices",
	"inV":   "GetNeighborVertices",
	"bothV": "GetNeighborVertices", "otherV": "GetNeighborVertices", "coalesce": "Coalesce",
	"project": "ProjectOperator", "constant": "ConstantSourceOperator", "inject": "ConstantSourceOperator",
	"count": "ProjectAggregation", "sum": "ProjectAggregation",
	"min": "ProjectAggregation", "max": "ProjectAggregation", "mean": "ProjectAggregation",
	"fold": "ProjectAggregation", "group": "ProjectAggregation", "groupCount": "ProjectAggregation",
}

func (r *profileReducer) serviceForm(steps []probe, total time.Duration) any {
	ms := func(d time.Duration) int32 { return int32(d.Milliseconds()) }
	var metrics []any
	for _, p := range steps {
		name := serviceNames[p.op]
		if name == "" {
			name = "ProjectOperator"
		}
		share := 0.0
		if total > 0 {
			share = float64(int64(10000*float64(p.time)/float64(total))) / 100
		}
		m := gvalue.MapOf("name", name, "time", ms(p.time), "annotations", gvalue.MapOf("percentTime", share),
			"counts", gvalue.MapOf("resultCount", p.n))
		if p.ops.count > 0 {
			op := gvalue.MapOf("fanoutFactor", int32(1), "count", p.ops.count, "size", p.ops.bytes, "time", ms(p.time))
			if p.plan != nil {
				op.Put("plan", p.plan.String())
			}
			m.Put("storeOps", []any{op})
		}
		if p.spilled.runs > 0 {
			m.Put("spilled", p.spilled.shown())
		}
		metrics = append(metrics, m)
	}
	return gvalue.MapOf("gremlin", r.c.text, "totalTime", ms(total), "metrics", metrics)
}

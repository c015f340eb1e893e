package sql

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/exec"
)

// IndexUse says which indexes a page used, and which the indexing policy leaves out that its query could use. Paths are in the
// policy's form, "/a/b/?" or "/tags/[]/?".
type IndexUse struct {
	Used, Potential []string
}

// indexUse reads the paths from the chosen access path, the translated filter and the order.
func indexUse(c *core.Container, q *exec.Query, plan *access.Plan) *IndexUse {
	u := &IndexUse{}
	add := func(to *[]string, p access.Path) {
		spec := indexSpec(p)
		for _, s := range *to {
			if s == spec {
				return
			}
		}
		*to = append(*to, spec)
	}
	if plan.Kind == access.Index || plan.Kind == access.Ordered {
		if plan.Leaf != nil {
			add(&u.Used, plan.Leaf.Path)
		}
		for _, l := range plan.Union {
			add(&u.Used, l.Path)
		}
	}
	missing := func(p access.Path) {
		if len(p.Segs) > 0 && p.Segs[0] != "" && p.Segs[0][0] != 0 && !c.Indexes(p) {
			add(&u.Potential, p)
		}
	}
	var walk func(p *access.Pred)
	walk = func(p *access.Pred) {
		if p == nil {
			return
		}
		missing(p.Path)
		for _, k := range p.Kids {
			walk(k)
		}
	}
	walk(q.Pred)
	for _, o := range q.OrderBy {
		missing(o.Path)
	}
	return u
}

// indexSpec writes a stored path as an indexing policy does.
func indexSpec(p access.Path) string {
	var b strings.Builder
	for i, s := range p.Segs {
		b.WriteByte('/')
		switch {
		case i == 0 && s == "_id":
			s = "id"
		case i == 0 && len(s) > 1 && s[0] < 2: // an escaped or system name
			s = s[1:]
		}
		if plainSegment(s) {
			b.WriteString(s)
		} else {
			b.WriteString(`"` + s + `"`)
		}
	}
	if p.Elements {
		b.WriteString("/[]")
	}
	b.WriteString("/?")
	return b.String()
}

func plainSegment(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return s != ""
}

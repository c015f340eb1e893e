package access

import (
	"strings"

	"github.com/orrerydb/orrery/core/doc"
)

// Limits of what a predicate shows. Longer lists and texts are cut.
const (
	maxShownVals = 8
	maxShownText = 64
)

// String shows a predicate: (and (eq /a 1 2) (range /b =5 -)). A bound with = belongs to the range. A minus is an open
// end.
func (p *Pred) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *Pred) write(b *strings.Builder) {
	switch {
	case p == nil || p.Op == OpAll:
		b.WriteString("all")
		return
	case p.Op == OpNone:
		b.WriteString("none")
		return
	}
	b.WriteByte('(')
	b.WriteString([...]string{"", "", "and", "or", "eq", "range", "prefix", "exists", "every", "near", "any of",
		"columns"}[p.Op])
	if p.Comp == nil && p.Op >= OpIn {
		b.WriteString(" " + p.Path.String())
	}
	kids := p.Kids
	if p.Comp != nil {
		kids = p.Comp.Front
		for _, k := range [...]*Pred{p.Comp.Range, p.Comp.either} {
			if k != nil {
				kids = append(kids[:len(kids):len(kids)], k)
			}
		}
	}
	for i, k := range kids {
		if b.WriteByte(' '); i == maxShownVals {
			b.WriteString("..")
			break
		}
		k.write(b)
	}
	switch p.Op {
	case OpIn:
		for i := range p.Vals {
			if b.WriteByte(' '); i == maxShownVals {
				b.WriteString("..")
				break
			}
			if !p.Vals[i].IsDefined() {
				b.WriteString("missing")
				continue
			}
			b.WriteString(shown(doc.AppendJSON(nil, p.Vals[i])))
		}
	case OpRange:
		b.WriteString(" " + p.Lo.String() + " " + p.Hi.String())
	case OpPrefix:
		b.WriteString(" " + shown([]byte(p.Str)))
	}
	b.WriteByte(')')
}

// String shows a bound: with = if it belongs to the range, a minus if there is none.
func (b *Bound) String() string {
	if b == nil {
		return "-"
	}
	text := shown(doc.AppendJSON(nil, b.Value))
	if b.Inclusive {
		return "=" + text
	}
	return text
}

func shown(text []byte) string {
	if len(text) > maxShownText {
		return string(text[:maxShownText]) + ".."
	}
	return string(text)
}

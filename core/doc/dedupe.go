package doc

import (
	"bytes"
	"slices"
)

// dedupe removes duplicate field names from the object that is being closed. The last field of a name stays.
//
//	{"a": 1, "b": 2, "a": 3}  ->  {"b": 2, "a": 3}
//
// In objects of up to 24 fields, each pair of signatures is compared. Fields of larger objects are sorted, so no input
// costs more than n log n.
func (p *parser) dedupe(base int) {
	refs := p.names[base:]
	if len(refs) > 24 {
		p.dedupeSorted(refs)
		return
	}
	for i := 1; i < len(refs); i++ {
		for j := range i {
			if refs[j].sig == refs[i].sig && bytes.Equal(p.nameAt(refs[j]), p.nameAt(refs[i])) {
				p.dedupeSorted(refs)
				return
			}
		}
	}
}

func (p *parser) nameAt(r nameRef) []byte { return p.dst[r.at+1 : r.at+1+r.n] }

func (p *parser) dedupeSorted(refs []nameRef) {
	slices.SortFunc(refs, func(a, b nameRef) int {
		switch {
		case a.sig < b.sig:
			return -1
		case a.sig > b.sig:
			return 1
		}
		if c := bytes.Compare(p.nameAt(a), p.nameAt(b)); c != 0 {
			return c
		}
		return a.at - b.at
	})
	dup := false
	for i := range refs {
		last := i+1 == len(refs) || refs[i].sig != refs[i+1].sig || !bytes.Equal(p.nameAt(refs[i]), p.nameAt(refs[i+1]))
		if !last {
			refs[i].n, dup = -1, true
		}
	}
	if !dup {
		return
	}
	slices.SortFunc(refs, func(a, b nameRef) int { return a.at - b.at })
	to := refs[0].at
	for i, r := range refs {
		end := len(p.dst)
		if i+1 < len(refs) {
			end = refs[i+1].at
		}
		if r.n >= 0 {
			to += copy(p.dst[to:], p.dst[r.at:end])
		}
	}
	p.dst = p.dst[:to]
}

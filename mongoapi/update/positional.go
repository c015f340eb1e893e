package update

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// compileFilters compiles arrayFilters. Each is a query on one identifier.
func (u *Update) compileFilters(o Options) error {
	if !o.ArrayFilters.IsDefined() {
		return nil
	}
	u.filters = map[string]*filter.Filter{}
	for it := o.ArrayFilters.Iter(); it.Next(); {
		id, err := filterName(it.Value(), 0)
		if err != nil {
			return err
		}
		if u.filters[id] != nil {
			return merr.New(merr.FailedToParse,
				"Found multiple array filters with the same top-level field name %s", id)
		}
		f, err := filter.Compile(it.Value(), filter.Options{Scope: o.Scope, Run: o.Run})
		if err != nil {
			return err
		}
		u.filters[id] = f
	}
	return nil
}

// filterName returns the only identifier that an array filter uses.
func filterName(v value.Value, depth int) (string, error) {
	if v.Kind() != value.Object || depth > 50 {
		return "", merr.New(merr.TypeMismatch, "array filters must be documents")
	}
	name := ""
	for it := v.Iter(); it.Next(); {
		var ids []string
		switch key := string(it.Key()); key {
		case "$and", "$or", "$nor":
			for _, e := range value.Elements(it.Value()) {
				id, err := filterName(e, depth+1)
				if err != nil {
					return "", err
				}
				ids = append(ids, id)
			}
		default:
			id, _, _ := strings.Cut(key, ".")
			ids = append(ids, id)
		}
		for _, id := range ids {
			if name != "" && id != name {
				return "", merr.New(merr.FailedToParse, "Error parsing array filter :: caused by :: Expected a "+
					"single top-level field name, found '%s' and '%s'", name, id)
			}
			name = id
		}
	}
	if name == "" {
		return "", merr.New(merr.FailedToParse, "Cannot use an expression without a top-level field name in "+
			"arrayFilters")
	}
	if name[0] < 'a' || name[0] > 'z' {
		return "", merr.New(merr.BadValue, "Error parsing array filter :: caused by :: The top-level field name "+
			"must be an alphanumeric string beginning with a lowercase letter, found '%s'", name)
	}
	return name, nil
}

// checkFilters checks that every identifier has a filter and every filter is used.
func (u *Update) checkFilters(given value.Value) error {
	used := map[string]bool{}
	for _, o := range u.ops {
		for _, s := range o.segs {
			id, ok := identifier(s)
			if !ok || id == "" {
				continue
			}
			if u.filters[id] == nil {
				return merr.New(merr.BadValue, "No array filter found for identifier '%s' in path '%s'", id, o.path)
			}
			used[id] = true
		}
	}
	for id := range u.filters {
		if !used[id] {
			return merr.New(merr.FailedToParse, "The array filter for identifier '%s' was not used in the update %s",
				id, merr.Show(given))
		}
	}
	return nil
}

// identifier reads "$[id]". id is "" for "$[]".
func identifier(s string) (id string, ok bool) {
	if len(s) < 3 || s[:2] != "$[" || s[len(s)-1] != ']' {
		return "", false
	}
	return s[2 : len(s)-1], true
}

// expand replaces the positional components of a path by the array indexes that they represent in the document.
//
//	a.$[].b    in {a: [{b: 1}, {b: 2}]}              ->  a.0.b, a.1.b
//	a.$[x].b   with the array filter {"x.b": {$gt: 1}}  ->  a.1.b
//	a.$.b      with the query {"a.b": 2}             ->  a.1.b
func (u *Update) expand(root *node, full string, head, tail []string, doc value.Value, c Context) ([][]string, error) {
	for i, s := range tail {
		if s == "$" {
			at, ok := -1, false
			if c.Filter != nil && !c.Insert {
				at, ok = c.Filter.Position(doc, tailFirst(head, tail))
			}
			if !ok {
				return nil, merr.New(merr.BadValue, "The positional operator did not find the match needed from the "+
					"query.")
			}
			head = append(head[:len(head):len(head)], strconv.Itoa(at))
			continue
		}
		id, ok := identifier(s)
		if !ok {
			head = append(head[:len(head):len(head)], s)
			continue
		}
		p := root.find(head)
		if p.at == nil {
			return nil, merr.New(merr.BadValue, "The path '%s' must exist in the document in order to apply array "+
				"updates.", strings.Join(head, "."))
		}
		p.at.mustExpand()
		if !p.at.arr || !p.at.open {
			return nil, merr.New(merr.BadValue, "Cannot apply array updates to non-array element %s: %s", p.at.key,
				merr.Show(p.at.value()))
		}
		var out [][]string
		for j, k := range p.at.kids {
			if id != "" {
				at, b := bson.Begin(nil)
				b = value.AppendElement(b, id, k.value())
				if ok, err := u.filters[id].Match(c.Env, value.ObjectOf(bson.End(b, at))); err != nil {
					return nil, err
				} else if !ok {
					continue
				}
			}
			more, err := u.expand(root, full, append(head[:len(head):len(head)], strconv.Itoa(j)), tail[i+1:], doc, c)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	}
	return [][]string{head}, nil
}

func tailFirst(head, tail []string) string {
	if len(head) > 0 {
		return head[0]
	}
	return tail[0]
}

// mustExpand opens n if it can be opened.
func (n *node) mustExpand() {
	if n.container() {
		n.expand()
	}
}

package sql

import (
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	funcs "github.com/orrerydb/orrery/sqlapi/sql/func"
)

// step is one step of a path: a property name, or an array index when name is "".
type step struct {
	name  string
	index int
	array bool
}

// splitPath cuts the fixed steps off an expression: c.a["b"][0] gives the steps and c.
func splitPath(e Expr) ([]step, Expr) {
	n := 0
	base := e
	for {
		if p, ok := base.(*Prop); ok {
			base = p.Base
		} else if x, ok := base.(*Index); ok && fixedIndex(x.At) >= 0 {
			base = x.Base
		} else {
			break
		}
		n++
	}
	steps := make([]step, n)
	for cur := e; n > 0; n-- {
		switch x := cur.(type) {
		case *Prop:
			steps[n-1] = step{name: x.Name}
			cur = x.Base
		case *Index:
			steps[n-1] = step{index: fixedIndex(x.At), array: true}
			cur = x.Base
		}
	}
	return steps, base
}

// fixedIndex returns the array index that a literal names, -1 when it names none.
func fixedIndex(e Expr) int {
	if l, ok := e.(*Lit); ok && l.Val.IsNumber() {
		if i, ok := funcs.ToInt(l.Val); ok && i >= 0 {
			return i
		}
	}
	return -1
}

// isPath reports whether e can stand as a path in FROM.
func isPath(e Expr) bool {
	_, base := splitPath(e)
	_, ok := base.(*Ident)
	return ok
}

// systemNames are the properties of an item that live in its envelope, in the order in which they follow the document.
var systemNames = [...]string{"_rid", "_self", "_etag", "_attachments", "_ts"}

func isSystem(name string) bool {
	if len(name) < 3 || name[0] != '_' {
		return false
	}
	for _, s := range systemNames {
		if s == name {
			return true
		}
	}
	return false
}

// storedPath maps the steps of a path on the item; fixed array indexes count as any element.
func storedPath(steps []step, element bool) (access.Path, bool, bool) {
	if len(steps) == 0 || steps[0].array {
		return access.Path{}, false, false
	}
	if isSystem(steps[0].name) {
		return access.TS, false, steps[0].name == "_ts" && len(steps) == 1 && !element
	}
	first, ok := doc.NoSQL.Stored(steps[0].name)
	if !ok {
		return access.Path{}, false, false
	}
	segs := []string{first}
	for _, st := range steps[1:] {
		if st.array {
			element = true
			continue
		}
		if extended[st.name] {
			return access.Path{}, false, false
		}
		segs = append(segs, st.name)
	}
	p := access.NewPath(segs...)
	if element {
		p = p.Element()
	}
	return p, element, true
}

// extended are the names under which a value of a kind that JSON lacks is shown as an object: c.a["$oid"] reads an
// ObjectId, whose index entry is at /a.
var extended = map[string]bool{
	"$binary": true, "$code": true, "$dbPointer": true, "$maxKey": true, "$minKey": true, "$numberDecimal": true,
	"$numberDouble": true, "$oid": true, "$regularExpression": true, "$scope": true, "$symbol": true,
	"$timestamp": true, "$undefined": true,
}

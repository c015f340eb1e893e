// Package shape tells what a query's tree says by itself: which paths it reads, whether it groups, what it is ordered
// by.
package shape

import (
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	funcs "github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Step is one step of a path: a property name, or an array index when name is "".
type Step struct {
	Name  string
	Index int
	Array bool
}

// SplitPath cuts the fixed steps off an expression: c.a["b"][0] gives the steps and c.
func SplitPath(e syntax.Expr) ([]Step, syntax.Expr) {
	n := 0
	base := e
	for {
		if p, ok := base.(*syntax.Prop); ok {
			base = p.Base
		} else if x, ok := base.(*syntax.Index); ok && fixedIndex(x.At) >= 0 {
			base = x.Base
		} else {
			break
		}
		n++
	}
	steps := make([]Step, n)
	for cur := e; n > 0; n-- {
		switch x := cur.(type) {
		case *syntax.Prop:
			steps[n-1] = Step{Name: x.Name}
			cur = x.Base
		case *syntax.Index:
			steps[n-1] = Step{Index: fixedIndex(x.At), Array: true}
			cur = x.Base
		}
	}
	return steps, base
}

// fixedIndex returns the array index that a literal names, -1 when it names none.
func fixedIndex(e syntax.Expr) int {
	if l, ok := e.(*syntax.Lit); ok && l.Val.IsNumber() {
		if i, ok := funcs.ToInt(l.Val); ok && i >= 0 {
			return i
		}
	}
	return -1
}

// IsPath reports whether e can stand as a path in FROM.
func IsPath(e syntax.Expr) bool {
	_, base := SplitPath(e)
	_, ok := base.(*syntax.Ident)
	return ok
}

// SystemNames are the properties of an item that live in its envelope, in the order in which they follow the document.
var SystemNames = [...]string{"_rid", "_self", "_etag", "_attachments", "_ts"}

// IsSystem reports whether a name is one of SystemNames.
func IsSystem(name string) bool {
	if len(name) < 3 || name[0] != '_' {
		return false
	}
	for _, s := range SystemNames {
		if s == name {
			return true
		}
	}
	return false
}

// StoredPath maps the steps of a path on the item; fixed array indexes count as any element.
func StoredPath(steps []Step, element bool) (access.Path, bool, bool) {
	if len(steps) == 0 || steps[0].Array {
		return access.Path{}, false, false
	}
	if IsSystem(steps[0].Name) {
		return access.TS, false, steps[0].Name == "_ts" && len(steps) == 1 && !element
	}
	first, ok := doc.NoSQL.Stored(steps[0].Name)
	if !ok {
		return access.Path{}, false, false
	}
	segs := []string{first}
	for _, st := range steps[1:] {
		if st.Array {
			element = true
			continue
		}
		if extended[st.Name] {
			return access.Path{}, false, false
		}
		segs = append(segs, st.Name)
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

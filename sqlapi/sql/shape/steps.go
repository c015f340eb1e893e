// Package shape answers questions about a query from its syntax tree alone: which paths it reads, whether it groups,
// what it is ordered by.
package shape

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Step is one step of a path: a property name, or an array index when name is "".
type Step struct {
	Name  string
	Index int
	Array bool
}

// SplitPath splits an expression into a base and the fixed steps that are read from it. Example: c.a["b"][0] gives the
// steps a, b, 0 and the base c.
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

// fixedIndex returns the value of e when it is a literal array index, else -1.
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

// SystemNames are the system properties of an item. They aren't part of the stored document. An item is shown with them
// in this order, behind the document's own properties.
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

// StoredPath translates the steps of a path on the item into a path of stored names. It returns the path and whether it
// reads array elements. A fixed array index counts as any element. The last result is false when no index can know the
// path.
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

// extended are the member names of Extended JSON, the form in which values of types that JSON lacks are shown. Example:
// c.a["$oid"] reads a stored ObjectId. Its index entry is at /a, not at /a/$oid.
var extended = map[string]bool{
	"$binary": true, "$code": true, "$dbPointer": true, "$maxKey": true, "$minKey": true, "$numberDecimal": true,
	"$numberDouble": true, "$oid": true, "$regularExpression": true, "$scope": true, "$symbol": true,
	"$timestamp": true, "$undefined": true,
}

package sql

import (
	"sort"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/value"
)

// A container's vector embedding policy names the distance function of each path that has vectors. VectorDistance of
// such a path measures with that function, unless the query names another: the name is written into the call before it
// is compiled.

// Embedding is a path with vectors, as its segments, and their distance function.
type Embedding struct {
	Path     []string
	Distance string
}

// WithEmbeddings returns c, which may be nil, with a container's embeddings; nil when there is nothing in it. Cosine is
// what VectorDistance takes anyway and isn't kept.
func (c *Computed) WithEmbeddings(list []Embedding) *Computed {
	out := Computed{}
	if c != nil {
		out = *c
	}
	out.distances = nil
	for _, e := range list {
		if f := strings.ToLower(e.Distance); f != "" && f != "cosine" {
			if out.distances == nil {
				out.distances = map[string]string{}
			}
			out.distances[strings.Join(e.Path, "\x00")] = f
		}
	}
	if out.distances == nil {
		return c
	}
	paths := make([]string, 0, len(out.distances))
	for p := range out.distances {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	out.key += "\x00"
	for _, p := range paths {
		out.key += p + "\x00" + out.distances[p] + "\x00"
	}
	out.hash = xxhash.Sum64String(out.key)
	return &out
}

// onlyEmbeddings returns what a query plan sees of c: the names of computed properties stay in its text, for the server
// expands them when the text comes back.
func (c *Computed) onlyEmbeddings() *Computed {
	if c == nil || len(c.distances) == 0 {
		return nil
	}
	return &Computed{distances: c.distances, key: "\x00plan" + c.key, hash: c.hash}
}

// distance writes the distance function of an embedding into a call of VectorDistance that names none.
func (x *expander) distance(call *Call) {
	if x.comp == nil || len(x.comp.distances) == 0 || call.UDF || len(call.Args) < 2 ||
		!strings.EqualFold(call.Name, "VectorDistance") {
		return
	}
	name := x.embedding(call.Args[0])
	if name == "" {
		name = x.embedding(call.Args[1])
	}
	if name == "" {
		return
	}
	if len(call.Args) == 2 {
		call.Args = append(call.Args, &Lit{node: node{}.above(), Val: value.BoolOf(false)})
	}
	function := &Lit{node: node{}.above(), Val: value.StringOf(name)}
	options := &ObjectExpr{}
	if len(call.Args) > 3 {
		o, ok := call.Args[3].(*ObjectExpr)
		if !ok {
			return
		}
		for _, k := range o.Keys {
			if k == "distanceFunction" {
				return
			}
		}
		*options = *o
		options.Keys, options.Vals = append([]string(nil), o.Keys...), append([]Expr(nil), o.Vals...)
	}
	options.Keys = append(options.Keys, "distanceFunction")
	options.Vals = append(options.Vals, function)
	options.node = options.node.above(function)
	call.Args = append(call.Args[:3:3], options)
	call.node = call.node.above(options)
}

// embedding returns the distance function of the path that e is, "" when it is none.
func (x *expander) embedding(e Expr) string {
	var path []string
	for {
		p, ok := e.(*Prop)
		if !ok {
			break
		}
		path = append(path, p.Name)
		e = p.Base
	}
	if !x.isRoot(e) {
		return ""
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return x.comp.distances[strings.Join(path, "\x00")]
}

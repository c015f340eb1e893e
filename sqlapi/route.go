package sqlapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/internal/rest"
)

// handler serves one operation. What it returns as an error is written by call.Fail.
type handler func(c *call) error

// operation is one thing that a request may ask for: a verb of a path, in one of its forms. A form is told by headers
// (a POST on docs is a create, an upsert, a query, a plan, a batch or a bulk), by which nothing but this table goes:
// what a resource token must allow is said beside the handler that runs, so they can't be about different things.
type operation struct {
	name  string           // for observers: of a small fixed set
	needs rights           // what a resource token must allow
	serve handler          //
	form  func(*call) bool // whether a request has the form; nil: every one
}

func op(name string, needs rights, serve handler) operation {
	return operation{name: name, needs: needs, serve: serve}
}

// when makes an operation that of a form.
func when(form func(*call) bool, o operation) operation {
	o.form = form
	return o
}

// line is one line of the route table.
type line struct {
	verb, path string
	ops        []operation // the first whose form a request has; the last has none
}

// routes adds to the route table below a path. It is the only way to add a route: each goes through dispatch.
type routes struct {
	g    *gin.RouterGroup
	base string
	all  *[]line
}

func (r routes) group(path string) routes { return routes{r.g.Group(path), r.base + path, r.all} }

func (r routes) handle(verb, path string, ops []operation) {
	for i, o := range ops {
		if (o.form == nil) != (i == len(ops)-1) {
			panic("sqlapi: " + verb + " " + r.base + path + ": the last operation is the one without a form")
		}
	}
	*r.all = append(*r.all, line{verb, r.base + path, ops})
	r.g.Handle(verb, path, dispatch(ops))
}

func (r routes) get(path string, ops ...operation)    { r.handle(http.MethodGet, path, ops) }
func (r routes) post(path string, ops ...operation)   { r.handle(http.MethodPost, path, ops) }
func (r routes) put(path string, ops ...operation)    { r.handle(http.MethodPut, path, ops) }
func (r routes) patch(path string, ops ...operation)  { r.handle(http.MethodPatch, path, ops) }
func (r routes) delete(path string, ops ...operation) { r.handle(http.MethodDelete, path, ops) }

// any adds every verb: gets is what GET does, and changes what the others do.
func (r routes) any(path string, gets, changes operation) {
	r.get(path, gets)
	r.post(path, changes)
	r.put(path, changes)
	r.patch(path, changes)
	r.delete(path, changes)
}

// dispatch makes the gin handler of a line: it finds the operation, holds it to the resource token, and lets it answer.
func dispatch(ops []operation) gin.HandlerFunc {
	return rest.Handle(func(c *call) error {
		o := &ops[0]
		for i := range ops {
			if o = &ops[i]; o.form == nil || o.form(c) {
				break
			}
		}
		c.Operation = o.name
		if c.grant != nil {
			if err := c.permit(o.needs); err != nil {
				return err
			}
		}
		return o.serve(c)
	})
}

// noRoute answers for a path that is not there. A resource token learns nothing of paths that it has no right to.
func noRoute(c *call) error {
	if c.grant != nil {
		return errNoRight
	}
	return errNoPath
}

// noVerb answers for a verb that a path does not have.
func noVerb(c *call) error {
	if c.grant != nil {
		return errNoRight
	}
	return c.notAllowed()
}

package sqlapi

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/internal/rest"
)

// handler serves one operation. call.Fail writes the reply of an error that it returns.
type handler func(c *call) error

// operation is a verb on a path, in one of its forms. Headers select the form: a POST on docs is a create, an upsert, a
// query, a plan, a batch or a bulk. Only this table evaluates the form. An entry has both the handler and the rights
// that a resource token needs, so the rights that are checked always belong to the handler that runs.
type operation struct {
	name  string           // name for observers; one of a small fixed set
	needs rights           // what a resource token must allow
	serve handler          //
	form  func(*call) bool // reports whether a request has the form; nil: each has
}

func op(name string, needs rights, serve handler) operation {
	return operation{name: name, needs: needs, serve: serve}
}

// when returns the operation o with a form.
func when(form func(*call) bool, o operation) operation {
	o.form = form
	return o
}

// line is one line of the route table.
type line struct {
	verb, path string
	ops        []operation // the first one with the request's form is used; the last has no form
}

// routes adds lines to the route table below a path. All routes are added with it, so that each goes through dispatch.
type routes struct {
	g    *gin.RouterGroup
	base string
	all  *[]line

	faults fault.Source // nil: no request fails on purpose
}

func (r routes) group(path string) routes {
	return routes{r.g.Group(path), r.base + path, r.all, r.faults}
}

func (r routes) handle(verb, path string, ops []operation) {
	for i, o := range ops {
		if (o.form == nil) != (i == len(ops)-1) {
			panic("sqlapi: " + verb + " " + r.base + path + ": the last operation is the one without a form")
		}
	}
	*r.all = append(*r.all, line{verb, r.base + path, ops})
	if r.faults != nil {
		ops = slices.Clone(ops)
		for i := range ops {
			ops[i].serve = disturbed(r.faults, ops[i].serve)
		}
	}
	r.g.Handle(verb, path, dispatch(ops))
}

func (r routes) get(path string, ops ...operation)    { r.handle(http.MethodGet, path, ops) }
func (r routes) post(path string, ops ...operation)   { r.handle(http.MethodPost, path, ops) }
func (r routes) put(path string, ops ...operation)    { r.handle(http.MethodPut, path, ops) }
func (r routes) patch(path string, ops ...operation)  { r.handle(http.MethodPatch, path, ops) }
func (r routes) delete(path string, ops ...operation) { r.handle(http.MethodDelete, path, ops) }

// any adds all verbs: gets is the operation of GET, changes that of the others.
func (r routes) any(path string, gets, changes operation) {
	r.get(path, gets)
	r.post(path, changes)
	r.put(path, changes)
	r.patch(path, changes)
	r.delete(path, changes)
}

// dispatch returns the gin handler of a line. The handler selects the operation, checks the resource token and runs the
// operation.
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

// disturbed returns a handler that asks faults about each request.
func disturbed(faults fault.Source, serve handler) handler {
	return func(c *call) error {
		e := faults.Hit(fault.Request{API: "nosql", Operation: c.Operation, Database: c.Param("db"),
			Container: c.Param("coll"), Key: c.In.Get(hPartitionKey), Once: c.In.Get(fault.Header)})
		if e == nil {
			return serve(c)
		}
		return c.Disturb(e, func() error { return serve(c) })
	}
}

// noRoute answers for an unknown path. With a resource token the answer is the same as for a path without rights.
func noRoute(c *call) error {
	if c.grant != nil {
		return errNoRight
	}
	return errNoPath
}

// noVerb answers for a verb that the path doesn't have.
func noVerb(c *call) error {
	if c.grant != nil {
		return errNoRight
	}
	return c.notAllowed()
}

package tableapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// route is one line of the route table: a method, an address and the handler. op is its name for observers.
//
// The addresses are OData's: table, keys and their order are inside one path segment, which routers can't split. So the
// router selects by method, and odata.ParseAddress returns the kind of the address. The addresses here are examples of
// their kinds.
type route struct {
	verb, address string
	op            string
	serve         func(*call) error
}

// surface is the route table. MERGE and PATCH are equivalent. A POST with X-HTTP-Method counts as the method that it
// names.
func surface() []route {
	return []route{
		{"GET", "Tables", "query tables", (*call).queryTables},
		{"POST", "Tables", "create table", (*call).createTable},
		{"GET", "Tables('t')", "get table", (*call).getTable},
		{"DELETE", "Tables('t')", "delete table", (*call).deleteTable},
		{"GET", "t()", "query entities", (*call).queryEntities},
		{"POST", "t", "insert entity", (*call).insertEntity},
		{"GET", "t(PartitionKey='p',RowKey='r')", "get entity", (*call).getEntity},
		{"PUT", "t(PartitionKey='p',RowKey='r')", "replace entity", (*call).replaceEntity},
		{"MERGE", "t(PartitionKey='p',RowKey='r')", "merge entity", (*call).mergeEntity},
		{"PATCH", "t(PartitionKey='p',RowKey='r')", "merge entity", (*call).mergeEntity},
		{"DELETE", "t(PartitionKey='p',RowKey='r')", "delete entity", (*call).deleteEntity},
		{"POST", "$batch", "batch", (*call).transaction},
		{"GET", "t?comp=acl", "get table acl", (*call).getACL},
		{"HEAD", "t?comp=acl", "get table acl", (*call).getACL},
		{"PUT", "t?comp=acl", "set table acl", (*call).setACL},
	}
}

// acl is the kind of a table's address with comp=acl, in addition to the kinds of odata.
const acl = odata.Batch + 1

// handlers are the lines of surface by kind of address and method.
var handlers [acl + 1]map[string]*route

func init() {
	for _, r := range surface() {
		kind := acl
		if path, _, special := strings.Cut(r.address, "?"); !special {
			a, err := odata.ParseAddress(path)
			if err != nil {
				panic("tableapi: bad address in the route table: " + r.address)
			}
			kind = a.Kind
		}
		if handlers[kind] == nil {
			handlers[kind] = map[string]*route{}
		}
		if handlers[kind][r.verb] != nil {
			panic("tableapi: double line in the route table: " + r.verb + " " + r.address)
		}
		handlers[kind][r.verb] = &r
	}
}

// verbs are the methods of the route table.
func verbs() (out []string) {
	for _, r := range surface() {
		if !slices.Contains(out, r.verb) {
			out = append(out, r.verb)
		}
	}
	return out
}

// allowed lists the methods of a kind of address.
func allowed(k odata.Kind) string {
	var names []string
	for m := range handlers[k] {
		names = append(names, m)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// locate reads the resource's address.
func (c *call) locate() error {
	seg, err := url.PathUnescape(c.resource)
	if err != nil {
		return newError("InvalidUri")
	}
	c.addr, err = odata.ParseAddress(seg)
	return err
}

// dispatch finds the route of a request and calls its handler.
func (c *call) dispatch() error {
	if err := c.locate(); err != nil {
		return err
	}
	if comp := c.param("comp"); comp != "" || c.addr.Kind == odata.Service {
		return asXML(c.special(comp))
	}
	verb, err := c.method(c.Request.Method, c.In.Values("X-Http-Method"))
	if err != nil {
		return err
	}
	// The answer to a batch is multipart, whatever the request accepts. azure-storage for Node asks for Atom there, and
	// for JSON in each part.
	if err := c.negotiate(verb); err != nil && c.addr.Kind != odata.Batch {
		return err
	}
	return c.run(c.addr.Kind, verb)
}

// special handles requests with the parameter comp: tables' access control lists. Service properties and statistics are
// refused: storage accounts have them, Cosmos DB doesn't.
func (c *call) special(comp string) error {
	if c.addr.Kind == odata.Entities && comp == "acl" {
		return c.run(acl, c.Request.Method)
	}
	return newError("NotImplemented")
}

// run calls the handler for a kind of address and a method.
func (c *call) run(k odata.Kind, verb string) error {
	r := handlers[k][verb]
	if r == nil {
		c.Set("Allow", allowed(k))
		return newError("MethodNotAllowed")
	}
	c.Operation = r.op
	if c.s.o.Faults != nil {
		return c.disturbed(r)
	}
	return r.serve(c)
}

// disturbed asks about faults before it calls the handler.
func (c *call) disturbed(r *route) error {
	e := c.s.o.Faults.Hit(fault.Request{API: "table", Operation: r.op, Database: Database, Container: c.addr.Table,
		Key: c.addr.PartitionKey, Once: c.In.Get(fault.Header)})
	if e == nil {
		return r.serve(c)
	}
	return c.Disturb(e, func() error { return r.serve(c) })
}

// otherPath replies to a target that isn't a path: "*".
func (c *call) otherPath() error { return newError("InvalidUri") }

// otherMethod replies to a method that no address has.
func (c *call) otherMethod() error {
	if err := c.locate(); err != nil {
		return err
	}
	c.Set("Allow", allowed(c.addr.Kind))
	return newError("MethodNotAllowed")
}

// method applies X-HTTP-Method, with which a POST counts as another method.
func (c *call) method(m string, override []string) (string, error) {
	if len(override) == 0 {
		return m, nil
	}
	if m != http.MethodPost {
		return "", newError("XMethodNotUsingPost")
	}
	if len(override) > 1 {
		return "", newError("XMethodIncorrectCount")
	}
	switch o := strings.ToUpper(override[0]); o {
	case "DELETE", "MERGE", "PATCH", "PUT":
		return o, nil
	}
	return "", newError("XMethodIncorrectValue")
}

// preflight refuses a CORS preflight request: there are no CORS rules.
func (c *call) preflight() error {
	if c.Request.Method != http.MethodOptions {
		return nil
	}
	c.Operation = "preflight"
	if c.In.Get("Origin") == "" {
		return &apiError{Code: "InvalidHeaderValue", Index: -1, XML: true}
	}
	return &apiError{Code: "CorsPreflightFailure", Index: -1, XML: true}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"github.com/google/uuid"
)

// gremlin is a graph by gremlin-go. It is read by traversals, the vertices by ascending id and then the edges, so a
// copy that was ended goes on behind the last id. Gremlin has no feed, and creates no graph.
type gremlin struct {
	c    *gremlingo.Client
	name string
	key  string // the property that is the partition key; "" = the ids are enough
}

func openGremlin(ctx context.Context, p *place) (*gremlin, error) {
	type opened struct {
		c   *gremlingo.Client
		err error
	}
	done := make(chan opened, 1)
	go func() { // the driver connects without a context
		c, err := gremlingo.NewClient(p.base, func(o *gremlingo.ClientSettings) {
			o.LogVerbosity = gremlingo.Off
			o.MaximumConcurrentConnections = workers / 4
			o.NewConnectionThreshold = 4
			o.TraversalSource = strings.TrimPrefix(p.db+"/"+p.container, "/")
			switch {
			case p.secret == "":
			case p.db == "":
				o.AuthInfo = gremlingo.BasicAuthInfo(p.account, p.secret)
			default:
				o.TraversalSource = "g" // the login names the graph
				o.AuthInfo = gremlingo.BasicAuthInfo("/dbs/"+p.db+"/colls/"+p.container, p.secret)
			}
		})
		done <- opened{c, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, fmt.Errorf("%s: %w", p.base, o.err)
		}
		return &gremlin{c: o.c, name: strings.TrimPrefix(p.db+"/"+p.container, "/"), key: p.property}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *gremlin) close() { g.c.Close() }

// run runs a traversal and returns its results. As long as the server is busy, it waits as the server says.
func (g *gremlin) run(ctx context.Context, script string, bindings map[string]any) ([]any, error) {
	for {
		results, err := g.submit(ctx, script, bindings)
		var f *gremlinFault
		if err == nil || !errors.As(err, &f) || !f.busy() {
			return results, err
		}
		if !wait(ctx, f.after) {
			return nil, ctx.Err()
		}
	}
}

// submit runs a traversal once. When ctx ends, the driver's wait for the results is left behind.
func (g *gremlin) submit(ctx context.Context, script string, bindings map[string]any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type answer struct {
		results []any
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		o := new(gremlingo.RequestOptionsBuilder).SetBindings(bindings).SetMaterializeProperties("all")
		rs, err := g.c.SubmitWithOptions(script, o.Create())
		var all []*gremlingo.Result
		if err == nil {
			all, err = rs.All()
		}
		if err == nil {
			err = rs.GetError()
		}
		a := answer{err: err}
		for _, r := range all {
			if list, ok := r.Data.([]any); ok {
				a.results = append(a.results, list...)
			} else {
				a.results = append(a.results, r.Data)
			}
		}
		done <- a
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, faultOf(a.err)
		}
		return a.results, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gremlinFault is an error that the server has answered. The driver keeps it as a text only, the attributes too:
//
//	E0502: error in read loop, error message '{code:429 message:.. attributes:map[x-ms-retry-after-ms:00:00:00.0150000
//	x-ms-status-code:429 x-ms-substatus-code:3200]}'. statusCode: 429
type gremlinFault struct {
	code  int // of the service in x-ms-status-code, else of Gremlin
	after time.Duration
	text  string
}

var (
	faultCode   = regexp.MustCompile(`statusCode: (\d+)\s*$`)
	faultStatus = regexp.MustCompile(`x-ms-status-code:(\d+)`)
	faultAfter  = regexp.MustCompile(`x-ms-retry-after-ms:(\d+):(\d+):(\d+)(\.\d+)?`)
	faultText   = regexp.MustCompile(`(?s)message:(.*?) attributes:`)
)

// faultOf reads the driver's error of an answer. Other errors, such as a lost connection, are returned as they are.
func faultOf(err error) error {
	text := err.Error()
	at := faultCode.FindStringSubmatch(text)
	if at == nil {
		return fmt.Errorf("%w: the same command goes on", err)
	}
	f := &gremlinFault{after: poll, text: text}
	if status := faultStatus.FindStringSubmatch(text); status != nil {
		at = status
	}
	f.code, _ = strconv.Atoi(at[1]) // digits
	if a := faultAfter.FindStringSubmatch(text); a != nil {
		d, err := time.ParseDuration(a[1] + "h" + a[2] + "m" + a[3] + a[4] + "s")
		if err == nil {
			f.after = d
		}
	}
	if m := faultText.FindStringSubmatch(text); m != nil {
		f.text = m[1]
		if _, rest, ok := strings.Cut(f.text, "ExceptionMessage :"); ok { // the service's form has more fields
			f.text, _, _ = strings.Cut(rest, "Source :")
		}
	}
	f.text = strings.Join(strings.Fields(f.text), " ")
	f.text = f.text[:min(len(f.text), mostOfReason)]
	return f
}

// Error implements error.
func (f *gremlinFault) Error() string { return fmt.Sprintf("%s (%d)", f.text, f.code) }

// busy reports whether the same request may succeed later. 3200 is the service's substatus of 429.
func (f *gremlinFault) busy() bool { return f.code == 429 || f.code == 449 || f.code == 3200 }

// bad reports whether the fault is about what was written, and not about the server, the login or the graph.
func (f *gremlinFault) bad() bool {
	switch f.code {
	case 151, 401, 403, 404, 407, 408, 410, 503, 598:
		return false
	}
	return true
}

// define finds out whether the graph can be read.
func (g *gremlin) define(ctx context.Context) (any, error) {
	if _, err := g.run(ctx, "g.V().limit(1).id()", nil); err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	return nil, nil
}

// prepare implements target: the graph must be there.
func (g *gremlin) prepare(ctx context.Context, _ any, _ bool) error {
	_, err := g.define(ctx)
	return err
}

func (g *gremlin) size(ctx context.Context) (n int64) {
	for _, script := range []string{"g.V().count()", "g.E().count()"} {
		counts, err := g.run(ctx, script, nil)
		if err != nil || len(counts) != 1 {
			return 0
		}
		count, _ := counts[0].(int64)
		n += count
	}
	return n
}

// gremlinAt is a position: the kind of elements that is read, the kind of their ids, and the last id.
type gremlinAt struct {
	Edges bool   `json:"edges"`
	Kind  int    `json:"kind"` // in idKinds
	Last  string `json:"last"`
	Begun bool   `json:"begun"` // Last is the last id
	Exact bool   `json:"exact"` // the server's indexes don't tell the kinds of ids apart
}

// idKinds are the kinds of ids. Gremlin compares values of one kind only, so each is read by itself:
//
//	g.V().has(T.id, gt('b')).order().by(T.id).limit(500)
//
// Some servers, such as Orrery, compare all ids as texts there, but order them by their kinds. They show it by an id of
// another kind, and are asked in a way that compares the ids themselves, which reads all of them for each page:
//
//	g.V().filter(__.id().is(gt('b'))).order().by(T.id).limit(5000)
var idKinds = []struct {
	least any
	parse func(string) (any, error)
	is    func(any) bool
}{
	{"", func(s string) (any, error) { return s, nil }, func(id any) bool { _, ok := id.(string); return ok }},
	{int64(math.MinInt64), func(s string) (any, error) { return strconv.ParseInt(s, 10, 64) }, func(id any) bool {
		switch id.(type) {
		case int64, int32, int16, int8:
			return true
		}
		return false
	}},
	{uuid.Nil, func(s string) (any, error) { return uuid.Parse(s) }, func(id any) bool {
		_, ok := id.(uuid.UUID)
		return ok
	}},
}

// foreign reports whether elements have ids of another kind than was asked for.
func (at *gremlinAt) foreign(batch []change) bool {
	for _, c := range batch {
		if !idKinds[at.Kind].is(c.element.id) {
			return true
		}
	}
	return false
}

// The number of elements that are read by one traversal.
const (
	gremlinPage = 500
	exactPage   = 5000
)

func (at *gremlinAt) page() int {
	if at.Exact {
		return exactPage
	}
	return gremlinPage
}

// changes implements source.
func (g *gremlin) changes(ctx context.Context, from json.RawMessage, follow bool,
	f func([]change, json.RawMessage) error) error {
	if follow {
		return errors.New("--follow: Gremlin has no change feed; copy the graph's container by NoSQL instead")
	}
	var at gremlinAt
	if from != nil {
		if err := json.Unmarshal(from, &at); err != nil {
			return err
		}
	}
	for {
		for ; at.Kind < len(idKinds); at.Kind++ {
			if err := g.kind(ctx, &at, f); err != nil {
				return err
			}
			at.Last, at.Begun = "", false
		}
		if at.Edges {
			return nil
		}
		at = gremlinAt{Edges: true}
	}
}

// kind reads the elements whose ids are of one kind. Several elements may have one id, in several partitions, so a page
// that is full ends before its last id, which the next page has whole.
func (g *gremlin) kind(ctx context.Context, at *gremlinAt, f func([]change, json.RawMessage) error) error {
	for limit := at.page(); ; {
		batch, err := g.page(ctx, at, limit)
		if err != nil {
			return err
		}
		if at.foreign(batch) && !at.Exact {
			at.Exact, limit = true, exactPage
			continue
		}
		full := len(batch) == limit
		if full {
			last := fmt.Sprint(batch[limit-1].element.id)
			n := limit
			for n > 0 && fmt.Sprint(batch[n-1].element.id) == last {
				n--
			}
			if batch = batch[:n]; n == 0 {
				limit *= 2
				continue
			}
			limit = at.page()
		}
		if err := at.give(batch, f); err != nil {
			return err
		}
		if !full {
			return nil
		}
	}
}

// give passes elements on in parts, each with the position behind it. Elements of one id stay together.
func (at *gremlinAt) give(batch []change, f func([]change, json.RawMessage) error) error {
	for len(batch) > 0 {
		n := min(gremlinPage, len(batch))
		last := fmt.Sprint(batch[n-1].element.id)
		for n < len(batch) && fmt.Sprint(batch[n].element.id) == last {
			n++
		}
		at.Last, at.Begun = last, true
		next, err := json.Marshal(at)
		if err == nil {
			err = f(batch[:n], next)
		}
		if err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// page reads the elements behind a position.
func (g *gremlin) page(ctx context.Context, at *gremlinAt, limit int) ([]change, error) {
	kind := idKinds[at.Kind]
	first, than := kind.least, "gte"
	if at.Begun {
		var err error
		if first, err = kind.parse(at.Last); err != nil {
			return nil, fmt.Errorf("the position is damaged: %w", err)
		}
		than = "gt"
	}
	script := "g.V()"
	if at.Edges {
		script = "g.E()"
	}
	where := ".has(T.id, %s(i))"
	if at.Exact {
		where = ".filter(__.id().is(%s(i)))"
	}
	script += fmt.Sprintf(where+".order().by(T.id).limit(%d)", than, limit)
	if at.Edges && g.key != "" { // where an edge's ends are isn't in the edge
		script += ".project('e', 'o', 'i').by().by(__.outV().values(k)).by(__.inV().values(k))"
	}
	results, err := g.run(ctx, script, map[string]any{"i": first, "k": g.key})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	batch := make([]change, len(results))
	for n, r := range results {
		el := &element{}
		ends, _ := r.(map[any]any)
		if ends != nil {
			r = ends["e"]
		}
		if err := el.read(r); err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		if ends != nil && el.out != nil {
			el.out.key, el.in.key = ends["o"], ends["i"]
		}
		batch[n].element = el
	}
	return batch, nil
}

// check implements target.
func (g *gremlin) check(c *change) error {
	if g.key != "" && c.element.out == nil && c.element.value(g.key) == nil {
		return fmt.Errorf("the vertex has no %s, which is the partition key", g.key)
	}
	return nil
}

// apply implements target.
func (g *gremlin) apply(ctx context.Context, batch []change) ([]refused, error) {
	return each(ctx, batch, func(ctx context.Context, c *change) error {
		write := g.vertex
		if c.element.out != nil {
			write = g.edge
		}
		err := write(ctx, c.element)
		var f *gremlinFault
		if errors.As(err, &f) && f.bad() {
			return &badItem{f.Error()}
		}
		return err
	})
}

// script is a traversal with its values as bindings.
type script struct {
	strings.Builder
	values map[string]any
}

func newScript() *script { return &script{values: map[string]any{}} }

// bind returns the name of a value.
func (s *script) bind(v any) string {
	name := "v" + strconv.Itoa(len(s.values))
	s.values[name] = v
	return name
}

// add appends text, where each ? is a value.
func (s *script) add(text string, values ...any) *script {
	for _, v := range values {
		before, after, _ := strings.Cut(text, "?")
		s.WriteString(before + s.bind(v))
		text = after
	}
	s.WriteString(text)
	return s
}

// vertex writes a vertex: an absent one is created, and one that is there gets these properties instead of its own.
//
//	g.V(v0).fold().coalesce(__.unfold(), __.addV(v1).property(T.id, v2)).sideEffect(__.properties().drop()).
//	  property(list, v3, v4).label()
func (g *gremlin) vertex(ctx context.Context, e *element) error {
	s := newScript().add("g.V(?)", e.id)
	if g.key != "" {
		s.add(".has(?, ?)", g.key, e.value(g.key))
	}
	s.add(".fold().coalesce(__.unfold(), __.addV(?).property(T.id, ?)", e.label, e.id)
	if g.key != "" {
		s.add(".property(?, ?)", g.key, e.value(g.key)).
			add(").sideEffect(__.properties().hasKey(P.neq(?)).drop())", g.key)
	} else {
		s.add(").sideEffect(__.properties().drop())")
	}
	for _, p := range e.props {
		if p.key == g.key {
			continue // it can't be changed
		}
		s.add(".property(list, ?, ?", p.key, p.value)
		for _, m := range p.meta {
			s.add(", ?, ?", m.key, m.value)
		}
		s.add(")")
	}
	labels, err := g.run(ctx, s.add(".label()").String(), s.values)
	switch {
	case err != nil:
		return err
	case len(labels) != 1:
		return &badItem{fmt.Sprintf("%d vertices have the id: give --partition-key", len(labels))}
	case labels[0] != e.label:
		return &badItem{fmt.Sprintf("a vertex %v with the label %v is there, and a label can't be changed", e.id,
			labels[0])}
	}
	return nil
}

// edge writes an edge instead of the one with its id.
//
//	g.E(v0).fold().sideEffect(__.unfold().drop()).V(v1).as('o').V(v2).addE(v3).from('o').property(T.id, v4).id()
func (g *gremlin) edge(ctx context.Context, e *element) error {
	s := newScript().add("g.E(?)", e.id)
	if g.key != "" {
		s.add(".where(__.outV().has(?, ?))", g.key, e.out.key)
	}
	s.add(".fold().sideEffect(__.unfold().drop())")
	for _, at := range []*end{e.out, e.in} {
		s.add(".V(?)", at.id)
		if g.key != "" {
			s.add(".has(?, ?)", g.key, at.key)
		}
		if at == e.out {
			s.add(".as('o')")
		}
	}
	s.add(".addE(?).from('o').property(T.id, ?)", e.label, e.id)
	for _, p := range e.props {
		s.add(".property(?, ?)", p.key, p.value)
	}
	ids, err := g.run(ctx, s.add(".id()").String(), s.values)
	if err == nil && len(ids) != 1 {
		err = &badItem{fmt.Sprintf("the edge has no place: from %v to %v there are %d pairs of vertices", e.out.id,
			e.in.id, len(ids))}
	}
	return err
}

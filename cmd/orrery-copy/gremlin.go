package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

// gremlin is a graph by gremlin-go. It is read by lists of its ids (gremlinread.go). Gremlin has no feed, and creates
// no graph.
type gremlin struct {
	c     *gremlingo.Client
	name  string
	key   string // the property that is the partition key; "" = the ids are enough
	lists string // the files of ids begin so
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
		return &gremlin{c: o.c, name: strings.TrimPrefix(p.db+"/"+p.container, "/"), key: p.property,
			lists: p.lists}, nil
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

// script is a traversal with its values as bindings. Gremlin Server takes 16 of them (maxParameters), and compiles each
// other text anew. So a value that several places have is one binding, and what goes beyond is in the text.
type script struct {
	strings.Builder
	values map[string]any
	texts  map[string]string // names of bindings by their values
}

// fewBindings is the number up to which every value is a binding. Some are left for values that can't be in the text.
const fewBindings = 12

func newScript() *script { return &script{values: map[string]any{}, texts: map[string]string{}} }

// bind returns the name of a value, or its literal.
func (s *script) bind(v any) string {
	text, isText := v.(string)
	if name := s.texts[text]; isText && name != "" {
		return name
	}
	if len(s.values) >= fewBindings {
		if l, ok := literal(v); ok {
			return l
		}
	}
	name := "v" + strconv.Itoa(len(s.values))
	s.values[name] = v
	if isText {
		s.texts[text] = name
	}
	return name
}

// quoted are the characters of a text in single quotes that are written otherwise. Groovy looks for nothing else there.
var quoted = strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// literal returns a value as Groovy and the grammar of Gremlin both have it. It reports whether there is such a form.
func literal(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		text := quoted.Replace(v)
		return "'" + text + "'", utf8.ValidString(v) && strings.IndexFunc(text, unicode.IsControl) < 0
	case bool:
		return strconv.FormatBool(v), true
	case int32:
		return strconv.Itoa(int(v)), v != math.MinInt32
	case int64:
		return strconv.FormatInt(v, 10) + "L", v != math.MinInt64
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64) + "d", math.Abs(v) < 1e15 && (v == 0 || math.Abs(v) > 1e-15)
	}
	return "", false
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

package agg

import (
	"math"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/vector"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// A search for vectors is exact, also where an approximate one is asked for. It is a lead: the filter, an order by
// nearness, and a limit, which the store executes with a heap of so many documents. The vectors are read from the bytes
// of the documents that pass the filter, for which the store uses its indexes.
//
// Example: {path: "v", queryVector: [1, 0], limit: 2, filter: {open: true}} is the lead {match open = true, sort by the
// nearness of v, limit 2}, and a stage that ends at the first document without such a vector, and remembers the scores
// for {$meta: "vectorSearchScore"}.

// VectorIndex is an index on vectors.
type VectorIndex struct {
	Fields []VectorField
	// Filters are the paths that a filter may use; nil: all.
	Filters []string
	// Cosmos is true for an index of createIndexes in the service's form.
	Cosmos bool
}

// VectorField is one path of an index on vectors.
type VectorField struct {
	Path   string
	Dims   int
	Metric vector.Metric
}

// mongotFault is the error of a query that Atlas's search process refuses. The server gives it this code and this
// beginning.
func mongotFault(format string, args ...any) error {
	return merr.New(merr.UnknownError, "PlanExecutor error during aggregation :: caused by :: "+format, args...)
}

// vectorQuery is what a stage asks for.
type vectorQuery struct {
	path   string
	vector *vector.Query
	limit  int64
	filter value.Value
}

// vectorArgs are the arguments of $vectorSearch that have no effect here or are read by name.
var vectorArgs = []string{"index", "path", "queryVector", "query", "numCandidates", "limit", "exact", "filter",
	"explainOptions", "returnStoredSource", "searchNodePreference"}

// leadVectorSearch compiles $vectorSearch.
func leadVectorSearch(c *compiler, arg value.Value) (bool, error) {
	if arg.Kind() != value.Object {
		return false, merr.New(merr.FailedToParse, "$vectorSearch value must be an object. Found: %s",
			expr.TypeName(arg))
	}
	q, index, err := vectorSearchArgs(arg)
	if err != nil {
		return false, err
	}
	var x *VectorIndex
	if c.o.Vectors != nil {
		if x, err = c.o.Vectors(c.o.Coll, index, q.path); err != nil {
			return false, err
		}
	}
	if x == nil && index == "" {
		return false, mongotFault("\"index\" is required")
	}
	if x == nil { // as in Atlas, an index that isn't there finds nothing
		return true, c.nothing()
	}
	f, err := q.field(x)
	if err != nil {
		return false, err
	}
	if f.Metric == vector.Cosine && q.vector.Zero() {
		return false, mongotFault("Cosine similarity cannot be calculated against a zero vector.")
	}
	if q.vector.Kind() == vector.Bits && f.Metric != vector.Squared {
		return false, mongotFault("Binary vectors can only be used with fields indexed with Euclidean similarity but "+
			"indexed similarity is %s", metricNames[f.Metric])
	}
	score := atlasScore(f.Metric, q.vector)
	if x.Cosmos {
		score = cosmosScore(f.Metric)
	}
	return true, c.nearest(q, x, f.Metric, score)
}

// metricNames are the names of mongot's enumeration.
var metricNames = map[vector.Metric]string{vector.Cosine: "COSINE", vector.Dot: "DOT_PRODUCT",
	vector.Squared: "EUCLIDEAN"}

// notFirst is the error of a search that isn't the first stage, which is compiled as a lead.
func notFirst(name string) func(*compiler, value.Value) (stage, error) {
	return func(*compiler, value.Value) (stage, error) {
		return nil, merr.New(40602, "%s is only valid as the first stage in a pipeline", name)
	}
}

// vectorSearchArgs reads the arguments of $vectorSearch. The checks come in the order in which the server and then the
// search process make them.
func vectorSearchArgs(arg value.Value) (q vectorQuery, index string, err error) {
	limit := arg.Get("limit")
	if limit.IsDefined() {
		if !limit.IsNumber() {
			return q, "", merr.New(8575100, "Expected limit field to be a number in $vectorSearch")
		}
		if q.limit, _ = num.ToInt64(limit, true); q.limit <= 0 {
			return q, "", merr.New(7912700, "Expected limit to be positive")
		}
	}
	for it := arg.Iter(); it.Next(); {
		if !slices.Contains(vectorArgs, string(it.Key())) {
			return q, "", mongotFault("unrecognized field \"%s\"", it.Key())
		}
	}
	if q.filter = args.Given(arg, "filter"); q.filter.IsDefined() && q.filter.Kind() != value.Object {
		return q, "", mongotFault("\"filter\" must be a document")
	}
	if index, err = mongotText(arg, "index", false); err != nil {
		return q, "", err
	}
	if q.path, err = mongotText(arg, "path", true); err != nil {
		return q, "", err
	}
	if err = q.candidates(arg, limit); err != nil {
		return q, "", err
	}
	if args.Given(arg, "query").IsDefined() {
		return q, "", merr.NotSupported("the option query of $vectorSearch")
	}
	q.vector, err = queryVector(args.Given(arg, "queryVector"))
	return q, index, err
}

// mongotText returns an argument that is a string.
func mongotText(arg value.Value, name string, required bool) (string, error) {
	v := args.Given(arg, name)
	switch {
	case !v.IsDefined() && required:
		return "", mongotFault("\"%s\" is required", name)
	case v.IsDefined() && v.Kind() != value.String:
		return "", mongotFault("\"%s\" must be a string", name)
	case v.IsDefined() && len(v.Bytes()) == 0:
		return "", mongotFault("\"%s\" cannot be empty", name)
	}
	return v.Str(), nil
}

// maxCandidates is the largest numCandidates.
const maxCandidates = 10_000

// candidates checks exact, numCandidates and limit.
func (q *vectorQuery) candidates(arg, limit value.Value) error {
	exact, n := args.Given(arg, "exact"), args.Given(arg, "numCandidates")
	if exact.IsDefined() && exact.Kind() != value.Bool {
		return mongotFault("\"exact\" must be a boolean")
	}
	many, whole := num.ToInt64(n, false)
	switch {
	case n.IsDefined() && (!n.IsNumber() || !whole):
		return mongotFault("\"numCandidates\" must be an integer")
	case n.IsDefined() && (many < 1 || many > maxCandidates):
		return mongotFault("\"numCandidates\" must be within bounds [1..%d]", maxCandidates)
	}
	_, whole = num.ToInt64(limit, false)
	switch {
	case exact.Bool() && n.IsDefined():
		return mongotFault("\"numCandidates\" must be omitted when \"exact\" is set to true")
	case !exact.Bool() && !n.IsDefined():
		return mongotFault("numCandidates is required for approximate vector search")
	case !limit.IsDefined():
		return mongotFault("\"limit\" is required")
	case !whole || q.limit > math.MaxInt32:
		return mongotFault("\"limit\" must be an integer")
	case !exact.Bool() && q.limit > many:
		return mongotFault("limit should be less than or equal to numCandidates")
	}
	return nil
}

// queryVector reads the vector of a query.
func queryVector(v value.Value) (*vector.Query, error) {
	switch v.Kind() {
	case value.Undefined:
		return nil, mongotFault("Exactly one and only one of query and queryVector can be present")
	case value.Array:
		for it := v.Iter(); it.Next(); {
			if k := it.Value().Kind(); k != value.Double && k != value.Int32 && k != value.Int64 {
				return nil, mongotFault("Unsupported BsonValue type: %s", strings.ToUpper(expr.TypeName(it.Value())))
			}
		}
	}
	q, ok := vector.Read(v)
	if !ok {
		return nil, mongotFault("\"queryVector\" Unexpected type found when parsing vector")
	}
	if at, ok := q.Finite(); !ok {
		return nil, mongotFault("\"[%d]\" non-finite value", at)
	}
	return q, nil
}

// field returns the field of the index that the query is for.
func (q *vectorQuery) field(x *VectorIndex) (f VectorField, err error) {
	at := slices.IndexFunc(x.Fields, func(f VectorField) bool { return f.Path == q.path })
	if at < 0 {
		return f, mongotFault("%s is not indexed as vector", q.path)
	}
	if f = x.Fields[at]; f.Dims != q.vector.Dims() {
		return f, mongotFault("vector field is indexed with %d dimensions but queried with %d", f.Dims,
			q.vector.Dims())
	}
	return f, nil
}

// atlasScore returns the function from a metric to a score between 0 and 1, which is that of Lucene: a number of 32
// bits.
func atlasScore(m vector.Metric, q *vector.Query) func(f float64) float64 {
	dims := float64(q.Dims())
	of := func(f float64) float64 { return max(0, (1+f)/2) }
	switch {
	case m == vector.Squared && q.Kind() == vector.Bits:
		of = func(f float64) float64 { return (dims - f) / dims }
	case m == vector.Squared:
		of = func(f float64) float64 { return 1 / (1 + f) }
	case m == vector.Dot && q.Kind() == vector.Bytes:
		of = func(f float64) float64 { return 0.5 + f/(dims*(1<<15)) }
	}
	return func(f float64) float64 { return float64(float32(of(f))) }
}

// nothing makes the lead find nothing.
func (c *compiler) nothing() (err error) {
	at, b := bson.Begin(nil)
	ia, b := bson.BeginObject(b, "_id")
	la, b := bson.BeginArray(b, "$in")
	b = bson.End(bson.End(b, la), ia)
	c.out.Lead.Filter, err = filter.Compile(value.ObjectOf(bson.End(b, at)), filter.Options{})
	return err
}

// nearest makes the lead find the documents with the nearest vectors.
func (c *compiler) nearest(q vectorQuery, x *VectorIndex, m vector.Metric, score func(float64) float64) error {
	if x.Filters != nil {
		if err := checkVectorFilter(q.filter, x.Filters, 0); err != nil {
			return err
		}
	}
	path, err := expr.FieldPath(q.path)
	if err != nil {
		return err
	}
	c.out.Lead.Filter, err = filter.Compile(q.filter, filter.Options{Scope: c.o.Scope, Run: c.o.Run, NoNear: true,
		NoText: true})
	if err != nil {
		return err
	}
	sameKind := !x.Cosmos
	distance := func(d value.Value) (float64, bool) {
		for _, name := range path {
			d = d.Get(name)
		}
		if sameKind && vector.KindOf(d) != q.vector.Kind() {
			return 0, false
		}
		f, ok := q.vector.Compare(d, m)
		return f, ok && !math.IsNaN(f-f)
	}
	far := func(d value.Value) float64 {
		f, ok := distance(d)
		switch {
		case !ok:
			return math.Inf(1)
		case m == vector.Squared:
			return f
		}
		return -f
	}
	c.out.Lead.Sort = order.Order{{Path: []string{"\x00vector " + q.path}, Score: far}}
	c.out.Lead.Limit, c.out.Lead.Nearest = q.limit, &VectorField{Path: q.path, Dims: q.vector.Dims(), Metric: m}
	c.out.stages = append(c.out.stages, func(x *Exec, src Iter) (Iter, error) {
		s := &scores{src: src, run: x.Env.Run, of: func(d value.Value) (float64, bool) {
			f, ok := distance(d)
			return score(f), ok
		}, known: map[string]float64{}}
		x.Env.Search = s.score
		return s, nil
	})
	return nil
}

// scores ends at the first document without a vector, behind which there are only others of that kind. It remembers the
// score of each document that it gave, because later stages may drop the vector before they ask for the score.
type scores struct {
	src   Iter
	run   *expr.Run
	of    func(d value.Value) (float64, bool)
	known map[string]float64 // by `_id`
	last  float64
	held  int // bytes of known that aren't charged yet
	key   []byte
}

// Next implements Iter.
func (s *scores) Next() (value.Value, bool, error) {
	d, ok, err := s.src.Next()
	if !ok || err != nil {
		return d, false, err
	}
	if s.last, ok = s.of(d); !ok {
		return value.Undef(), false, nil
	}
	key := s.idOf(d)
	s.known[string(key)] = s.last
	if s.held += len(key) + scoreSize; s.held > scoresPerCharge {
		err = s.run.Hold(s.held)
		s.held = 0
	}
	return d, err == nil, err
}

// scoreSize is about what an entry of scores takes beside its key. The memory is charged in pieces.
const (
	scoreSize       = 64
	scoresPerCharge = 32 << 10
)

// idOf returns the bytes of a document's `_id`, empty if it has none. They are valid until the next call.
func (s *scores) idOf(d value.Value) []byte {
	id := d.Get("_id")
	if !id.IsDefined() {
		return nil
	}
	s.key = value.AppendElement(s.key[:0], "", id)
	return s.key
}

// score returns the score of a document: that of the one found with its `_id`, or if it has none any more, of the one
// that was found last.
func (s *scores) score(d value.Value) (float64, bool) {
	key := s.idOf(d)
	if key == nil {
		return s.last, true
	}
	f, ok := s.known[string(key)]
	return f, ok
}

// Close implements Iter.
func (s *scores) Close() { s.src.Close() }

// listSearchIndexes compiles $listSearchIndexes.
func listSearchIndexes(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "The $listSearchIndexes stage specification must be an object. "+
			"Found: %s", expr.TypeName(arg))
	}
	for it := arg.Iter(); it.Next(); {
		if name := string(it.Key()); name != "name" && name != "id" {
			return nil, merr.New(merr.UnknownField, "BSON field '$listSearchIndexes.%s' is an unknown field.", name)
		}
		if it.Value().Kind() != value.String {
			return nil, wrongType("$listSearchIndexes."+string(it.Key()), it.Value(), "string")
		}
	}
	return c.from(func(h Host) ([]value.Value, error) { return h.SearchIndexes(arg) })
}

package sqlapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// setMetrics adds the query metrics header. Times that aren't measured separately (phases that this planner doesn't
// have, functions in expressions) are 0. VMExecutionTime is the time of the whole execution: clients subtract look-up,
// loading and writing from it.
func (c *call) setMetrics(p *sql.Page, size int, compile, run time.Duration) {
	c.BeginLine(hMetrics)
	ms := func(name string, v time.Duration) {
		c.Lines = append(c.Lines, name...)
		c.Lines = strconv.AppendFloat(c.Lines, v.Seconds()*1000, 'f', 2, 64)
		c.Lines = append(c.Lines, ';')
	}
	num := func(name string, v int) {
		c.Lines = append(c.Lines, name...)
		c.Lines = strconv.AppendInt(c.Lines, int64(v), 10)
		c.Lines = append(c.Lines, ';')
	}
	ms("totalExecutionTimeInMs=", compile+run)
	ms("queryCompileTimeInMs=", compile)
	ms("queryLogicalPlanBuildTimeInMs=", 0)
	ms("queryPhysicalPlanBuildTimeInMs=", 0)
	ms("queryOptimizationTimeInMs=", 0)
	ms("VMExecutionTimeInMs=", run)
	ms("indexLookupTimeInMs=", p.Metrics.Lookup)
	ms("documentLoadTimeInMs=", p.Metrics.Load)
	ms("systemFunctionExecuteTimeInMs=", 0)
	ms("userFunctionExecuteTimeInMs=", 0)
	ms("writeOutputTimeInMs=", p.Metrics.Write)
	num("retrievedDocumentCount=", p.Metrics.ItemsRead)
	num("retrievedDocumentSize=", p.Metrics.BytesRead)
	num("outputDocumentCount=", p.Count)
	num("outputDocumentSize=", size)
	// The share of the read items that passed the filter. It is 1 when the index found exactly the matching items, and
	// when rows were made of the index alone.
	ratio := 0.0
	switch {
	case p.Metrics.ItemsRead == 0 && p.Count > 0:
		ratio = 1
	case p.Metrics.ItemsRead > 0:
		ratio = min(1, float64(p.Metrics.Rows)/float64(p.Metrics.ItemsRead))
	}
	c.Lines = append(c.Lines, "indexUtilizationRatio="...)
	c.Lines = strconv.AppendFloat(c.Lines, ratio, 'f', 2, 64)
	c.EndLine()
}

// setExplain adds the headers that explain how a page was produced: the index metrics in the requested form, and
// Orrery's own explanation.
func (c *call) setExplain(p *sql.Page) error {
	use := p.Metrics.Indexes
	if use == nil {
		use = &sql.IndexUse{Access: "no items", Why: "the answer needs none"}
	}
	switch {
	case isTrue(c.In, hIndexMetrics2):
		c.BeginLine(hIndexUse)
		c.Lines = appendPathName(c.Lines, string(appendIndexUse(nil, use, true)))
		c.EndLine()
	case isTrue(c.In, hIndexMetrics):
		c.Set(hIndexUse, base64.StdEncoding.EncodeToString(appendIndexUse(nil, use, false)))
	}
	if !isTrue(c.In, hExplain) {
		return nil
	}
	text, err := marshal(explain(p, use))
	if err != nil {
		return err
	}
	c.BeginLine(rExplain)
	c.Lines = cjson.AppendASCII(c.Lines, text)
	c.EndLine()
	return nil
}

// planText returns a query's text and the plan of a page, for the log of slow requests.
func planText(text string, p *sql.Page) string {
	m := &p.Metrics
	found := "no items"
	if m.Plan != nil {
		found = m.Plan.Explain()
	}
	return fmt.Sprintf("%s [%s; %d index entries, %d items read, %d rows]", text, found, m.IndexReads,
		m.ItemsRead, p.Count)
}

// Explanation is the value of the header x-orrery-explain, which `orrery query --explain` prints: how one page was
// produced and what it cost.
type Explanation struct {
	Plan    string   `json:"plan"`   // the access path in one line
	Access  string   `json:"access"` // its kind
	Why     string   `json:"why"`    // it was chosen
	Indexes []string `json:"indexes"`
	Sorted  bool     `json:"sorted"`
	Slots   int      `json:"slots"`   // visited
	Entries int      `json:"entries"` // index entries read
	Items   int      `json:"items"`   // items read
	Bytes   int      `json:"bytes"`   // of the items read
	Matched int      `json:"matched"` // items that passed the filter
	Rows    int      `json:"rows"`
	RU      RUParts  `json:"ru"`
	Advice  []string `json:"advice"` // changes of the indexing policy that would make the query cheaper
	// Tree is the plan with the counts of its steps and the rejected alternatives; nil when no item was read.
	Tree *plan.Explanation `json:"tree,omitempty"`
}

// RUParts is a request charge, split by cause.
type RUParts struct {
	Total   float64 `json:"total"`
	Base    float64 `json:"base"` // fixed charge of a request
	Entries float64 `json:"entries"`
	Items   float64 `json:"items"`
	Bytes   float64 `json:"bytes"`
}

func explain(p *sql.Page, use *sql.IndexUse) *Explanation {
	m := &p.Metrics
	e := &Explanation{
		Plan: m.Explain, Access: use.Access, Why: use.Why, Indexes: []string{}, Sorted: use.Sorted, Slots: use.Slots,
		Entries: m.IndexReads, Items: m.ItemsRead, Bytes: m.BytesRead, Matched: m.Rows, Rows: p.Count,
		Advice: use.Advice, Tree: m.Steps,
	}
	if e.Plan == "" {
		e.Plan = use.Access + ": " + use.Why
	}
	for _, s := range use.Used {
		e.Indexes = append(e.Indexes, s.Spec)
	}
	for _, c := range use.UsedComposite {
		text, _ := json.Marshal(c.Specs) // strings always marshal
		e.Indexes = append(e.Indexes, string(text))
	}
	if e.Advice == nil {
		e.Advice = []string{}
	}
	e.RU = ruParts(p.Charge, m)
	return e
}

// ruParts splits a charge by the rules of core/ru. The base is the remainder, so that the parts add up.
func ruParts(total float64, m *sql.Metrics) RUParts {
	round := func(f float64) float64 { return math.Round(f*10000) / 10000 }
	entries, items, bytes := ru.QueryParts(m.IndexReads-m.Counted, m.ItemsRead, m.BytesRead)
	r := RUParts{Total: round(total), Entries: round(entries), Items: round(items), Bytes: round(bytes)}
	r.Base = max(0, round(r.Total-r.Entries-r.Items-r.Bytes))
	return r
}

// appendIndexUse appends the index metrics as JSON. The first version has conditions and fidelity; .NET and Java decode
// it from base64. The second version only has the index specs, under Utilized and Potential.
func appendIndexUse(dst []byte, u *sql.IndexUse, second bool) []byte {
	each := func(n int, one func(i int)) {
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '{')
			one(i)
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	single := func(list []sql.SingleIndex) {
		each(len(list), func(i int) {
			if !second {
				dst = append(dst, `"FilterExpression":`...)
				dst = cjson.AppendString(dst, list[i].Filter)
				dst = append(dst, ',')
			}
			dst = append(dst, `"IndexSpec":`...)
			dst = cjson.AppendString(dst, list[i].Spec)
			if !second {
				dst = append(dst, `,"FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"`...)
			}
		})
	}
	composite := func(list []sql.CompositeIndex, precise string) {
		each(len(list), func(i int) {
			dst = append(dst, `"IndexSpecs":[`...)
			for j, s := range list[i].Specs {
				if j > 0 {
					dst = append(dst, ',')
				}
				dst = cjson.AppendString(dst, s)
			}
			dst = append(dst, ']')
			if !second {
				dst = append(dst, `,"IndexPreciseSet":`+precise+`,"IndexImpactScore":"High"`...)
			}
		})
	}

	if second {
		dst = append(dst, `{"Utilized":{"SingleIndexes":`...)
		single(u.Utilized)
		dst = append(dst, `,"CompositeIndexes":`...)
		composite(u.UtilizedComposite, "true")
		dst = append(dst, `},"Potential":{"SingleIndexes":`...)
		single(u.Potential)
		dst = append(dst, `,"CompositeIndexes":`...)
		composite(u.PotentialComposite, "false")
		return append(dst, `}}`...)
	}
	dst = append(dst, `{"UtilizedSingleIndexes":`...)
	single(u.Utilized)
	dst = append(dst, `,"PotentialSingleIndexes":`...)
	single(u.Potential)
	dst = append(dst, `,"UtilizedCompositeIndexes":`...)
	composite(u.UtilizedComposite, "true")
	dst = append(dst, `,"PotentialCompositeIndexes":`...)
	composite(u.PotentialComposite, "false")
	return append(dst, '}')
}

package sqlapi

import (
	"encoding/base64"
	"strconv"

	"github.com/orrerydb/orrery/sqlapi/sql"
)

// setMetrics adds the query metrics header. What is not measured apart is 0.
func (c *call) setMetrics(p *sql.Page, size int, compileMS, runMS float64) {
	n := c.begin()
	ms := func(name string, v float64) {
		c.hdr = append(c.hdr, name...)
		c.hdr = strconv.AppendFloat(c.hdr, v, 'f', 2, 64)
		c.hdr = append(c.hdr, ';')
	}
	num := func(name string, v int) {
		c.hdr = append(c.hdr, name...)
		c.hdr = strconv.AppendInt(c.hdr, int64(v), 10)
		c.hdr = append(c.hdr, ';')
	}
	ms("totalExecutionTimeInMs=", compileMS+runMS)
	ms("queryCompileTimeInMs=", compileMS)
	ms("queryLogicalPlanBuildTimeInMs=", 0)
	ms("queryPhysicalPlanBuildTimeInMs=", 0)
	ms("queryOptimizationTimeInMs=", 0)
	ms("VMExecutionTimeInMs=", runMS)
	ms("indexLookupTimeInMs=", 0)
	ms("documentLoadTimeInMs=", 0)
	ms("systemFunctionExecuteTimeInMs=", 0)
	ms("userFunctionExecuteTimeInMs=", 0)
	ms("writeOutputTimeInMs=", 0)
	num("retrievedDocumentCount=", p.Metrics.ItemsRead)
	num("retrievedDocumentSize=", p.Metrics.BytesRead)
	num("outputDocumentCount=", p.Count)
	num("outputDocumentSize=", size)
	// The share of the items that were read which the filter let pass: 1 when the index left no work.
	ratio := 0.0
	if p.Metrics.ItemsRead > 0 {
		ratio = min(1, float64(p.Metrics.Rows)/float64(p.Metrics.ItemsRead))
	}
	c.hdr = append(c.hdr, "indexUtilizationRatio="...)
	c.hdr = strconv.AppendFloat(c.hdr, ratio, 'f', 2, 64)
	c.end(hMetrics, n)
}

// setExplain adds the headers that say how a page was made: index metrics in the form that was asked for, and our own
// explanation.
func (c *call) setExplain(p *sql.Page) {
	use := p.Metrics.Indexes
	if use == nil {
		use = &sql.IndexUse{}
	}
	switch {
	case isTrue(c.in, hIndexMetrics2):
		n := c.begin()
		c.hdr = appendPathName(c.hdr, string(appendIndexUse(nil, use, true)))
		c.end(hIndexUse, n)
	case isTrue(c.in, hIndexMetrics):
		c.set(hIndexUse, base64.StdEncoding.EncodeToString(appendIndexUse(nil, use, false)))
	}
	if !isTrue(c.in, hExplain) {
		return
	}
	plan := p.Metrics.Explain
	if plan == "" {
		plan = "no items: the answer needs none"
	}
	n := c.begin()
	c.hdr = append(c.hdr, "plan="...)
	c.hdr = appendPathName(c.hdr, plan)
	for _, x := range []struct {
		name string
		n    int
	}{{"; entries=", p.Metrics.IndexReads}, {"; items=", p.Metrics.ItemsRead}, {"; bytes=", p.Metrics.BytesRead}, {"; matched=", p.Metrics.Rows}, {"; rows=", p.Count}} {
		c.hdr = append(c.hdr, x.name...)
		c.hdr = strconv.AppendInt(c.hdr, int64(x.n), 10)
	}
	c.hdr = append(c.hdr, "; ru="...)
	c.hdr = strconv.AppendFloat(c.hdr, max(p.Charge, minCharge), 'f', 2, 64)
	c.end(hExplain, n)
}

// appendIndexUse appends the index metrics as JSON: the second version has the specs alone, under Utilized and Potential.
func appendIndexUse(dst []byte, u *sql.IndexUse, second bool) []byte {
	list := func(specs []string) {
		dst = append(dst, '[')
		for i, s := range specs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '{')
			if !second {
				dst = append(dst, `"FilterExpression":"",`...)
			}
			dst = append(dst, `"IndexSpec":`...)
			dst = appendJSONString(dst, s)
			if !second {
				dst = append(dst, `,"FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"`...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	if second {
		dst = append(dst, `{"Utilized":{"SingleIndexes":`...)
		list(u.Used)
		dst = append(dst, `,"CompositeIndexes":[]},"Potential":{"SingleIndexes":`...)
		list(u.Potential)
		return append(dst, `,"CompositeIndexes":[]}}`...)
	}
	dst = append(dst, `{"UtilizedSingleIndexes":`...)
	list(u.Used)
	dst = append(dst, `,"PotentialSingleIndexes":`...)
	list(u.Potential)
	return append(dst, `,"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}`...)
}

package sqlapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSpatialPolicies: the spatial policies that a definition may have, and how replies show them.
func TestSpatialPolicies(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	def := func(config, spatial string) string {
		return `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}` + config +
			`,"indexingPolicy":{"includedPaths":[{"path":"/*"}],"spatialIndexes":[` + spatial + `]}}`
	}
	const plane, box = `,"geospatialConfig":{"type":"Geometry"}`,
		`,"boundingBox":{"xmin":-10,"ymin":-20,"xmax":10,"ymax":20.5}`
	for _, bad := range []string{
		def("", `{"path":"/loc/*"}`), def("", `{"path":"/loc/*","types":[]}`),
		def("", `{"path":"/loc/*","types":["Circle"]}`), def("", `{"path":"/loc/*","types":"Point"}`),
		def("", `{"path":"loc","types":["Point"]}`), def("", `{"types":["Point"]}`), def("", `7`),
		def("", `{"path":"/loc/*","types":["Point"]`+box+`}`), def(plane, `{"path":"/loc/*","types":["Point"]}`),
		def(plane, `{"path":"/loc/*","types":["Point"]`+box+`},{"path":"/b/?","types":["Point"]}`),
		def(plane, `{"path":"/loc/*","types":["Point"],"boundingBox":{"xmin":0,"ymin":0,"xmax":10}}`),
		def(plane, `{"path":"/loc/*","types":["Point"],"boundingBox":{"xmin":0,"ymin":0,"xmax":0,"ymax":1}}`),
		def(plane, `{"path":"/loc/*","types":["Point"],"boundingBox":{"xmin":"0","ymin":0,"xmax":1,"ymax":1}}`),
		def(plane, `{"path":"/loc/*","types":["Point"],"boundingBox":{"xmin":0,"ymin":0,"xmax":1e300,"ymax":1}}`),
	} {
		a.do("POST", "/dbs/db/colls", bad).is(400)
	}
	const all = `"types":["Point","LineString","Polygon","MultiPolygon"]`
	a.do("POST", "/dbs/db/colls", def("", `{"path":"/loc/*","types":["point"]}`)).is(201).has(
		`"spatialIndexes":[{"path":"/loc/*",` + all + `}]`).has(`"geospatialConfig":{"type":"Geography"}`)
	a.do("POST", "/dbs/db/colls/c/docs", `{"id":"1","pk":"a","loc":{"type":"Point","coordinates":[3,4]}}`,
		key("a")).is(201)
	a.do("POST", "/dbs/db/colls/c/docs", `{"id":"2","pk":"a","loc":{"type":"Point","coordinates":[300,400]}}`,
		key("a")).is(201)
	ask := func(text string) *reply {
		t.Helper()
		return a.do("POST", "/dbs/db/colls/c/docs", `{"query":"`+text+`","parameters":[{"name":"@p",`+
			`"value":{"type":"Point","coordinates":[0,0]}}]}`,
			"x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True").is(200)
	}
	ask(`SELECT VALUE ROUND(ST_DISTANCE(c.loc, @p)) FROM c`).has(`[554059]`)
	// Changing the configuration builds a new index with the other cells. The functions calculate in the plane at once.
	a.do("PUT", "/dbs/db/colls/c", def(plane, `{"path":"/loc/*","types":["Point"]}`)).is(400)
	a.do("PUT", "/dbs/db/colls/c", def(plane, `{"path":"/loc/*","types":["Polygon"]`+box+`}`)).is(200).has(
		`"spatialIndexes":[{"path":"/loc/*",` + all + box + `}]`)
	ask(`SELECT VALUE ST_DISTANCE(c.loc, @p) FROM c ORDER BY c.id`).has(`[5,500]`)
	ask(`SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, @p) <= 5`).has(`["1"]`)
	ask(`SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, @p) BETWEEN 400 AND 500`).has(`["2"]`)
	ask(`SELECT VALUE ST_AREA({'type':'Polygon','coordinates':[[[0,0],[100,0],[100,100],[0,0]]]})`).has(`[5000]`)
	a.do("PUT", "/dbs/db/colls/c", def("", `{"path":"/loc/*","types":["Point"]}`)).is(200)
	ask(`SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, @p) < 600000`).has(`["1"]`)
}

// TestSpatialExplain: a spatial condition uses the spatial index, or the advice is to create one.
func TestSpatialExplain(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},`+
		`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"spatialIndexes":[{"path":"/loc/*","types":["Point"]}]}}`).
		is(201)
	for i := range 400 {
		d := fmt.Sprintf(`{"id":"%d","pk":"p%d","loc":{"type":"Point","coordinates":[%v,%v]},"home":{"type":"Point",`+
			`"coordinates":[1,1]}}`, i, i, float64(i%20)*10-100, float64(i/20)*8-80)
		a.do("POST", "/dbs/db/colls/c/docs", d, key(fmt.Sprintf("p%d", i))).is(201)
	}
	run := func(where string) Explanation {
		t.Helper()
		r := a.do("POST", "/dbs/db/colls/c/docs", `{"query":"SELECT VALUE c.id FROM c WHERE `+where+`"}`,
			"x-ms-documentdb-isquery: True",
			"x-ms-documentdb-query-enablecrosspartition: True", "x-orrery-explain: true").is(200)
		return explained(t, r)
	}
	const point, area = `{'type':'Point','coordinates':[10,8]}`,
		`{'type':'Polygon','coordinates':[[[9,7],[21,7],[21,9],[9,9],[9,7]]]}`
	for where, rows := range map[string]int{
		`ST_DISTANCE(c.loc, ` + point + `) < 1000`:                                                       1,
		`1200000 > ST_DISTANCE(` + point + `, c.loc)`:                                                    5,
		`ST_WITHIN(c.loc, ` + area + `)`:                                                                 2,
		`ST_INTERSECTS(` + area + `, c.loc) AND c.pk != 'x'`:                                             2,
		`ST_DISTANCE(c.loc, ` + point + `) < 1000 OR c.id = '7'`:                                         2,
		`ST_DISTANCE(c.loc, {'type':'Point','coordinates':[500,8]}) < 1000`:                              0,
		`ST_DISTANCE(c.loc, ` + point + `) < 1000 AND ST_DISTANCE(c.home, ` + point + `) < 1e9`:          1,
		`(ST_WITHIN(c.loc, ` + area + `) OR ST_DISTANCE(c.loc, ` + point + `) = 0) AND c.id NOT IN ('')`: 2,
	} {
		e := run(where)
		used := strings.Contains(e.Plan, "index on /loc (spatial)") || strings.Contains(e.Plan, "union") || rows == 0
		if e.Rows != rows || !used || e.Items > 30 {
			t.Errorf("%s: %+v", where, e)
		}
	}
	if e := run(`ST_WITHIN(c.home, ` + area + `)`); e.Access != "scan" ||
		!slices.Contains(e.Advice, "add /home/* to spatialIndexes") {
		t.Errorf("%+v", e)
	}
}

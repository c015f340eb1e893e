package sqlapi

import (
	"strings"
	"testing"
)

// What the service answers to requests of its clients' tests, where the text or a detail of the reply matters to them.
func TestServiceContract(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	coll := func(members string) *reply {
		return a.do("POST", "/dbs/db/colls", `{"id":"c",`+members+`}`)
	}
	const pk = `"partitionKey":{"paths":["/pk"],"version":2}`
	coll(`"partitionKey":{"paths":["/a","/b","/c","/d"],"kind":"MultiHash"}`).is(400).
		has("Too many partition key paths")
	coll(`"partitionKey":{"paths":["/a","/b"],"kind":"Hash"}`).is(400).has("Too many partition key paths")
	coll(pk + `,"computedProperties":{}`).is(400).has("One of the specified inputs is invalid")

	// Names in a path may be quoted in both ways.
	coll(`"partitionKey":{"paths":["/'level\" 1*()'/'le/vel2'"]}`).is(201)
	a.do("POST", docs, `{"id":"1","level\" 1*()":{"le/vel2":"a"}}`, key("a")).is(201)
	a.do("DELETE", "/dbs/db/colls/c", "").is(204)

	// Kinds of indexes aren't shown, but those of places mean something.
	r := coll(pk + `,"indexingPolicy":{"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","dataType":"String"},` +
		`{"kind":"Range","dataType":"Number","precision":-1}]},{"path":"/g/?","indexes":[{"kind":"Spatial",` +
		`"dataType":"Point"}]}]}`).is(201)
	r.has(`"includedPaths":[{"path":"/*"},{"path":"/g/?","indexes":[{"kind":"Spatial","dataType":"Point"}]}]`)

	a.do("POST", docs, `{"id":"s","pk":"s"}`, key("s")).is(201)
	a.do("GET", "/dbs/db/colls/c", "", "x-ms-documentdb-populatepartitionstatistics: True").is(200).
		has(`,"statistics":[{"id":"0","sizeInKB":1,"documentCount":1,"partitionKeys":[]}]}`)
	a.do("POST", "/dbs/db/colls", `{"id":"v1","partitionKey":{"paths":["/pk"],"version":1}}`).is(201).
		has(`"kind":"Hash","version":1}`)
	a.do("POST", "/dbs/db/colls", `{"id":"v0","partitionKey":{"paths":["/pk"]}}`).is(201).has(`"kind":"Hash"}`)
	a.do("POST", "/dbs/db/colls", `{"id":"x","partitionKey":{"paths":["/pk"]}}`,
		`x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":-200}`).is(400).
		has("Requested throughput -200 is less than required minimum throughput 1000")

	batch := func(body string, headers ...string) *reply {
		return a.do("POST", docs, body, append(headers, "x-ms-cosmos-is-batch-request: True",
			"x-ms-cosmos-batch-atomic: True")...)
	}
	batch(`[]`, key("a")).is(400).has("Batch request has no operations.")
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a")).is(201)
	a.do("POST", docs, `{"id":"","pk":"a"}`, key("a")).is(400).has("string less than '1024' characters.")
	a.do("DELETE", "/dbs/db/colls/c", "").is(204)

	// An item of a hierarchical key needs the whole key, also where its resource id names it.
	coll(`"partitionKey":{"paths":["/pk","/b"],"kind":"MultiHash"}`).is(201)
	const whole, part = `x-ms-documentdb-partitionkey: ["a","b"]`, `x-ms-documentdb-partitionkey: ["a"]`
	self := "/" + a.do("POST", docs, `{"id":"1","pk":"a","b":"b"}`, whole).is(201).json()["_self"].(string)
	a.do("GET", self, "", whole).is(200)
	a.do("GET", self, "", part).is(400).sub("1001")
	batch(`[{"operationType":"Read","id":"1"}]`, part).is(400).sub("1001").has("Partition key provided either doesn't")
}

func TestVectorPolicyErrors(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	const embedding = `{"path":"/v","dataType":"float32","dimensions":256,"distanceFunction":"euclidean"}`
	def := func(embedding, index string) string {
		return `{"id":"c","partitionKey":{"paths":["/id"],"version":2},"vectorEmbeddingPolicy":{"vectorEmbeddings":[` +
			embedding + `]},"indexingPolicy":{"vectorIndexes":[` + index + `]}}`
	}
	for _, x := range []struct{ embedding, index, want string }{
		{`{"path":"/v","dataType":"float33","dimensions":2}`, ``,
			"The Vector Embedding Policy has an invalid DataType"},
		{`{"path":"/v","dimensions":8000}`, ``, "has Dimensions:8000 which is more than the maximum supported value"},
		{`{"path":"/v","dimensions":-1}`, ``, "The Vector Embedding Policy has Dimensions:-1"},
		{`{"path":"/v","distanceFunction":"x"}`, ``, "The Vector Embedding Policy has an invalid DistanceFunction:x"},
		{``, `{"path":"/v","type":"flat"}`, "The Vector Indexing Policy's path::/v not matching in Embedding's path."},
		{embedding, `{"path":"/v","type":"notFlat"}`, "Index Type::notFlat is invalid"},
		{embedding, `{"path":"/v","type":"quantizedFlat","quantizationByteSize":0}`, "The Vector Indexing Policy " +
			"parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256."},
		{embedding, `{"path":"/v","type":"diskANN","indexingSearchListSize":5}`,
			"IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500."},
		{embedding, `{"path":"/v","type":"diskANN","vectorIndexShardKey":["x"]}`,
			"The Vector Indexing Policy has an invalid Shard Path: x."},
		{embedding, `{"path":"/v","type":"diskANN","vectorIndexShardKey":["/x","/y"]}`,
			"The number of shard paths defined in the Vector Indexing Policy: 2 exceeds the maximum: 1."},
		{embedding, `{"path":"/v","type":"diskANN","vectorIndexShardKey":"/x"}`,
			"One of the specified inputs is invalid"},
	} {
		a.do("POST", "/dbs/db/colls", def(x.embedding, x.index)).is(400).has(x.want)
	}
	const flat = `{"path":"/v","type":"flat"}`
	a.do("POST", "/dbs/db/colls", def(embedding, flat)).is(201)
	a.do("PUT", "/dbs/db/colls/c", def(embedding, `{"path":"/v","type":"quantizedFlat"}`)).is(400).
		has("Paths in existing vector indexing policy cannot be modified in Collection Replace")
	a.do("PUT", "/dbs/db/colls/c", def(strings.Replace(embedding, "256", "384", 1), flat)).is(400).
		has("Paths in existing embedding policy cannot be modified in Collection Replace")
	a.do("PUT", "/dbs/db/colls/c", def(embedding, flat)).is(200)
}

// The increment of autoscale is shown where it was given, also if it is 0.
func TestAutoscaleIncrement(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`,
		`x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":7000,"autoUpgradePolicy":{"throughputPolicy":`+
			`{"incrementPercent":0}}}`).is(201)
	a.do("GET", "/offers", "").is(200).has(`"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":0}}`)
}

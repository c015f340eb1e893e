package sqlapi

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"
)

// appendRow appends a row with its record, as .NET's client does.
func appendRow(b []byte, schema uint32, row []byte) []byte {
	row = append(binary.LittleEndian.AppendUint32([]byte{0x81}, schema), row...)
	b = binary.LittleEndian.AppendUint32(append(b, 0x81), 2147473649)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(row)))
	return append(binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(row)), row...)
}

// asRows returns a batch that is written as JSON as rows.
func asRows(t *testing.T, text string) string {
	t.Helper()
	var ops []struct {
		OperationType, PartitionKey, ID, IfMatch, IfNoneMatch, IndexingDirective string
		ResourceBody                                                             json.RawMessage
		MinimalReturnPreference                                                  bool
	}
	if err := json.Unmarshal([]byte(text), &ops); err != nil {
		t.Fatal(err)
	}
	types := map[string]uint32{"Create": 0, "Patch": 1, "Read": 2, "Delete": 4, "Replace": 5, "Upsert": 20, "Dance": 7}
	b := []byte{0x81, 0xf0, 0xd8, 0xff, 0x7f, 1, 10, 0, 0, 0}
	for _, op := range ops {
		has, fields := byte(3), []byte{}
		for bit, v := range map[int]string{2: op.PartitionKey, 4: op.ID, 6: string(op.ResourceBody)} {
			if v != "" {
				has |= 1 << bit
			}
		}
		for _, v := range []string{op.PartitionKey, op.ID, string(op.ResourceBody)} {
			if v != "" {
				fields = append(binary.AppendUvarint(fields, uint64(len(v))), v...)
			}
		}
		for i, v := range []string{op.IndexingDirective, op.IfMatch, op.IfNoneMatch} {
			if v != "" {
				fields = append(binary.AppendUvarint(append(fields, 20, byte(8+i)), uint64(len(v))), v...)
			}
		}
		if op.MinimalReturnPreference {
			fields = append(fields, 3, 12)
		}
		row := binary.LittleEndian.AppendUint32([]byte{has}, types[op.OperationType])
		b = appendRow(b, 2145473648, append(append(row, 2, 0, 0, 0), fields...))
	}
	return string(b)
}

// result is the result of an operation, without what differs from one run to the other.
type result struct {
	Status, SubStatus uint32
	Charge            float64
	ETag              bool
	Body              string
}

// timeless returns an item without its system properties.
func timeless(t *testing.T, item []byte) string {
	t.Helper()
	if len(item) == 0 {
		return ""
	}
	var m map[string]any
	if err := json.Unmarshal(item, &m); err != nil {
		t.Fatalf("%v in %q", err, item)
	}
	for name := range m {
		if strings.HasPrefix(name, "_") {
			delete(m, name)
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// inRows returns the results that rows have.
func inRows(t *testing.T, body string) (out []result) {
	t.Helper()
	if !strings.HasPrefix(body, "\x81\xf0\xd8\xff\x7f\x01\x0a\x00\x00\x00") {
		t.Fatalf("%q doesn't begin with a segment", body)
	}
	for b := []byte(body[10:]); len(b) > 0; {
		n := binary.LittleEndian.Uint32(b[5:])
		row := b[13 : 13+n]
		b = b[13+n:]
		r := result{Status: binary.LittleEndian.Uint32(row[6:]), SubStatus: binary.LittleEndian.Uint32(row[10:])}
		var etag, item []byte
		rest := row[14:]
		for bit, to := range []*[]byte{2: &etag, 3: &item} {
			if bit >= 2 && row[5]>>bit&1 == 1 {
				n, size := binary.Uvarint(rest)
				*to, rest = rest[size:size+int(n)], rest[size+int(n):]
			}
		}
		if len(etag) > 0 && (etag[0] != '"' || etag[len(etag)-1] != '"') {
			t.Errorf("the etag %q has no quotes", etag)
		}
		if len(rest) != 10 || rest[0] != 16 || rest[1] != 6 {
			t.Fatalf("%q isn't a charge", rest)
		}
		r.Charge = math.Round(100*math.Float64frombits(binary.LittleEndian.Uint64(rest[2:]))) / 100
		r.ETag, r.Body = len(etag) > 0, timeless(t, item)
		out = append(out, r)
	}
	return out
}

// inJSON returns the results that JSON has.
func inJSON(t *testing.T, body string) (out []result) {
	t.Helper()
	var all []struct {
		StatusCode, SubStatusCode uint32
		RequestCharge             float64
		ETag                      string
		ResourceBody              json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		out = append(out, result{r.StatusCode, r.SubStatusCode, r.RequestCharge, r.ETag != "",
			timeless(t, r.ResourceBody)})
	}
	return out
}

// Rows do what the same operations do as JSON, and answer the same.
func TestBatchesAsRows(t *testing.T) {
	const bulk = `[{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a","n":1}},` +
		`{"operationType":"Create","partitionKey":"[\"b\"]","resourceBody":{"id":"1","pk":"b"},` +
		`"minimalReturnPreference":true},` +
		`{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a"}},` +
		`{"operationType":"Read","partitionKey":"[\"c\"]","id":"none"}]`
	atomic := []string{isBatch, isAtomic, key("a")}
	scripts := []struct {
		name    string
		ops     string
		headers []string
	}{
		{"bulk", bulk, []string{isBatch, "x-ms-documentdb-partitionkeyrangeid: 0"}},
		{"bulk of a range that is gone", bulk, []string{isBatch, "x-ms-documentdb-partitionkeyrangeid: 7"}},
		{"all kinds", `[{"operationType":"Read","id":"1"},` +
			`{"operationType":"Upsert","resourceBody":{"id":"2","pk":"a"},"indexingDirective":"Exclude"},` +
			`{"operationType":"Replace","id":"2","resourceBody":{"id":"2","pk":"a","x":[1]}},` +
			`{"operationType":"Patch","id":"2",` +
			`"resourceBody":{"operations":[{"op":"set","path":"/y","value":"\u00e4"}]}},` +
			`{"operationType":"Read","id":"2","minimalReturnPreference":true},` +
			`{"operationType":"Upsert","resourceBody":{"id":"3","pk":"a"},"ifNoneMatch":"*"},` +
			`{"operationType":"Delete","id":"3"}]`, atomic},
		{"one fails", `[{"operationType":"Create","resourceBody":{"id":"4","pk":"a"}},` +
			`{"operationType":"Replace","id":"2","resourceBody":{"id":"2","pk":"a"},"ifMatch":"\"no\""}]`, atomic},
		{"another key", `[{"operationType":"Create","resourceBody":{"id":"4","pk":"z"}}]`, atomic},
		{"the batch's key", `[{"operationType":"Read","partitionKey":"[\"a\"]","id":"1"}]`, atomic},
		{"another key of an operation", `[{"operationType":"Delete","partitionKey":"[\"b\"]","id":"1"}]`, atomic},
		{"bad directive", `[{"operationType":"Create","resourceBody":{"id":"4","pk":"a"},"indexingDirective":"Maybe"}]`,
			atomic},
		{"bad body", `[{"operationType":"Create","resourceBody":[1]}]`, atomic},
		{"no kind", `[{"operationType":"Dance","id":"1"}]`, atomic},
		{"too many", `[` + strings.Repeat(`{"operationType":"Read","id":"1"},`, maxBatch) +
			`{"operationType":"Read","id":"1"}]`, atomic},
		{"none", `[]`, atomic},
	}
	plain, rows := withContainer(t), withContainer(t)
	for _, x := range scripts {
		p, r := plain.do("POST", docs, x.ops, x.headers...), rows.do("POST", docs, asRows(t, x.ops), x.headers...)
		if p.code != r.code {
			t.Errorf("%s: %d as rows, %d as JSON", x.name, r.code, p.code)
			continue
		}
		if p.code >= 300 {
			r.has(`"code":`)
			continue
		}
		if want, got := inJSON(t, p.body), inRows(t, r.body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s as rows\n%+v\nas JSON\n%+v", x.name, got, want)
		}
		if got := r.h.Get("Content-Type"); got != "application/octet-stream" {
			t.Errorf("%s: the results are %s", x.name, got)
		}
	}
}

// An item in a row may be in the binary form of JSON. The texts of all of them may not be longer than a body.
func TestBinaryItemsInRows(t *testing.T) {
	a := withContainer(t)
	item := "\x80\xea\x08\x2c\x81" + "1" + "\x82pk\x81" + "a" // {"id":"1","pk":"a"}
	row := func(item string) []byte {
		b := append([]byte{3 | 1<<6, 20, 0, 0, 0, 2, 0, 0, 0}, binary.AppendUvarint(nil, uint64(len(item)))...)
		return append(b, item...)
	}
	segment := []byte{0x81, 0xf0, 0xd8, 0xff, 0x7f, 1, 10, 0, 0, 0}
	r := a.do("POST", docs, string(appendRow(segment, 2145473648, row(item))), isBatch, isAtomic, key("a")).is(200)
	if got := inRows(t, r.body); len(got) != 1 || got[0].Status != 201 || got[0].Body != `{"id":"1","pk":"a"}` {
		t.Errorf("%+v", got)
	}
	bad := appendRow(segment, 2145473648, row(item[:len(item)-1]))
	a.do("POST", docs, string(bad), isBatch, isAtomic, key("a")).is(400)
}

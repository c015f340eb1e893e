package edm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// ticks is 2024-03-04T05:06:07.1234567Z.
const ticks = 1709528767*10_000_000 + 1234567

// build stores a parsed entity as the Table API does.
func build(e *Entity) []byte {
	var b doc.Builder
	b.BeginObject()
	b.Field(PartitionField, value.StringOf(e.PartitionKey))
	b.Field("_id", value.StringOf(e.RowKey))
	for _, p := range e.Props {
		b.Field(StoredName(string(p.Name)), p.Value)
	}
	b.End()
	return b.Doc()
}

// TestEntity runs the scripts in testdata. "read" parses an entity and prints the stored document as Extended JSON.
// "write" prints it as a reply (level=no|minimal|full, select=(..)). "show" prints a document given as Extended JSON,
// as another API would store it.
func TestEntity(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var e Entity
			var stored []byte
			if d.Cmd == "show" {
				b, err := doc.FromExtJSON(nil, []byte(d.Input))
				if err != nil {
					return err.Error()
				}
				stored = b
			} else {
				if err := e.Parse([]byte(d.Input)); err != nil {
					return err.Error()
				}
				stored = build(&e)
			}
			if d.Cmd == "read" {
				return string(doc.AppendExtJSON(nil, doc.Value(stored), false))
			}
			f := Format{Level: Minimal, Account: "acct", Base: "http://h/acct", Table: "t", Native: d.Cmd == "write"}
			if d.HasArg("level") {
				var l string
				d.ScanArgs(t, "level", &l)
				f.Level = map[string]Level{"no": NoMetadata, "minimal": Minimal, "full": Full}[l]
			}
			for _, a := range d.CmdArgs {
				if a.Key == "select" {
					f.Select = a.Vals
				}
			}
			row := Row{Doc: stored, PartitionKey: []byte(e.PartitionKey), RowKey: []byte(e.RowKey), Ticks: ticks}
			out := f.Append(nil, &row)
			if !json.Valid(out) {
				t.Errorf("invalid JSON: %s", out)
			}
			return string(out)
		})
	})
}

func TestTooMuch(t *testing.T) {
	var many strings.Builder
	for i := range 253 {
		fmt.Fprintf(&many, `,"p%d":1`, i)
	}
	full := many.String()
	for name, c := range map[string]struct{ in, want string }{
		"252 properties":   {`{"x":null` + full[:strings.LastIndex(full, ",")] + `}`, ""},
		"253 properties":   {`{"x":null` + full + `}`, TooManyProperties},
		"32768 characters": {`{"a":"` + strings.Repeat("ä", 32768) + `"}`, ""},
		"32769 characters": {`{"a":"` + strings.Repeat("a", 32769) + `"}`, PropertyValueTooLarge},
		"64 KiB binary": {
			`{"a@odata.type":"Edm.Binary","a":"` + strings.Repeat("AAAA", 21845) + `AA=="}`, ""},
		"64 KiB and 2 bytes of binary": {`{"a@odata.type":"Edm.Binary","a":"` + strings.Repeat("AAAA", 21846) + `"}`,
			PropertyValueTooLarge},
		"name of 255":                    {`{"` + strings.Repeat("n", 255) + `":1}`, ""},
		"name of 256":                    {`{"` + strings.Repeat("n", 256) + `":1}`, PropertyNameTooLong},
		"key of 512":                     {`{"RowKey":"` + strings.Repeat("k", 512) + `"}`, ""},
		"key of 513":                     {`{"RowKey":"` + strings.Repeat("k", 513) + `"}`, KeyValueTooLarge},
		"deep nesting":                   {`{"a":` + strings.Repeat("[", 100_000), InvalidInput},
		"more annotations than members":  {`{"a":1` + annotations(2000) + `}`, TooManyProperties},
		"a number too large for doubles": {`{"a":1e999}`, InvalidInput},
	} {
		var e Entity
		err := e.Parse([]byte(c.in))
		got := ""
		if err != nil {
			got = err.(*Error).Code
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func annotations(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"q%d@odata.type":"Edm.Int32"`, i)
	}
	return b.String()
}

func TestDateTime(t *testing.T) {
	for in, want := range map[string]string{
		"2024-03-04T05:06:07.1234567Z":     "2024-03-04T05:06:07.1234567Z",
		"2024-03-04T05:06:07.12345678Z":    "2024-03-04T05:06:07.1234567Z",
		"2024-03-04T05:06:07.100Z":         "2024-03-04T05:06:07.1Z",
		"2024-03-04T05:06:07Z":             "2024-03-04T05:06:07Z",
		"2024-03-04T05:06Z":                "2024-03-04T05:06:00Z",
		"2024-03-04":                       "2024-03-04T00:00:00Z",
		"2024-03-04T05:06:07":              "2024-03-04T05:06:07Z",
		"2024-03-04T05:06:07+01:30":        "2024-03-04T03:36:07Z",
		"2024-03-04T05:06:07.0000001-0200": "2024-03-04T07:06:07.0000001Z",
		"1601-01-01T00:00:00Z":             "1601-01-01T00:00:00Z",
		"1969-12-31T23:59:59.9999999Z":     "1969-12-31T23:59:59.9999999Z",
		"9999-12-31T23:59:59.9999999Z":     "9999-12-31T23:59:59.9999999Z",
		"1600-12-31T23:59:59Z":             OutOfRangeInput,
		"2024-02-30T00:00:00Z":             InvalidInput,
		"2024-13-01T00:00:00Z":             InvalidInput,
		"2024-03-04T24:00:00Z":             InvalidInput,
		"2024-03-04T05:06:07.Z":            InvalidInput,
		"2024-03-04T05:06:07Zx":            InvalidInput,
		"":                                 InvalidInput,
	} {
		v, err := ParseDateTime(in)
		got := ""
		if err != nil {
			got = err.(*Error).Code
		} else {
			got = string(appendDateTime(nil, v))
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestETag(t *testing.T) {
	if got, want := string(AppendETag(nil, ticks)), `W/"datetime'2024-03-04T05%3A06%3A07.1234567Z'"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(appendTicks(nil, 0, ":")), "1970-01-01T00:00:00.0000000Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzEntity: an entity that Parse accepts becomes a valid document; its reply is valid JSON, which reads back to the
// same document.
func FuzzEntity(f *testing.F) {
	f.Add([]byte(`{"PartitionKey":"p","RowKey":"r","a":1,"b@odata.type":"Edm.Int64","b":"9"}`))
	f.Add([]byte(`{"d@odata.type":"Edm.DateTime","d":"2024-03-04T05:06:07.1234567Z","x":"\ud83d\ude00",` +
		`"g":"6f1ed002-ab55-4d5a-b7ee-3ff5ef60ba1a","g@odata.type":"Edm.Guid"}`))
	f.Add([]byte(`{"bin":"AAEC","bin@odata.type":"Edm.Binary","n":null,"t":true,"f":1.0,` +
		`"nan@odata.type":"Edm.Double","nan":"NaN"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var e Entity
		if e.Parse(in) != nil {
			return
		}
		stored := build(&e)
		if err := doc.Validate(stored, 10); err != nil {
			t.Fatalf("stored document: %v", err)
		}
		fm := Format{Level: Minimal, Native: true}
		out := fm.Append(nil, &Row{Doc: stored, PartitionKey: []byte(e.PartitionKey), RowKey: []byte(e.RowKey),
			Ticks: ticks})
		if !json.Valid(out) {
			t.Fatalf("answer: %s", out)
		}
		var again Entity
		if err := again.Parse(out); err != nil {
			t.Fatalf("answer does not parse: %v\n%s", err, out)
		}
		if !bytes.Equal(build(&again), stored) {
			t.Fatalf("changed on its way\n%s", out)
		}
	})
}

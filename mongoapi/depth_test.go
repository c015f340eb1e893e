package mongoapi

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// levels returns a document with so many levels, itself included.
func levels(n int) bson.D {
	d := bson.D{}
	for range n - 1 {
		d = bson.D{{Key: "a", Value: d}}
	}
	return d
}

// TestDepth tests how deep documents may be: a message has 200 levels below its own, each object and each array is one,
// and a stored document has 180. So a filter has up to 99 $and within each other.
func TestDepth(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	ands := func(n int) bson.D {
		f := bson.D{{Key: "x", Value: 1}}
		for range n {
			f = bson.D{{Key: "$and", Value: bson.A{f}}}
		}
		return bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: f}, {Key: "$db", Value: "db"}}
	}
	within := func(name, list string, d bson.D) bson.D {
		return bson.D{{Key: name, Value: "c"}, {Key: list, Value: bson.A{d}}, {Key: "$db", Value: "db"}}
	}
	update := func(q, u any) bson.D {
		return within("update", "updates", bson.D{{Key: "q", Value: q}, {Key: "u", Value: u},
			{Key: "upsert", Value: true}})
	}
	set := func(path string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}} }
	one := bson.D{{Key: "_id", Value: 1}}
	steps := bson.A{}
	for range 181 {
		steps = append(steps, set("a", bson.D{{Key: "a", Value: "$a"}}))
	}
	path := func(n int) string { return strings.TrimSuffix(strings.Repeat("b.", n), ".") }
	deep := "BSONObj exceeds maximum nested object depth in element with field name '%' in object with unknown _id"
	ofInsert := "cannot insert document because it exceeds 180 levels of nesting"
	ofUpdate := "Document exceeds maximum nesting depth of 180"
	for name, x := range map[string]struct {
		cmd  bson.D
		text string // "": it succeeds
	}{
		"99 times $and":   {ands(99), ""},
		"100 times $and":  {ands(100), strings.Replace(deep, "%", "filter"+strings.Repeat(".$and.0", 100), 1)},
		"180 levels":      {within("insert", "documents", levels(180)), ""},
		"181 levels":      {within("insert", "documents", levels(181)), ofInsert},
		"a replacement":   {update(bson.D{{Key: "_id", Value: 5}}, levels(180)), ""},
		"a deep one":      {update(one, levels(181)), ofUpdate},
		"a deep path":     {update(one, set(path(181), bson.D{})), ofUpdate},
		"a pipeline":      {update(one, steps), ofUpdate},
		"a path upserted": {update(bson.D{{Key: path(181), Value: 1}}, set("z", 1)), ofInsert},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a deep one" || name == "a pipeline" || name == "a deep path" {
				c.ask(within("insert", "documents", one))
			}
			raw, e := c.ask(x.cmd)
			code, text := e.Code, e.Errmsg
			if v, err := raw.LookupErr("writeErrors", "0"); err == nil {
				code, text = v.Document().Lookup("code").Int32(), v.Document().Lookup("errmsg").StringValue()
			}
			if text != x.text || code != 15 && text != "" {
				t.Errorf("%d %s", code, text)
			}
		})
	}
}

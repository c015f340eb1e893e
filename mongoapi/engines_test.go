package mongoapi

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// noPrograms is an engine of JavaScript that is never asked.
type noPrograms struct{}

func (noPrograms) Call(context.Context, string, []byte) ([]byte, error) { panic("a program runs") }

// TestWhatTheServerHas: dbStats tells the disk's size, and buildInfo and features the engine of JavaScript, if the
// server has one.
func TestWhatTheServerHas(t *testing.T) {
	for _, has := range []bool{false, true} {
		var o Options
		if has {
			o.Disk = func() (free, total int64, err error) { return 1 << 30, 4 << 30, nil }
			o.Scripts = noPrograms{}
		}
		_, addr := serve(t, o, nil)
		c := connect(t, addr)
		stats, e := c.ask(bson.D{{Key: "dbStats", Value: 1}, {Key: "scale", Value: 1024}})
		if e.OK != 1 {
			t.Fatal(e)
		}
		used, told := stats.Lookup("fsUsedSize").DoubleOK()
		total, _ := stats.Lookup("fsTotalSize").DoubleOK()
		if told != has || has && (used != 3<<20 || total != 4<<20) {
			t.Errorf("dbStats: %v of %v", used, total)
		}
		build, _ := c.ask(bson.D{{Key: "buildInfo", Value: 1}})
		engine := map[bool]string{true: "mozjs", false: "none"}[has]
		if got := build.Lookup("javascriptEngine").StringValue(); got != engine {
			t.Errorf("buildInfo: %s", got)
		}
		features, _ := c.ask(bson.D{{Key: "features", Value: 1}})
		_, js := features.Lookup("js", "utf8").BooleanOK()
		if _, machine := features.Lookup("oidMachine").Int64OK(); js != has || !machine {
			t.Errorf("features: %v", features)
		}
	}
}

// TestPlacesOfWhere: $where may be in $nor, and not in $elemMatch.
func TestPlacesOfWhere(t *testing.T) {
	_, addr := serve(t, Options{Scripts: noPrograms{}}, nil)
	c := connect(t, addr)
	for filter, want := range map[string]string{
		`{"$nor":[{"$where":"true"}]}`:                     "",
		`{"a":{"$elemMatch":{"$where":"true"}}}`:           "$elemMatch cannot contain $where expression",
		`{"a":{"$elemMatch":{"$or":[{"$where":"true"}]}}}`: "$elemMatch cannot contain $where expression",
	} {
		var q bson.D
		if err := bson.UnmarshalExtJSON([]byte(filter), false, &q); err != nil {
			t.Fatal(err)
		}
		if _, e := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: q}}); e.Errmsg != want {
			t.Errorf("%s: %+v", filter, e)
		}
	}
}

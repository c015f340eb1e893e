package doc

import (
	"testing"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

func TestGet(t *testing.T) {
	d := mustJSON(t, `{"a":{"b":[10,{"c":"x"},[1,2]],"1":"one"},"n":null,"":7}`, JSONOptions{})
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, `{"a":{"b":[10,{"c":"x"},[1,2]],"1":"one"},"n":null,"":7}`},
		{[]string{"a", "b", "0"}, "10"},
		{[]string{"a", "b", "1", "c"}, `"x"`},
		{[]string{"a", "b", "2", "1"}, "2"},
		{[]string{"a", "1"}, `"one"`},
		{[]string{""}, "7"},
		{[]string{"n"}, "null"},
	} {
		v := Get(d, c.path...)
		if got := string(AppendJSON(nil, v)); !v.IsDefined() || got != c.want {
			t.Errorf("Get %v = %s, want %s", c.path, got, c.want)
		}
	}
	for _, path := range [][]string{{"x"}, {"a", "b", "3"}, {"a", "b", "01"}, {"a", "b", "-1"}, {"a", "b", "x"},
		{"n", "x"}, {"a", "b", "0", "x"}, {"a", "b", "99999999999"}} {
		if v := Get(d, path...); v.IsDefined() {
			t.Errorf("Get %v = %s, want Undefined", path, AppendJSON(nil, v))
		}
	}
}

func TestEdits(t *testing.T) {
	const d = `{"a":1,"b":{"c":2},"x":[1,{"y":2},3]}`
	one := value.Int32Of(9)
	set := func(d Doc, p ...string) (Doc, error) { return Set(d, one, p...) }
	insert := func(d Doc, p ...string) (Doc, error) { return Insert(d, one, p...) }
	remove := func(d Doc, p ...string) (Doc, error) { return Remove(d, p...) }
	for _, c := range []struct {
		name string
		op   func(Doc, ...string) (Doc, error)
		path []string
		want string // "" = BadRequest
	}{
		{"set keeps the place", set, []string{"a"}, `{"a":9,"b":{"c":2},"x":[1,{"y":2},3]}`},
		{"set below", set, []string{"b", "c"}, `{"a":1,"b":{"c":9},"x":[1,{"y":2},3]}`},
		{"set a new field", set, []string{"n"}, `{"a":1,"b":{"c":2},"x":[1,{"y":2},3],"n":9}`},
		{"set makes objects", set, []string{"n", "m", "0"}, `{"a":1,"b":{"c":2},"x":[1,{"y":2},3],"n":{"m":{"0":9}}}`},
		{"set replaces an object", set, []string{"b"}, `{"a":1,"b":9,"x":[1,{"y":2},3]}`},
		{"set an element", set, []string{"x", "0"}, `{"a":1,"b":{"c":2},"x":[9,{"y":2},3]}`},
		{"set in an element", set, []string{"x", "1", "y"}, `{"a":1,"b":{"c":2},"x":[1,{"y":9},3]}`},
		{"set at the end", set, []string{"x", "3"}, `{"a":1,"b":{"c":2},"x":[1,{"y":2},3,9]}`},
		{"set beyond the end", set, []string{"x", "5"}, `{"a":1,"b":{"c":2},"x":[1,{"y":2},3,null,null,9]}`},
		{"set far beyond the end", set, []string{"x", "2000000000"}, ``},
		{"set through a scalar", set, []string{"a", "b"}, ``},
		{"set an element by name", set, []string{"x", "y"}, ``},
		{"set nothing", set, nil, ``},
		{"set a name with NUL", set, []string{"a\x00b"}, ``},
		{"insert", insert, []string{"x", "1"}, `{"a":1,"b":{"c":2},"x":[1,9,{"y":2},3]}`},
		{"insert at the end", insert, []string{"x", "3"}, `{"a":1,"b":{"c":2},"x":[1,{"y":2},3,9]}`},
		{"insert by -", insert, []string{"x", "-"}, `{"a":1,"b":{"c":2},"x":[1,{"y":2},3,9]}`},
		{"insert beyond", insert, []string{"x", "4"}, ``},
		{"insert a field", insert, []string{"b", "d"}, `{"a":1,"b":{"c":2,"d":9},"x":[1,{"y":2},3]}`},
		{"remove", remove, []string{"b"}, `{"a":1,"x":[1,{"y":2},3]}`},
		{"remove below", remove, []string{"x", "1", "y"}, `{"a":1,"b":{"c":2},"x":[1,{},3]}`},
		{"remove an element", remove, []string{"x", "0"}, `{"a":1,"b":{"c":2},"x":[{"y":2},3]}`},
		{"remove what isn't there", remove, []string{"q", "r"}, d},
		{"remove through a scalar", remove, []string{"a", "r"}, d},
		{"remove by name in an array", remove, []string{"x", "r"}, d},
		{"remove beyond the end", remove, []string{"x", "7"}, d},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.op(mustJSON(t, d, JSONOptions{}), c.path...)
			if c.want == "" {
				if !status.Is(err, status.BadRequest) {
					t.Fatalf("error %v, want BadRequest", err)
				}
				return
			}
			if err != nil || string(AppendJSON(nil, Value(got))) != c.want {
				t.Fatalf("%s (%v), want %s", AppendJSON(nil, Value(got)), err, c.want)
			}
			if err := Validate(got, 0); err != nil {
				t.Fatal(err)
			}
			// The stored names of array elements are consecutive: 0, 1, 2.
			if x := Get(got, "x"); x.Kind() == value.Array {
				i := 0
				for it := x.Iter(); it.Next(); i++ {
					if n, ok := Index(string(it.Key())); !ok || n != i {
						t.Fatalf("element %d is called %q", i, it.Key())
					}
				}
			}
		})
	}
}

func TestBuilder(t *testing.T) {
	var b Builder
	for range 2 { // the second round reuses the buffer
		b.Reset()
		b.BeginObject()
		b.Field("a", value.Int32Of(1))
		b.Field("gone", value.Undef())
		b.BeginArrayField("x")
		b.Elem(value.StringOf("s"))
		b.BeginObject()
		b.FieldBytes([]byte("in"), value.NullValue())
		b.End()
		b.BeginArray()
		for i := range 11 {
			b.Elem(value.Int32Of(int32(i)))
		}
		b.End()
		b.End()
		b.BeginObjectField("o")
		b.End()
		b.End()
		if err := Validate(b.Doc(), 0); err != nil {
			t.Fatal(err)
		}
		const want = `{"a":1,"x":["s",{"in":null},[0,1,2,3,4,5,6,7,8,9,10]],"o":{}}`
		if got := string(AppendJSON(nil, b.Object())); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if got := Get(b.Doc(), "x", "2", "10").Int(); got != 10 {
			t.Fatalf("element 10 is %d", got)
		}
	}
}

// BSON allows a name twice, though only Mongo can write it. The first field is found, edited and removed; both are kept
// and shown.
func TestNameTwiceInBSON(t *testing.T) {
	var b Builder
	b.BeginObject()
	b.Field("a", value.Int32Of(1))
	b.Field("a", value.Int32Of(2))
	b.End()
	d := b.Doc()
	if err := Validate(d, 0); err != nil {
		t.Fatal(err)
	}
	if got := Get(d, "a").Int(); got != 1 {
		t.Errorf("Get finds %d", got)
	}
	set, _ := Set(d, value.Int32Of(9), "a")
	gone, _ := Remove(d, "a")
	for got, want := range map[string]string{string(AppendJSON(nil, Value(set))): `{"a":9,"a":2}`, string(AppendJSON(nil, Value(gone))): `{"a":2}`} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

package engine

import (
	"slices"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/json"
)

// A function of a whole document often reads few of its properties, by names that its text doesn't tell. Making a plain
// object of the document, a map of the engine, would take more time than all else. So the function gets a lazy object,
// which knows where the members are in the text, and reads a member when the function does.
//
// Example: function f(d, name) { return d[name]; } gets {"id":"1","price":5,"lines":[..]}. The text is scanned once for
// the places of id, price and lines, and f(d, "price") reads the 5 alone.
//
// A lazy object looks like a plain one as long as nothing asks for what the engine refuses to do with it: freeze it,
// define a property that isn't writable, or take a symbol as a name. Only functions whose text can't do that get lazy
// objects (takesLazy).
type lazyObject struct {
	t     *texts
	text  []byte
	depth int
	shape *shape
	at    []int32      // where the values of the members are in text
	read  []goja.Value // those that were read; nil: none yet
	plain *goja.Object // has the properties once others than those of text were set, or some were deleted
}

// shape is what objects with the same names in the same order share.
type shape struct {
	names []string
	at    map[string]int // where a name is in names
	plain bool           // such objects aren't lazy
}

// shapes finds the shapes of objects. The names of all shapes are interned, so that the shape of an object is found by
// the numbers of its names.
type shapes struct {
	names  map[string]uint32
	list   []string
	known  map[uint64][]*shape // by a hash of the numbers
	size   int                 // names of all shapes
	object []uint32            // of the object that is being scanned
	places []int32
}

// mostNames bounds the names that are kept, and the names of all shapes.
const mostNames = 10_000

func newShapes() *shapes { return &shapes{names: map[string]uint32{}, known: map[uint64][]*shape{}} }

// number returns the number of a name.
func (s *shapes) number(name []byte) uint32 {
	n, ok := s.names[string(name)]
	if !ok {
		n = uint32(len(s.list))
		s.list = append(s.list, string(name))
		s.names[s.list[n]] = n
	}
	return n
}

// of returns the shape of objects with the names of these numbers.
func (s *shapes) of(numbers []uint32) *shape {
	hash := uint64(len(numbers))
	for _, n := range numbers {
		hash = (hash ^ uint64(n)) * 0x9e3779b97f4a7c15
	}
	for _, found := range s.known[hash] {
		if slices.EqualFunc(numbers, found.names, func(n uint32, name string) bool { return s.list[n] == name }) {
			return found
		}
	}
	made := &shape{at: make(map[string]int, len(numbers))}
	for i, n := range numbers {
		made.names = append(made.names, s.list[n])
		made.at[s.list[n]] = i
		made.plain = made.plain || !lazyName(s.list[n])
	}
	made.plain = made.plain || len(made.at) < len(numbers)
	s.known[hash] = append(s.known[hash], made)
	s.size += len(numbers) + 1
	return made
}

// lazyName reports whether a lazy object can have a property of this name. Names that are numbers come first in a plain
// object. The prototype isn't a property. The engine has names that aren't ASCII in another form.
func lazyName(name string) bool {
	if name == "__proto__" || name != "" && name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if name[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lazy returns the object at i and the position after it. It returns nil where the object can't be lazy.
func (t *texts) lazy(b []byte, i, depth int) (*goja.Object, int) {
	s := t.shapes
	if len(s.list) > mostNames || s.size > mostNames {
		*s = *newShapes()
	}
	s.object, s.places = s.object[:0], s.places[:0]
	begin := i
	for i = json.Space(b, i+1); byteAt(b, i) != '}'; {
		end := 0
		if byteAt(b, i) == '"' {
			end = json.PlainEnd(b, i+1)
		}
		if end == 0 {
			return nil, 0
		}
		s.object = append(s.object, s.number(b[i+1:end]))
		if i = json.Space(b, end+1); byteAt(b, i) != ':' {
			return nil, 0
		}
		i = json.Space(b, i+1)
		s.places = append(s.places, int32(i-begin))
		if i = json.Skip(b, i); i < 0 {
			return nil, 0
		}
		i = json.Space(b, i)
		if c := byteAt(b, i); c == ',' && byteAt(b, json.Space(b, i+1)) == '"' {
			i = json.Space(b, i+1)
		} else if c != '}' {
			return nil, 0
		}
	}
	shape := s.of(s.object)
	if shape.plain {
		return nil, 0
	}
	o := &lazyObject{t: t, text: b[begin : i+1], depth: depth, shape: shape, at: slices.Clone(s.places)}
	return t.m.rt.NewDynamicObject(o), i + 1
}

// member returns the value of member i.
func (o *lazyObject) member(i int) goja.Value {
	if o.read == nil {
		o.read = make([]goja.Value, len(o.at))
	}
	if o.read[i] != nil {
		return o.read[i]
	}
	at := int(o.at[i])
	v, _, err := o.t.read(o.text, at, o.depth+1)
	if err != nil { // the engine reads it
		v, err = o.t.value(o.text[at:json.Skip(o.text, at)])
	}
	if err != nil {
		panic(err) // guard makes it the failure of the run
	}
	o.read[i] = v
	return v
}

// made returns the plain object that has the properties from now on.
func (o *lazyObject) made() *goja.Object {
	if o.plain == nil {
		plain := o.t.m.rt.CreateObject(nil)
		for i, name := range o.shape.names {
			o.t.m.must(nil, plain.Set(name, o.member(i)))
		}
		o.plain = plain
	}
	return o.plain
}

// The methods of goja.DynamicObject.

func (o *lazyObject) Get(name string) goja.Value {
	if o.plain != nil {
		return o.plain.Get(name)
	}
	if i, ok := o.shape.at[name]; ok {
		return o.member(i)
	}
	return nil
}

func (o *lazyObject) Set(name string, v goja.Value) bool {
	if i, ok := o.shape.at[name]; ok && o.plain == nil {
		if o.read == nil {
			o.read = make([]goja.Value, len(o.at))
		}
		o.read[i] = v
		return true
	}
	return o.made().Set(name, v) == nil
}

func (o *lazyObject) Has(name string) bool {
	if o.plain != nil {
		return o.plain.Get(name) != nil
	}
	_, ok := o.shape.at[name]
	return ok
}

func (o *lazyObject) Delete(name string) bool { return !o.Has(name) || o.made().Delete(name) == nil }

func (o *lazyObject) Keys() []string {
	if o.plain != nil {
		return o.plain.Keys()
	}
	return o.shape.names
}

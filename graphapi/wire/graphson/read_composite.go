package graphson

import (
	"strings"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// key converts a value that must be comparable as a whole.
func (c *converter) key(v any) any {
	if c.keyDepth++; c.keyDepth > maxKeyDepth {
		return c.fail("more than %d levels of sets and map keys in each other", maxKeyDepth)
	}
	k := c.value(v)
	c.keyDepth--
	return k
}

func (c *converter) set(v any) any {
	l, ok := v.([]any)
	if !ok {
		return c.fail("an array expected")
	}
	s := gvalue.SetOf()
	for _, e := range l {
		s.Add(c.key(e))
		if c.err != nil {
			return nil
		}
	}
	return s
}

// mapValue reads the flat list of keys and values of a g:Map.
func (c *converter) mapValue(v any) any {
	l, ok := v.([]any)
	if !ok || len(l)%2 != 0 {
		return c.fail("a g:Map is an array of keys and values")
	}
	m := gvalue.NewMap(len(l) / 2)
	for i := 0; i < len(l) && c.err == nil; i += 2 {
		k := c.key(l[i])
		m.Put(k, c.value(l[i+1]))
	}
	return m
}

func (c *converter) bulkSet(v any) any {
	l, ok := v.([]any)
	if !ok || len(l)%2 != 0 {
		return c.fail("a g:BulkSet is an array of values and counts")
	}
	b := &gvalue.BulkSet{}
	for i := 0; i < len(l) && c.err == nil; i += 2 {
		k := c.key(l[i])
		n, _ := c.value(l[i+1]).(int64)
		b.Add(k, n)
	}
	return b
}

func (c *converter) vertex(v any) any {
	o := c.object(v)
	x := &gvalue.Vertex{ID: c.member(o, "id"), Label: c.label(o, "label")}
	if x.Label == "" {
		x.Label = "vertex"
	}
	props, _ := o.get("properties")
	if props == nil {
		return x
	}
	for _, m := range c.object(props).members {
		l, ok := m.val.([]any)
		if !ok {
			return c.fail("an array of vertex properties expected")
		}
		for _, e := range l {
			if p, ok := c.value(e).(*gvalue.VertexProperty); ok {
				p.Label = m.key()
				x.Properties = append(x.Properties, *p)
			}
		}
	}
	return x
}

func (c *converter) edge(v any) any {
	o := c.object(v)
	return &gvalue.Edge{ID: c.member(o, "id"), Label: c.label(o, "label"), InV: c.member(o, "inV"),
		InVLabel: c.label(o, "inVLabel"),
		OutV:     c.member(o, "outV"), OutVLabel: c.label(o, "outVLabel"), Properties: c.properties(o)}
}

func (c *converter) vertexProperty(v any) any {
	o := c.object(v)
	return &gvalue.VertexProperty{ID: c.member(o, "id"), Label: c.label(o, "label"), Value: c.member(o, "value"),
		Properties: c.properties(o)}
}

// properties reads the member "properties" of an edge or vertex property: bare values or g:Property objects.
func (c *converter) properties(o *object) []gvalue.Property {
	props, _ := o.get("properties")
	if props == nil {
		return nil
	}
	var ps []gvalue.Property
	for _, m := range c.object(props).members {
		v := c.value(m.val)
		if p, ok := v.(*gvalue.Property); ok {
			v = p.Value
		}
		ps = append(ps, gvalue.Property{Key: m.key(), Value: v})
	}
	return ps
}

func (c *converter) property(v any) any {
	o := c.object(v)
	return &gvalue.Property{Key: c.label(o, "key"), Value: c.member(o, "value")}
}

func (c *converter) path(v any) any {
	o := c.object(v)
	p := &gvalue.Path{}
	labels, _ := o.get("labels")
	for _, e := range c.items(labels) {
		var names []string
		l, _ := e.([]any)
		if s, ok := e.(*gvalue.Set); ok {
			l = s.Items()
		}
		for _, n := range l {
			if s, ok := n.(string); ok {
				names = append(names, s)
			}
		}
		p.Labels = append(p.Labels, names)
	}
	objects, _ := o.get("objects")
	p.Objects = c.items(objects)
	return p
}

// tree reads [{"key": .., "value": tree}, ..]. The type tag of a subtree is optional.
func (c *converter) tree(v any) *gvalue.Tree {
	t := &gvalue.Tree{}
	if o, ok := v.(*object); ok {
		v, _ = o.get("@value")
	}
	l, ok := v.([]any)
	if !ok {
		c.fail("an array of tree entries expected")
		return t
	}
	for _, e := range l {
		o := c.object(e)
		child, _ := o.get("value")
		t.Entries = append(t.Entries, gvalue.TreeEntry{Key: c.member(o, "key"), Child: c.tree(child)})
		if c.err != nil {
			break
		}
	}
	return t
}

func (c *converter) traverser(v any) any {
	o := c.object(v)
	bulk, _ := c.member(o, "bulk").(int64)
	return gvalue.Traverser{Bulk: bulk, Value: c.member(o, "value")}
}

func (c *converter) bytecode(v any) any {
	o := c.object(v)
	b := &gvalue.Bytecode{Source: c.instructions(o, "source"), Steps: c.instructions(o, "step")}
	if c.err != nil {
		return nil
	}
	return gvalue.ReduceBytecode(b)
}

// instructions reads [["name", arg, ..], ..].
func (c *converter) instructions(o *object, key string) []gvalue.Instruction {
	v, _ := o.get(key)
	if v == nil {
		return nil
	}
	l, ok := v.([]any)
	if !ok {
		c.fail("an array of instructions expected")
		return nil
	}
	ins := make([]gvalue.Instruction, 0, len(l))
	for _, e := range l {
		parts, ok := e.([]any)
		var op string
		if ok && len(parts) > 0 {
			op, ok = parts[0].(string)
		}
		if !ok || len(parts) == 0 {
			c.fail("an instruction is an array of its name and arguments")
			return nil
		}
		args := make([]any, len(parts)-1)
		for i, a := range parts[1:] {
			args[i] = c.value(a)
		}
		ins = append(ins, gvalue.Instruction{Op: op, Args: args})
	}
	return ins
}

func (c *converter) predicate(v any, text bool) any {
	o := c.object(v)
	p := &gvalue.P{Op: c.label(o, "predicate"), Text: text}
	if p.Op == "" {
		return c.fail("a predicate without a name")
	}
	arg, _ := o.get("value")
	if l, ok := arg.([]any); ok && p.Op != "within" && p.Op != "without" {
		p.Args = c.items(l)
	} else {
		p.Args = []any{c.value(arg)}
	}
	return gvalue.UnrollP(p)
}

func (c *converter) binding(v any) any {
	o := c.object(v)
	return &gvalue.Binding{Key: c.label(o, "key"), Value: c.member(o, "value")}
}

func (c *converter) lambda(v any) any {
	o := c.object(v)
	n, ok := c.member(o, "arguments").(int32)
	if !ok {
		n = -1
	}
	return &gvalue.Lambda{Language: c.label(o, "language"), Script: c.label(o, "script"), Args: n}
}

// strategy reads {"fqcn": class, "conf": settings}, or only the settings, as older clients send them.
func (c *converter) strategy(name string, v any) any {
	o := c.object(v)
	s := &gvalue.Strategy{Class: name, Config: gvalue.NewMap(0)}
	conf := o
	if fqcn := c.label(o, "fqcn"); fqcn != "" {
		s.Class = fqcn
		if !strings.HasSuffix(fqcn, "Strategy") || !isClassName(fqcn) {
			return c.fail("not the class of a strategy: %.50s", fqcn)
		}
		v, _ := o.get("conf")
		if v == nil {
			return s
		}
		conf = c.object(v)
	}
	for _, m := range conf.members {
		s.Config.Put(m.name, c.value(m.val))
	}
	return s
}

// isClassName reports whether s can be the name of a Java class.
func isClassName(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '$':
		default:
			return false
		}
	}
	return s != ""
}

package mongoshell

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// mostDepth is the depth of a document, as in MongoDB.
const mostDepth = 200

// toBSON returns an object of JavaScript as a document.
func (s *Shell) toBSON(v goja.Value) (doc.Doc, error) {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil, errors.New("want an object")
	}
	return s.appendObject(nil, o, 0)
}

func (s *Shell) appendObject(b []byte, o *goja.Object, depth int) ([]byte, error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("the document has more than %d levels, or contains itself", mostDepth)
	}
	at, b := bson.Begin(b)
	var err error
	for _, key := range o.Keys() {
		if strings.ContainsRune(key, 0) {
			return nil, errors.New("the name of a field has a zero byte")
		}
		if b, err = s.appendElement(b, key, o.Get(key), depth); err != nil {
			return nil, err
		}
	}
	return bson.End(b, at), nil
}

func (s *Shell) appendArray(b []byte, o *goja.Object, depth int) ([]byte, error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("the document has more than %d levels, or contains itself", mostDepth)
	}
	at, b := bson.Begin(b)
	var err error
	for i := range int(o.Get("length").ToInteger()) {
		key := fmt.Sprint(i)
		if b, err = s.appendElement(b, key, o.Get(key), depth); err != nil {
			return nil, err
		}
	}
	return bson.End(b, at), nil
}

// appendElement appends a field. Numbers are of 32 bits if they are whole and fit, else doubles, as in MongoDB's shell.
func (s *Shell) appendElement(b []byte, key string, v goja.Value, depth int) ([]byte, error) {
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return bson.AppendNull(b, key), nil
	}
	o, ok := v.(*goja.Object)
	if !ok {
		switch x := v.Export().(type) {
		case string:
			return bson.AppendString(b, key, x), nil
		case bool:
			return bson.AppendBool(b, key, x), nil
		case int64:
			if x == int64(int32(x)) {
				return bson.AppendInt32(b, key, int32(x)), nil
			}
			return bson.AppendDouble(b, key, float64(x)), nil
		case float64:
			if x == float64(int32(x)) && !(x == 0 && math.Signbit(x)) {
				return bson.AppendInt32(b, key, int32(x)), nil
			}
			return bson.AppendDouble(b, key, x), nil
		case *big.Int:
			if !x.IsInt64() {
				return nil, fmt.Errorf("%s doesn't fit into 64 bits", x)
			}
			return bson.AppendInt64(b, key, x.Int64()), nil
		}
		return nil, fmt.Errorf("%s: a value of this kind can't be stored", key)
	}
	if kind := o.Get("_bsontype"); kind != nil && !goja.IsUndefined(kind) {
		v, err := s.typed(kind.String(), o, depth)
		if err != nil {
			return nil, err
		}
		return value.AppendElement(b, key, v), nil
	}
	switch o.ClassName() {
	case "Date":
		t, ok := o.Export().(time.Time)
		if !ok {
			return nil, fmt.Errorf("%s: the date is invalid", key)
		}
		return bson.AppendDate(b, key, t.UnixMilli()), nil
	case "RegExp":
		r := value.RegexOf(o.Get("source").String(), options(o.Get("flags").String()))
		return value.AppendElement(b, key, r), nil
	case "Array":
		return s.appendArray(bson.AppendHead(b, bson.TypeArray, key), o, depth+1)
	case "Function":
		return value.AppendElement(b, key, value.CodeOf([]byte(o.String()))), nil
	case "Number", "String", "Boolean":
		valueOf, _ := goja.AssertFunction(o.Get("valueOf"))
		plain, err := valueOf(o)
		if err != nil {
			return nil, err
		}
		return s.appendElement(b, key, plain, depth)
	}
	switch x := o.Export().(type) {
	case []byte:
		return bson.AppendBinary(b, key, x), nil
	case goja.ArrayBuffer:
		return bson.AppendBinary(b, key, x.Bytes()), nil
	}
	return s.appendObject(bson.AppendHead(b, bson.TypeDocument, key), o, depth+1)
}

// options returns the options of a regular expression for the flags of JavaScript's, of which some mean nothing here.
func options(flags string) string {
	out := ""
	for _, f := range "imsx" {
		if strings.ContainsRune(flags, f) {
			out += string(f)
		}
	}
	return out
}

// typed returns the value of an instance of a type of types.js.
func (s *Shell) typed(kind string, o *goja.Object, depth int) (value.Value, error) {
	malformed := fmt.Errorf("the value of type %s is malformed", kind)
	switch kind {
	case "ObjectId":
		id, err := hex.DecodeString(o.Get("hex").String())
		if err != nil || len(id) != 12 {
			return value.Value{}, malformed
		}
		return value.ObjectIDOf(id), nil
	case "Long":
		n, ok := o.Get("big").Export().(*big.Int)
		if !ok || !n.IsInt64() {
			return value.Value{}, malformed
		}
		return value.Int64Of(n.Int64()), nil
	case "Int32":
		return value.Int32Of(int32(o.Get("value").ToInteger())), nil
	case "Double":
		return value.DoubleOf(o.Get("value").ToFloat()), nil
	case "Decimal128":
		if d, ok := value.ParseDecimal(o.Get("text").String()); ok {
			return d, nil
		}
	case "Binary":
		data, err := base64.StdEncoding.DecodeString(o.Get("base64").String())
		if sub := o.Get("sub_type").ToInteger(); err == nil && sub >= 0 && sub < 256 {
			return value.BinaryOf(byte(sub), data), nil
		}
	case "Timestamp":
		t, i := uint32(o.Get("t").ToInteger()), uint32(o.Get("i").ToInteger())
		return value.TimestampOf(uint64(t)<<32 | uint64(i)), nil
	case "MinKey":
		return value.MinKeyValue(), nil
	case "MaxKey":
		return value.MaxKeyValue(), nil
	case "BSONRegExp":
		return value.RegexOf(o.Get("pattern").String(), o.Get("options").String()), nil
	case "Code":
		code := []byte(o.Get("code").String())
		scope, ok := o.Get("scope").(*goja.Object)
		if !ok {
			return value.CodeOf(code), nil
		}
		d, err := s.appendObject(nil, scope, depth+1)
		if err != nil {
			return value.Value{}, err
		}
		raw := bson.AppendCodeScopeValue(nil, code, d)
		v, _, ok := value.ReadValue(bson.TypeCodeScope, raw)
		if ok {
			return v, nil
		}
	}
	return value.Value{}, malformed
}

// toJS returns a value of BSON for scripts.
func (s *Shell) toJS(v value.Value) goja.Value {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return goja.Null()
	case value.Bool:
		return s.vm.ToValue(v.Bool())
	case value.Int32:
		return s.vm.ToValue(v.Int())
	case value.Double:
		return s.vm.ToValue(v.Float())
	case value.String, value.Symbol:
		return s.vm.ToValue(v.Str())
	case value.Int64:
		return s.made("Long", s.vm.ToValue(big.NewInt(v.Int())))
	case value.Decimal:
		return s.made("Decimal128", s.vm.ToValue(value.DecimalText(v)))
	case value.ObjectID:
		return s.made("ObjectId", s.vm.ToValue(hex.EncodeToString(v.Bytes())))
	case value.Date:
		d, err := s.vm.New(s.vm.Get("Date"), s.vm.ToValue(v.DateMS()))
		if err != nil {
			panic(err)
		}
		return d
	case value.Binary, value.UUID:
		b := s.made("Binary", s.vm.ToValue(""), s.vm.ToValue(int(v.Subtype())))
		s.set(b, "base64", s.vm.ToValue(base64.StdEncoding.EncodeToString(v.Bytes())))
		return b
	case value.Timestamp:
		return s.made("Timestamp", s.vm.ToValue(v.Raw64()>>32), s.vm.ToValue(v.Raw64()&math.MaxUint32))
	case value.MinKey:
		return s.made("MinKey")
	case value.MaxKey:
		return s.made("MaxKey")
	case value.Regex:
		pattern, opts := v.RegexParts()
		if strings.Trim(string(opts), "ims") == "" {
			r, err := s.vm.New(s.vm.Get("RegExp"), s.vm.ToValue(string(pattern)), s.vm.ToValue(string(opts)))
			if err == nil {
				return r
			}
		}
		return s.made("BSONRegExp", s.vm.ToValue(string(pattern)), s.vm.ToValue(string(opts)))
	case value.Code:
		return s.made("Code", s.vm.ToValue(string(v.Bytes())))
	case value.CodeScope:
		code, scope := v.CodeScopeParts()
		return s.made("Code", s.vm.ToValue(string(code)), s.toJS(value.ObjectOf(scope)))
	case value.DBPointer:
		ns, id := v.DBPointerParts()
		o := s.vm.NewObject()
		s.set(o, "$ref", s.vm.ToValue(string(ns)))
		s.set(o, "$id", s.made("ObjectId", s.vm.ToValue(hex.EncodeToString(id))))
		return o
	case value.Array:
		items := make([]any, 0, v.Len())
		for it := v.Iter(); it.Next(); {
			items = append(items, s.toJS(it.Value()))
		}
		return s.vm.NewArray(items...)
	}
	o := s.vm.NewObject()
	for it := v.Iter(); it.Next(); {
		s.set(o, string(it.Key()), s.toJS(it.Value()))
	}
	return o
}

// set sets a field of an object, whatever its name is: __proto__, too.
func (s *Shell) set(o *goja.Object, name string, v goja.Value) {
	if err := o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE); err != nil {
		panic(s.vm.NewGoError(err))
	}
}

// made returns a new instance of a type of types.js.
func (s *Shell) made(kind string, args ...goja.Value) *goja.Object {
	o, err := s.vm.New(s.types[kind], args...)
	if err != nil {
		panic(s.vm.NewGoError(err))
	}
	return o
}

// extended returns a value as Extended JSON.
func (s *Shell) extended(v goja.Value, relaxed bool) (string, error) {
	if v == nil || goja.IsUndefined(v) {
		return "null", nil
	}
	at, b := bson.Begin(nil)
	b, err := s.appendElement(b, "v", v, 0)
	if err != nil {
		return "", err
	}
	return string(doc.AppendExtJSON(nil, doc.Get(bson.End(b, at), "v"), relaxed)), nil
}

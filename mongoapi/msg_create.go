package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/collation"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// create makes a collection with options. If it exists with the same options there is nothing to do, except in a
// transaction, which fails then.
func create(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	if r.body.Get("viewOn").IsDefined() {
		if r.multi != nil {
			return dst, merr.New(merr.OperationNotInTransaction, "Cannot create a view in a multi-document "+
				"transaction.")
		}
		return dst, r.createView(name)
	}
	if args.Given(r.body, "pipeline").IsDefined() {
		return dst, merr.New(merr.BadValue, "'pipeline' requires 'viewOn' to also be specified")
	}
	if d, err := r.viewDoc(r.db, name); d.IsDefined() || err != nil {
		if err == nil {
			err = merr.New(merr.NamespaceExists, "A view already exists. NS: %s.%s", r.db, name)
		}
		return dst, err
	}
	opts, err := r.createOptions(r.body)
	if err != nil {
		return dst, err
	}
	k, made, err := r.ensure(r.db, name, func(s *core.ContainerSpec) {
		if opts != nil {
			setOptions(s, opts)
			s.Event = createEvent(opts)
		}
	})
	if err == nil && !made && r.multi != nil {
		err = merr.New(merr.NamespaceExists, "Collection %s.%s already exists.", r.db, name)
	}
	if err == nil && !made && !sameCreation(k.opts, opts) {
		has := "{}"
		if len(k.opts) > 0 {
			has = update.Show(optionsIn(k.opts))
		}
		err = merr.New(merr.NamespaceExists, "namespace %s.%s already exists, but with different options: %s", r.db,
			name, has)
	}
	return dst, err
}

// sameCreation reports whether two collections have the same options.
func sameCreation(a, b []byte) bool {
	x, y := optionsIn(a), optionsIn(b)
	for _, v := range []value.Value{x, y} {
		for it := v.Iter(); it.Next(); {
			if name := string(it.Key()); value.CompareBSON(x.Get(name), y.Get(name)) != 0 {
				return false
			}
		}
	}
	return true
}

// createOptions reads the options of a new collection in the form in which they are stored; nil if there are none.
func (r *request) createOptions(body value.Value) ([]byte, error) {
	if err := r.checkValidator("create", body); err != nil {
		return nil, err
	}
	at, b := bson.Begin(nil)
	for it := body.Iter(); it.Next(); {
		v := it.Value()
		switch key := string(it.Key()); key {
		case "validator", "validationLevel", "validationAction":
			if v.Kind() != value.Null && !(key == "validator" && v.Len() == 0) {
				b = value.AppendElement(b, key, v)
			}
		case "timeseries":
			ts, err := timeSeries(v)
			if err != nil {
				return nil, err
			}
			b = value.AppendElement(b, key, ts)
		case "clusteredIndex":
			c, err := clusteredIndex(v)
			if err != nil {
				return nil, err
			}
			b = value.AppendElement(b, key, c)
		case "expireAfterSeconds":
			n, err := expiry(body, v)
			if err != nil {
				return nil, err
			}
			b = value.AppendElement(b, key, n)
		case "encryptedFields":
			if expr.Truthy(v) && !(v.Kind() == value.Object && v.Len() == 0) {
				return nil, merr.NotSupported("the option " + key + " of create")
			}
		case "capped", "size", "max": // together, below
		case "changeStreamPreAndPostImages":
			images, err := imagesOf("create", body)
			if err != nil {
				return nil, err
			}
			if images.Bool() {
				b = value.AppendElement(b, key, enabledImages())
			}
		case "collation":
			if v.Kind() == value.Object && v.Len() == 0 {
				return nil, merr.New(merr.BadValue, "'collation' cannot be an empty document.")
			}
			c, err := collation.Parse(v)
			if err != nil {
				return nil, err
			}
			b = value.AppendElement(b, key, collation.Doc(c))
		}
	}
	b, err := r.appendCapped(b, body)
	if err != nil {
		return nil, err
	}
	if b = bson.End(b, at); len(b) == len(bson.Empty) {
		return nil, nil
	}
	return b, nil
}

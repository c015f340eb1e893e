package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// collMod changes the options of a collection, and the lifetime of an index, or hides or shows it.
func collMod(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	if err := r.checkDryRun(); err != nil {
		return dst, err
	}
	k, v, err := r.openRead(r.db, name)
	if err != nil {
		return dst, err
	}
	if v != nil {
		return dst, r.changeView(name)
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns does not exist: %s.%s", r.db, name)
	}
	for _, name := range []string{"viewOn", "pipeline"} {
		if args.Given(r.body, name).IsDefined() {
			return dst, merr.New(merr.InvalidOptions, "option only supported on a view: %s", name)
		}
	}
	for _, name := range append(changeableOptions, "changeStreamPreAndPostImages") {
		if k.series().IsDefined() && args.Given(r.body, name).IsDefined() {
			return dst, merr.New(merr.InvalidOptions, "option not supported on a time-series collection: %s", name)
		}
	}
	mod := args.Given(r.body, "index")
	if !mod.IsDefined() || r.changesOptions() {
		if err := r.modify(k); err != nil || !mod.IsDefined() {
			return dst, err
		}
	}
	m, err := readIndexMod(mod)
	if err != nil {
		return dst, err
	}
	if m.after.IsDefined() && k.series().IsDefined() {
		return dst, merr.New(merr.InvalidOptions, "TTL indexes are not supported for time-series collections. Please "+
			"refer to the documentation and use the top-level 'expireAfterSeconds' option instead")
	}
	m.others = r.changesOptions()
	changed, err := m.apply(slices.Clone(k.indexSpecs()))
	if err != nil || args.Flag(r.body, "dryRun", false) {
		return dst, err
	}
	if !slices.EqualFunc(changed, k.indexSpecs(), value.Identical) {
		if err := r.changeIndexes(k, r.modEvent, m.apply); err != nil {
			return dst, r.notUnique(k, m.changed, err)
		}
	}
	return append(dst, m.reply...), nil
}

// changeableOptions are the options of a collection that collMod changes.
var changeableOptions = []string{"validator", "validationLevel", "validationAction"}

// changesOptions reports whether the command gives an option of the collection.
func (r *request) changesOptions() bool {
	for it := r.body.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "changeStreamPreAndPostImages", "cappedSize", "cappedMax", "expireAfterSeconds", "timeseries":
			return true
		default:
			if slices.Contains(changeableOptions, name) && args.Given(r.body, name).IsDefined() {
				return true
			}
		}
	}
	return false
}

// modify changes the options that a collMod gives.
func (r *request) modify(k *coll) error {
	mods, err := r.optionMods(k)
	if err != nil {
		return err
	}
	if !r.changesOptions() && !r.s.eng.Journal().Records(k.Database(), k.ID()) {
		return nil // it changes nothing, and nobody wants to know
	}
	given := func(name string) bool { return args.Given(r.body, name).IsDefined() }
	c, err := r.s.eng.ChangeContainer(r.ctx, k.Database(), k.ID(), func(s *core.ContainerSpec) error {
		for _, m := range mods {
			setOption(s, m.name, m.v)
		}
		if given("expireAfterSeconds") {
			declared := indexes.In(s)
			if err := setIndexes(s, declared, declared); err != nil {
				return err
			}
		}
		s.Event = r.modEvent()
		return nil
	})
	if status.Is(err, status.NotFound) {
		return merr.New(merr.NamespaceNotFound, "ns does not exist: %s", k.namespace())
	}
	if err == nil && (given("cappedSize") || given("cappedMax")) {
		err = c.KeepNewest(r.ctx)
	}
	if err == nil {
		*k = *newColl(c)
	}
	return err
}

// optionMod is a changed option of a collection; an undefined one is removed.
type optionMod struct {
	name string
	v    value.Value
}

// optionMods reads the options of a collMod, in the order in which they are stored.
func (r *request) optionMods(k *coll) (mods []optionMod, err error) {
	if err := r.checkValidator("collMod", r.body); err != nil {
		return nil, err
	}
	images, err := imagesOf(r.name, r.body)
	if err != nil {
		return nil, err
	}
	if images.IsDefined() {
		m := optionMod{name: "changeStreamPreAndPostImages"}
		if images.Bool() {
			m.v = enabledImages()
		}
		mods = append(mods, m)
	}
	size, most := args.Given(r.body, "cappedSize"), args.Given(r.body, "cappedMax")
	if (size.IsDefined() || most.IsDefined()) && k.Spec().Capped == nil {
		return nil, merr.New(merr.InvalidOptions, "Collection must be capped.")
	}
	if size.IsDefined() {
		n, err := cappedSize("collMod.cappedSize", size)
		if err != nil {
			return nil, err
		}
		mods = append(mods, optionMod{"size", value.Int64Of(n)})
	}
	if most.IsDefined() {
		n, err := cappedMax(most)
		if err != nil {
			return nil, err
		}
		m := optionMod{name: "max"}
		if n > 0 {
			m.v = value.Int64Of(n)
		}
		mods = append(mods, m)
	}
	for _, name := range changeableOptions {
		if v := args.Given(r.body, name); name == "validator" && v.IsDefined() && v.Len() == 0 {
			mods = append(mods, optionMod{name: name})
		} else if v.IsDefined() {
			mods = append(mods, optionMod{name, v})
		}
	}
	after, series := args.Given(r.body, "expireAfterSeconds"), args.Given(r.body, "timeseries")
	expires := after.IsDefined()
	if expires {
		if after, err = k.changedExpiry(after); err != nil {
			return nil, err
		}
	}
	if series.IsDefined() {
		if series, err = k.changedSeries(series); err != nil {
			return nil, err
		}
		mods = append(mods, optionMod{"timeseries", series})
	}
	if expires {
		mods = append(mods, optionMod{"expireAfterSeconds", after})
	}
	return mods, nil
}

// indexMod is the argument index of collMod.
type indexMod struct {
	which   value.Value // a name or a key
	after   value.Value // expireAfterSeconds, or Undefined
	hidden  value.Value
	unique  value.Value
	prepare value.Value // prepareUnique
	others  bool        // the command changes something else too
	reply   []byte
	changed value.Value // the index as it is then
}

func readIndexMod(mod value.Value) (m indexMod, err error) {
	for it := mod.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "keyPattern", "name":
			if m.which.IsDefined() {
				return m, merr.New(merr.InvalidOptions, "Cannot specify both key pattern and name.")
			}
			m.which = it.Value()
		case "expireAfterSeconds":
			if m.after, err = indexes.Seconds(it.Value(), mod); err != nil {
				return m, merr.New(merr.InvalidOptions, "%s", err.Error())
			}
		case "hidden":
			m.hidden = value.BoolOf(expr.Truthy(it.Value()))
		case "unique", "prepareUnique":
			v := it.Value()
			if v.Kind() != value.Bool && !v.IsNumber() {
				return m, args.Want(false, "collMod.index", it.Key(), v, "types '[bool, long, int, decimal, double]'")
			}
			if v = value.BoolOf(expr.Truthy(v)); name == "unique" {
				m.unique = v
			} else {
				m.prepare = v
			}
		default:
			return m, merr.New(merr.UnknownField, "BSON field 'collMod.index.%s' is an unknown field.", name)
		}
	}
	if m.which.Kind() != value.String && m.which.Kind() != value.Object {
		return m, merr.New(merr.InvalidOptions, "Must specify either index name or key pattern.")
	}
	if !m.after.IsDefined() && !m.hidden.IsDefined() && !m.unique.IsDefined() && !m.prepare.IsDefined() {
		return m, merr.New(merr.InvalidOptions, "no expireAfterSeconds, hidden, unique, or prepareUnique field")
	}
	return m, nil
}

// apply changes the index in a list, and makes the reply.
func (m *indexMod) apply(specs []value.Value) ([]value.Value, error) {
	m.reply = nil
	if m.which.Str() == "_id_" || m.which.Kind() == value.Object && indexes.IsOnID(m.which) {
		return nil, merr.New(merr.BadValue, "can't hide or expire documents by the index _id_")
	}
	i, err := findIndex(specs, m.which)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, merr.New(merr.IndexNotFound, "cannot find index %s for ns", update.Show(m.which))
	}
	d := specs[i]
	for _, o := range []struct {
		name string
		v    value.Value
		off  bool // the option isn't stored
	}{{"expireAfterSeconds", m.after, false}, {"hidden", m.hidden, m.hidden.IsDefined() && !m.hidden.Bool()}} {
		if !o.v.IsDefined() {
			continue
		}
		old := d.Get(o.name)
		if o.name == "hidden" && !old.IsDefined() {
			old = value.BoolOf(false)
		}
		if value.CompareBSON(old, o.v) != 0 {
			if old.IsDefined() {
				m.reply = value.AppendElement(m.reply, o.name+"_old", replied(old))
			}
			m.reply = value.AppendElement(m.reply, o.name+"_new", replied(o.v))
		}
		d = indexes.With(d, o.name, o.v, o.off)
	}
	others := m.others || m.after.IsDefined() || m.hidden.IsDefined() || m.unique.IsDefined()
	if d, err = m.setUnique(d, others); err != nil {
		return nil, err
	}
	specs[i], m.changed = d, d
	return specs, indexes.CheckOptions(d)
}

// replied returns a value as replies have it: seconds as a long.
func replied(v value.Value) value.Value {
	if v.Kind() == value.Int32 {
		return value.Int64Of(v.Int())
	}
	return v
}

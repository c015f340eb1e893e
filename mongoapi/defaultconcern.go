package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// The concerns of commands that name none. They are a document of config.settings, as in MongoDB, so that all servers
// of a store have the same. A default that can be set means the same as every other one here: there is one member, and
// an answer is durable. So no command looks at them.
//
// Example: {setDefaultRWConcern: 1, defaultWriteConcern: {w: "majority"}} stores {_id: "ReadWriteConcernDefaults",
// defaultWriteConcern: {w: "majority"}, ..}.

const (
	settingsDB         = "config"
	settingsCollection = "settings"
	defaultConcernsID  = "ReadWriteConcernDefaults"
)

var defaultConcernArguments = args.Set{"defaultReadConcern": args.Object, "defaultWriteConcern": args.Object}

// defaultConcerns returns the document of the defaults, Undefined if none were set.
func (r *request) defaultConcerns() (value.Value, error) {
	k, err := r.lookUp(settingsDB, settingsCollection)
	if k == nil || err != nil {
		return value.Undef(), err
	}
	id := value.StringOf(defaultConcernsID)
	it, err := k.Read(r.ctx, core.PartitionKey{id}, id)
	if status.Is(err, status.NotFound) {
		return value.Undef(), nil
	}
	if err != nil {
		return value.Undef(), err
	}
	r.chargeRead(it)
	return value.ObjectOf(it.Doc), nil
}

// hasDefaults refuses the commands about defaults where there are none.
func (r *request) hasDefaults() error {
	if err := r.adminOnly(); err != nil {
		return err
	}
	if r.s.o.Standalone {
		return merr.New(51300, "'%s' is not supported on standalone nodes.", r.name)
	}
	return nil
}

func getDefaultRWConcern(r *request, dst []byte) ([]byte, error) {
	if err := r.hasDefaults(); err != nil {
		return dst, err
	}
	d, err := r.defaultConcerns()
	if err != nil {
		return dst, err
	}
	return r.appendDefaults(dst, d), nil
}

// appendDefaults appends the concerns that are set, or else MongoDB's own, and which of both they are.
func (r *request) appendDefaults(dst []byte, d value.Value) []byte {
	read, write := d.Get("defaultReadConcern"), d.Get("defaultWriteConcern")
	source := func(v value.Value) string {
		if v.IsDefined() {
			return "global"
		}
		return "implicit"
	}
	if read.IsDefined() {
		dst = value.AppendElement(dst, "defaultReadConcern", read)
	} else {
		at, b := bson.BeginObject(dst, "defaultReadConcern")
		dst = bson.End(bson.AppendString(b, "level", "local"), at)
	}
	if write.IsDefined() {
		dst = value.AppendElement(dst, "defaultWriteConcern", write)
	} else {
		at, b := bson.BeginObject(dst, "defaultWriteConcern")
		dst = bson.End(bson.AppendInt32(bson.AppendString(b, "w", "majority"), "wtimeout", 0), at)
	}
	for _, name := range []string{"updateOpTime", "updateWallClockTime"} {
		if v := d.Get(name); v.IsDefined() {
			dst = value.AppendElement(dst, name, v)
		}
	}
	dst = bson.AppendString(dst, "defaultWriteConcernSource", source(write))
	dst = bson.AppendString(dst, "defaultReadConcernSource", source(read))
	return bson.AppendDate(dst, "localUpdateWallClockTime", r.s.began.UnixMilli())
}

func setDefaultRWConcern(r *request, dst []byte) ([]byte, error) {
	if err := r.hasDefaults(); err != nil {
		return dst, err
	}
	read, write := args.Given(r.body, "defaultReadConcern"), args.Given(r.body, "defaultWriteConcern")
	if !read.IsDefined() && !write.IsDefined() {
		return dst, merr.New(merr.BadValue, "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" "+
			"fields must be present")
	}
	if err := checkDefaultRead(read); err != nil {
		return dst, err
	}
	if err := checkDefaultWrite(write); err != nil {
		return dst, err
	}
	was, err := r.defaultConcerns()
	if err != nil {
		return dst, err
	}
	switch {
	case write.IsDefined() && write.Len() == 0 && was.Get("defaultWriteConcern").IsDefined():
		return dst, merr.New(merr.IllegalOperation, "The global default write concern cannot be unset once it is set.")
	case !write.IsDefined() || write.Len() == 0:
		write = was.Get("defaultWriteConcern")
	}
	if !read.IsDefined() {
		read = was.Get("defaultReadConcern")
	}
	now := r.s.clk.Now()
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "_id", defaultConcernsID)
	if read.Len() > 0 {
		b = value.AppendElement(b, "defaultReadConcern", read)
	}
	if write.Len() > 0 {
		b = value.AppendElement(b, "defaultWriteConcern", write)
	}
	b = value.AppendElement(b, "updateOpTime", value.TimestampOf(uint64(now.Unix())<<32|1))
	b = bson.End(bson.AppendDate(b, "updateWallClockTime", now.UnixMilli()), at)
	k, err := r.ensureSettings()
	if err != nil {
		return dst, err
	}
	res, err := k.Write(r.ctx, core.Write{Kind: core.Upsert, Doc: b})
	if err != nil {
		return dst, err
	}
	r.charge += res.Charge
	return r.appendDefaults(dst, value.ObjectOf(b)), nil
}

// checkDefaultRead checks a read concern that is to be the default. An empty one means that there is none.
func checkDefaultRead(v value.Value) error {
	for it := v.Iter(); v.IsDefined() && it.Next(); {
		if string(it.Key()) != "level" {
			return merr.New(merr.BadValue, "'%s' is not suitable for the default read concern", it.Key())
		}
		if err := args.CheckLevel(it.Value()); err != nil {
			return err
		}
		if l := it.Value().Str(); l == "linearizable" || l == "snapshot" {
			return merr.New(merr.BadValue, "level: '%s' is not suitable for the default read concern", l)
		}
	}
	return nil
}

// checkDefaultWrite checks a write concern that is to be the default.
func checkDefaultWrite(v value.Value) error {
	if !v.IsDefined() {
		return nil
	}
	unmet, err := args.ParseWriteConcern(v)
	switch w := v.Get("w"); {
	case err != nil:
		return err
	case unmet != nil:
		return unmet
	case w.IsNumber() && num.IsZero(w):
		return merr.New(merr.BadValue, "Unacknowledged write concern is not suitable for the default write concern")
	}
	return nil
}

// ensureSettings returns the collection of the deployment's settings. It creates it if necessary.
func (r *request) ensureSettings() (*coll, error) {
	for {
		k, err := r.lookUp(settingsDB, settingsCollection)
		if k != nil || err != nil {
			return k, err
		}
		if k, err = r.makeCollection(settingsDB, settingsCollection); k != nil || err != nil {
			return k, err
		}
	}
}

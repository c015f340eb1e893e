package mongoapi

import (
	"crypto/md5"
	"encoding/hex"
	"hash"
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// existing opens the collection of a command that needs one.
func (r *request) existing() (*coll, error) {
	name, k, err := r.openNamed()
	if err == nil && k == nil {
		err = merr.New(merr.NamespaceNotFound, "Collection '%s.%s' does not exist to %s.", r.db, name, r.name)
	}
	return k, err
}

// each calls f with all documents that match a query, in an order.
func (r *request) each(k *coll, query value.Value, by order.Order, f func(d value.Value) error) error {
	q, err := filter.Compile(query, r.filterOptions(nil))
	if err != nil {
		return err
	}
	src := newSource(k, q, by, exec.AnyOrder, 0, 0, r.exprEnv())
	defer func() {
		src.Close()
		r.charge += src.charge
	}()
	for {
		d, ok, err := src.Next()
		if !ok || err != nil {
			return err
		}
		if err := f(d); err != nil {
			return err
		}
	}
}

// validateCollection reads all documents of a collection. It counts those that are malformed, and those that don't
// satisfy the validator. What the store has besides documents is checked by "orrery check".
func validateCollection(r *request, dst []byte) ([]byte, error) {
	k, err := r.existing()
	if err != nil {
		return dst, err
	}
	if expr.Truthy(r.body.Get("background")) && expr.Truthy(r.body.Get("full")) {
		return dst, merr.New(merr.InvalidOptions, "Running the validate command with both { background: true } and "+
			"{ full: true } is not supported.")
	}
	v, err := r.validator(k)
	if err != nil {
		return dst, err
	}
	var records, invalid, broken int64
	err = r.each(k, value.Undef(), nil, func(d value.Value) error {
		records++
		if doc.Validate(d.Bytes(), maxDepth) != nil {
			invalid++
			return nil
		}
		if v == nil {
			return nil
		}
		ok, err := v.f.Match(v.env, d)
		if !ok {
			broken++
		}
		return err
	})
	if err != nil {
		return dst, err
	}
	var warnings []string
	if broken > 0 {
		warnings = append(warnings, "Detected one or more documents not compliant with the collection's schema.")
	}
	specs := append([]value.Value{k.idIndex()}, k.indexSpecs()...)
	dst = bson.AppendString(dst, "ns", k.namespace())
	dst = value.AppendElement(dst, "nInvalidDocuments", value.IntOf(invalid))
	dst = value.AppendElement(dst, "nNonCompliantDocuments", value.IntOf(broken))
	dst = value.AppendElement(dst, "nrecords", value.IntOf(records))
	dst = bson.AppendInt32(dst, "nIndexes", int32(len(specs)))
	at, dst := bson.BeginObject(dst, "indexDetails")
	for _, s := range specs {
		ia, ib := bson.BeginObject(dst, s.Get("name").Str())
		dst = bson.End(bson.AppendBool(ib, "valid", true), ia)
	}
	dst = bson.End(dst, at)
	dst = bson.AppendBool(dst, "valid", invalid == 0)
	dst = bson.AppendBool(dst, "repaired", false)
	dst = bson.AppendStrings(dst, "warnings", warnings...)
	for _, name := range []string{"errors", "extraIndexEntries", "missingIndexEntries", "corruptRecords"} {
		dst = bson.AppendStrings(dst, name)
	}
	return dst, nil
}

// byID is the order of `_id`.
var byID = order.Order{{Path: []string{"_id"}}}

// dbHash computes digests of collections: the MD5 of their documents in the order of `_id`, as MongoDB does, and one of
// all of them.
func dbHash(r *request, dst []byte) ([]byte, error) {
	var only []string
	for _, v := range value.Elements(args.Given(r.body, "collections")) {
		if v.Kind() != value.String {
			return dst, merr.New(merr.BadValue, "collections entries have to be strings")
		}
		only = append(only, v.Str())
	}
	names, err := r.s.eng.Names(r.ctx, r.db, "")
	if err != nil {
		return dst, err
	}
	total := md5.New()
	hashes, uuids := []byte(nil), []byte(nil)
	var capped []string
	for c := range names {
		if len(only) > 0 && !slices.Contains(only, c.ID) {
			continue
		}
		k, err := r.lookUp(r.db, c.ID)
		if err != nil {
			return dst, err
		}
		if k == nil { // dropped meanwhile
			continue
		}
		h := md5.New()
		if err := r.hash(h, k); err != nil {
			return dst, err
		}
		sum := hex.EncodeToString(h.Sum(nil))
		total.Write([]byte(c.ID))
		total.Write([]byte(sum))
		hashes = bson.AppendString(hashes, c.ID, sum)
		uuids = value.AppendElement(uuids, c.ID, changes.UUIDOf(c.RID))
		if k.option("capped").Bool() {
			capped = append(capped, c.ID)
		}
	}
	dst = bson.AppendString(dst, "host", r.c.nc.LocalAddr().String())
	for _, part := range []struct {
		name string
		b    []byte
	}{{"collections", hashes}, {"uuids", uuids}} {
		at, b := bson.BeginObject(dst, part.name)
		dst = bson.End(append(b, part.b...), at)
	}
	dst = bson.AppendStrings(dst, "capped", capped...)
	dst = bson.AppendString(dst, "md5", hex.EncodeToString(total.Sum(nil)))
	return value.AppendElement(dst, "timeMillis", value.IntOf(r.s.clk.Now().Sub(r.start).Milliseconds())), nil
}

func (r *request) hash(h hash.Hash, k *coll) error {
	err := r.each(k, value.Undef(), byID, func(d value.Value) error {
		h.Write(d.Bytes())
		return nil
	})
	if status.Is(err, status.NotFound) {
		return nil
	}
	return err
}

// fileMD5 computes the MD5 of a GridFS file.
func fileMD5(r *request, dst []byte) ([]byte, error) {
	root := "fs"
	if v := r.body.Get("root"); v.Kind() == value.String && v.Str() != "" {
		root = v.Str()
	}
	if err := validCollection(r.db, root+".chunks"); err != nil {
		return dst, err
	}
	k, err := r.open(r.db, root+".chunks")
	if err != nil {
		return dst, err
	}
	h, n := md5.New(), int64(0)
	if k != nil {
		err = r.each(k, single("files_id", r.arg), order.Order{{Path: []string{"n"}}}, func(d value.Value) error {
			if at := d.Get("n"); !at.IsNumber() || at.Int() != n {
				return merr.New(10040, "chunks out of order")
			}
			h.Write(d.Get("data").Bytes())
			n++
			return nil
		})
		if err != nil {
			return dst, err
		}
	}
	dst = bson.AppendInt32(dst, "numChunks", int32(n))
	return bson.AppendString(dst, "md5", hex.EncodeToString(h.Sum(nil))), nil
}

// compact has nothing to do: the store merges what it has written by itself, while other commands go on.
func compact(r *request, dst []byte) ([]byte, error) {
	if _, err := r.existing(); err != nil {
		return dst, err
	}
	return bson.AppendInt64(dst, "bytesFreed", 0), nil
}

// reIndex isn't for members of a replica set. The indexes of a single server follow its policy at all times, and
// "orrery repair" creates them again.
func reIndex(r *request, dst []byte) ([]byte, error) {
	if _, err := r.existing(); err != nil {
		return dst, err
	}
	if !r.s.o.Standalone {
		return dst, merr.New(merr.IllegalOperation, "reIndex is only allowed on a standalone mongod instance.")
	}
	return dst, merr.NotSupported("reIndex")
}

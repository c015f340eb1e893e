package streams

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// itemEvents are the types of the events of documents.
var itemEvents = map[journal.Op]string{journal.Create: "insert", journal.Replace: "replace", journal.Update: "update",
	journal.Delete: "delete"}

// plainEvents are the types of events of the catalog that every stream shows. Others are shown with
// showExpandedEvents.
var plainEvents = map[string]bool{"drop": true, "rename": true, "dropDatabase": true}

// eventOf makes the event of an entry; ok is false if the stream doesn't show it.
func (st *Stream) eventOf(e *journal.Entry) (doc value.Value, ok bool, err error) {
	if e.Coll == changes.Views {
		doc, ok = st.viewEvent(e)
		return doc, ok, nil
	}
	note := value.Undef()
	kind := itemEvents[e.Op]
	if e.Op == journal.Change {
		note = value.ObjectOf(e.Note)
		if kind = note.Get("type").Str(); !plainEvents[kind] && !st.o.Expanded {
			return doc, false, nil
		}
		if st.o.NS.Coll != "" && e.Coll != st.o.NS.Coll && !(kind == "rename" &&
			note.Get("to").Str() == st.o.NS.Coll) {
			return doc, false, nil
		}
	}
	at, b := bson.Begin(make([]byte, 0, 256+len(e.Current)+len(e.Previous)))
	b = value.AppendElement(b, "_id", tokenDoc(changes.Token{Time: e.Time, N: e.N, Kind: changes.Event}))
	b = bson.AppendString(b, "operationType", kind)
	b = value.AppendElement(b, "clusterTime", value.TimestampOf(e.Time))
	if st.o.Expanded && kind != "dropDatabase" {
		b = value.AppendElement(b, "collectionUUID", changes.UUIDOf(e.RID))
	}
	b = bson.AppendDate(b, "wallTime", e.Millis)
	if e.Op != journal.Change {
		if b, err = st.appendFull(b, e); err != nil {
			return doc, false, err
		}
	}
	b = appendNS(b, "ns", e.DB, e.Coll)
	if e.Op == journal.Change {
		b = st.appendDescription(b, e, kind, note)
		return value.ObjectOf(bson.End(b, at)), true, nil
	}
	b = bson.AppendDocument(b, "documentKey", e.Key)
	if len(e.Note) > 0 {
		for it := value.ObjectOf(e.Note).Iter(); it.Next(); {
			b = append(b, it.Element()...)
		}
	}
	if e.Op == journal.Update {
		ua, ub := bson.BeginObject(b, "updateDescription")
		ub = changes.Describe(ub, value.ObjectOf(e.Previous), value.ObjectOf(e.Current), st.o.Expanded)
		b = bson.End(ub, ua)
	}
	if b, err = st.appendBefore(b, e); err != nil {
		return doc, false, err
	}
	return value.ObjectOf(bson.End(b, at)), true, nil
}

// viewEvent makes the event of a view, which is a document of its own.
func (st *Stream) viewEvent(e *journal.Entry) (doc value.Value, ok bool) {
	name := strings.TrimPrefix(value.ObjectOf(e.Key).Get("_id").Str(), e.DB+".")
	if st.o.NS.Coll != "" && name != st.o.NS.Coll {
		return doc, false
	}
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "_id", tokenDoc(changes.Token{Time: e.Time, N: e.N, Kind: changes.Event}))
	b = bson.AppendString(b, "operationType", map[journal.Op]string{journal.Create: "create", journal.Delete: "drop",
		journal.Replace: "modify", journal.Update: "modify"}[e.Op])
	b = value.AppendElement(b, "clusterTime", value.TimestampOf(e.Time))
	b = bson.AppendDate(b, "wallTime", e.Millis)
	b = appendNS(b, "ns", e.DB, name)
	if e.Op != journal.Delete {
		da, db := bson.BeginObject(b, "operationDescription")
		for it := value.ObjectOf(e.Current).Iter(); it.Next(); {
			if string(it.Key()) != "_id" {
				db = append(db, it.Element()...)
			}
		}
		b = bson.End(db, da)
	}
	return value.ObjectOf(bson.End(b, at)), true
}

// appendNS appends a namespace. A database alone has no collection.
func appendNS(dst []byte, name, db, coll string) []byte {
	at, dst := bson.BeginObject(dst, name)
	dst = bson.AppendString(dst, "db", db)
	if coll != "" {
		dst = bson.AppendString(dst, "coll", coll)
	}
	return bson.End(dst, at)
}

// appendFull appends fullDocument: the document after the change.
func (st *Stream) appendFull(dst []byte, e *journal.Entry) ([]byte, error) {
	switch {
	case e.Op == journal.Create || e.Op == journal.Replace:
		return bson.AppendDocument(dst, "fullDocument", e.Current), nil
	case e.Op != journal.Update || st.o.After == "default":
		return dst, nil
	case st.o.After == "updateLookup":
		return st.appendNow(dst, e)
	case e.Images:
		return bson.AppendDocument(dst, "fullDocument", e.Current), nil
	case st.o.After == "required":
		return dst, noImage("post", "update", e)
	}
	return bson.AppendNull(dst, "fullDocument"), nil
}

// appendBefore appends fullDocumentBeforeChange: the document before the change.
func (st *Stream) appendBefore(dst []byte, e *journal.Entry) ([]byte, error) {
	switch {
	case st.o.Before == "off" || e.Op == journal.Create:
		return dst, nil
	case e.Images && e.Previous != nil:
		return bson.AppendDocument(dst, "fullDocumentBeforeChange", e.Previous), nil
	case st.o.Before == "required":
		return dst, noImage("pre", "update, delete and replace", e)
	}
	return bson.AppendNull(dst, "fullDocumentBeforeChange"), nil
}

func noImage(which, events string, e *journal.Entry) error {
	return merr.New(merr.NoMatchingDocument, "Change stream was configured to require a %s-image for all %s events, "+
		"but the %s-image was not found for event: { ns: \"%s.%s\", documentKey: %s }", which, events, which, e.DB,
		e.Coll, update.Show(value.ObjectOf(e.Key)))
}

// appendNow appends fullDocument as it is now, null if it was deleted since.
func (st *Stream) appendNow(dst []byte, e *journal.Entry) ([]byte, error) {
	c, err := st.eng.Within(st.run.Context()).ContainerByRID(e.RID)
	if status.Is(err, status.NotFound) {
		return bson.AppendNull(dst, "fullDocument"), nil
	}
	if err != nil {
		return dst, err
	}
	key := value.ObjectOf(e.Key)
	id := key.Get("_id")
	pk := make(core.PartitionKey, 0, 1)
	for _, segs := range c.KeyPaths() {
		pk = append(pk, key.Get(strings.Join(segs, ".")))
	}
	it, err := c.Read(st.run.Context(), pk, id)
	if status.Is(err, status.NotFound) {
		return bson.AppendNull(dst, "fullDocument"), nil
	}
	if err != nil {
		return dst, err
	}
	return bson.AppendDocument(dst, "fullDocument", it.Doc), nil
}

// appendDescription appends what an event of the catalog says beyond its namespace.
func (st *Stream) appendDescription(dst []byte, e *journal.Entry, kind string, note value.Value) []byte {
	d := note.Get("operationDescription")
	switch kind {
	case "rename":
		dst = appendNS(dst, "to", e.DB, note.Get("to").Str())
		if !st.o.Expanded {
			return dst
		}
		at, b := bson.BeginObject(dst, "operationDescription")
		b = appendNS(b, "to", e.DB, note.Get("to").Str())
		if gone := note.Get("dropped"); gone.IsDefined() {
			b = value.AppendElement(b, "dropTarget", changes.UUIDOf([8]byte(gone.Bytes())))
		}
		return bson.End(b, at)
	case "create":
		at, b := bson.BeginObject(dst, "operationDescription")
		for it := d.Iter(); d.IsDefined() && it.Next(); {
			b = append(b, it.Element()...)
		}
		if !d.Get("viewOn").IsDefined() {
			b = value.AppendElement(b, "idIndex", indexes.OnID())
		}
		return bson.End(b, at)
	}
	if d.IsDefined() && st.o.Expanded {
		dst = value.AppendElement(dst, "operationDescription", d)
	}
	return dst
}

// invalidates reports whether a stream ends with an entry.
func (st *Stream) invalidates(e *journal.Entry) bool {
	if e.Op != journal.Change || st.o.NS.DB == "" {
		return false
	}
	kind := value.ObjectOf(e.Note).Get("type").Str()
	if st.o.NS.Coll == "" {
		return kind == "dropDatabase"
	}
	return kind == "drop" || kind == "rename"
}

// invalidate makes the event with which a stream ends.
func (st *Stream) invalidate(e *journal.Entry) event {
	t := changes.Token{Time: e.Time, N: e.N, Kind: changes.Invalidate}
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "_id", tokenDoc(t))
	b = bson.AppendString(b, "operationType", "invalidate")
	b = value.AppendElement(b, "clusterTime", value.TimestampOf(e.Time))
	b = bson.AppendDate(b, "wallTime", e.Millis)
	return event{token: t, doc: value.ObjectOf(bson.End(b, at)), ends: true}
}

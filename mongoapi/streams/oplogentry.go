package streams

import (
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/indexes"
)

// oplogOps are the kinds of entries by operation.
var oplogOps = map[journal.Op]string{journal.Create: "i", journal.Replace: "u", journal.Update: "u",
	journal.Delete: "d", journal.Mark: "n", journal.Change: "c"}

// oplogEntry returns an entry in the shape of the oplog.
func oplogEntry(e *journal.Entry) value.Value {
	at, b := bson.Begin(make([]byte, 0, 256+len(e.Current)))
	b = appendOplogHead(b, e.Time)
	if e.Op == journal.Mark {
		b = bson.AppendString(b, "op", "n")
		b = bson.AppendString(b, "ns", "")
		oa, ob := bson.BeginObject(b, "o")
		b = bson.End(bson.AppendString(ob, "msg", "the record of changes begins"), oa)
	} else {
		b = appendOplogOperation(b, e)
	}
	b = bson.AppendDate(b, "wall", e.Millis)
	return value.ObjectOf(bson.End(b, at))
}

// appendOplogHead appends the fields with which each document of the oplog begins.
func appendOplogHead(dst []byte, time uint64) []byte {
	dst = value.AppendElement(dst, "ts", value.TimestampOf(time))
	dst = bson.AppendInt64(dst, "t", 1)
	dst = bson.AppendInt64(dst, "h", 0)
	return bson.AppendInt64(dst, "v", 2)
}

// appendOplogOperation appends what an entry has changed: the fields op, ns, ui, o and o2.
func appendOplogOperation(b []byte, e *journal.Entry) []byte {
	b = bson.AppendString(b, "op", oplogOps[e.Op])
	if e.Op == journal.Change {
		b = bson.AppendString(b, "ns", e.DB+".$cmd")
	} else {
		b = bson.AppendString(b, "ns", e.DB+"."+e.Coll)
	}
	if e.Coll != "" {
		b = value.AppendElement(b, "ui", changes.UUIDOf(e.RID))
	}
	switch e.Op {
	case journal.Create, journal.Replace:
		b = bson.AppendDocument(b, "o", e.Current)
	case journal.Update:
		oa, ob := bson.BeginObject(b, "o")
		ob = bson.AppendInt32(ob, "$v", 2)
		ob = changes.OplogDiff(ob, value.ObjectOf(e.Previous), value.ObjectOf(e.Current))
		b = bson.End(ob, oa)
	case journal.Delete:
		b = bson.AppendDocument(b, "o", e.Key)
	case journal.Change:
		b = appendOplogCommand(b, e)
	}
	if e.Op == journal.Replace || e.Op == journal.Update || e.Op == journal.Create {
		b = bson.AppendDocument(b, "o2", e.Key)
	}
	return b
}

// oplogPart is the number of bytes of the operations of a transaction beyond which it gets one more document. It is
// several times journal.Part, so that there are enough times.
const oplogPart = 8 << 20

// oplogTransaction returns a transaction in the shape of the oplog. Its entries are all that have one time, with newest
// in descending order. It is one document unless that would be too large for one. Then it is a chain, in which each
// document names the time of the one before it, and the last one has the time of the entries.
//
// Example: a transaction with the time 9 whose documents have 10 MiB: {ts: 8, o: {applyOps: [..], partialTxn: true},
// prevOpTime: none}, {ts: 9, o: {applyOps: [..], count: 3}, prevOpTime: 8}.
func oplogTransaction(entries []*journal.Entry, newest bool) []value.Value {
	if newest {
		slices.Reverse(entries)
	}
	var parts [][]byte // arrays of operations
	size := 0
	for i, e := range entries {
		at, op := bson.Begin(nil)
		op = bson.End(appendOplogOperation(op, e), at)
		if i == 0 || size > 0 && size+len(op) > oplogPart {
			parts, size = append(parts, nil), 0
		}
		last := &parts[len(parts)-1]
		*last, size = append(*last, op...), size+len(op)
	}
	docs, before := make([]value.Value, 0, len(parts)), uint64(0)
	for i, ops := range parts {
		of := entries[len(entries)-1]
		time := of.Time - uint64(len(parts)-1-i)
		docs, before = append(docs, applyOps(of, ops, time, before, i == len(parts)-1, len(entries))), time
	}
	if newest {
		slices.Reverse(docs)
	}
	return docs
}

// applyOps returns the document with the operations of a transaction, or of a part of it. before is the time of the
// part before it, 0: it is the first.
func applyOps(of *journal.Entry, ops []byte, time, before uint64, last bool, count int) value.Value {
	at, b := bson.Begin(make([]byte, 0, len(ops)+512))
	for it := value.ObjectOf(of.Note).Iter(); len(of.Note) > 0 && it.Next(); {
		b = append(b, it.Element()...)
	}
	b = appendOplogHead(b, time)
	b = bson.AppendString(b, "op", "c")
	b = bson.AppendString(b, "ns", "admin.$cmd")
	oa, b := bson.BeginObject(b, "o")
	la, b := bson.BeginArray(b, "applyOps")
	for i := 0; len(ops) > 0; i++ {
		n := binary.LittleEndian.Uint32(ops)
		b = append(bson.AppendIndexHead(b, bson.TypeDocument, i), ops[:n]...)
		ops = ops[n:]
	}
	b = bson.End(b, la)
	switch {
	case !last:
		b = bson.AppendBool(b, "partialTxn", true)
	case before != 0:
		b = bson.AppendInt64(b, "count", int64(count))
	}
	b = bson.End(b, oa)
	pa, b := bson.BeginObject(b, "prevOpTime")
	b = value.AppendElement(b, "ts", value.TimestampOf(before))
	term := int64(-1)
	if before != 0 {
		term = 1
	}
	b = bson.End(bson.AppendInt64(b, "t", term), pa)
	b = bson.AppendDate(b, "wall", of.Millis)
	return value.ObjectOf(bson.End(b, at))
}

// appendOplogCommand appends what an entry of a command says.
func appendOplogCommand(dst []byte, e *journal.Entry) []byte {
	note := value.ObjectOf(e.Note)
	at, b := bson.BeginObject(dst, "o")
	switch kind := note.Get("type").Str(); kind {
	case "dropDatabase":
		b = bson.AppendInt32(b, "dropDatabase", 1)
	case "rename":
		b = bson.AppendString(b, "renameCollection", e.DB+"."+e.Coll)
		b = bson.AppendString(b, "to", e.DB+"."+note.Get("to").Str())
		b = bson.AppendBool(b, "stayTemp", false)
		if gone := note.Get("dropped"); gone.IsDefined() {
			b = value.AppendElement(b, "dropTarget", changes.UUIDOf([8]byte(gone.Bytes())))
		}
	case "create":
		b = bson.AppendString(b, "create", e.Coll)
		b = value.AppendElement(b, "idIndex", indexes.OnID())
	case "modify":
		b = bson.AppendString(b, "collMod", e.Coll)
	default:
		b = bson.AppendString(b, kind, e.Coll)
	}
	if d := note.Get("operationDescription"); d.IsDefined() {
		for it := d.Iter(); it.Next(); {
			b = append(b, it.Element()...)
		}
	}
	return bson.End(b, at)
}

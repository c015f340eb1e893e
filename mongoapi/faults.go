package mongoapi

import (
	"errors"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// disturbed executes a command after asking about faults.
func (r *request) disturbed(dst []byte, def command) ([]byte, error) {
	q := fault.Request{API: apiName, Operation: r.name, Database: r.db, Key: r.firstID()}
	if r.arg.Kind() == value.String {
		q.Container = r.arg.Str()
	} else if r.name == "getMore" {
		q.Container = r.body.Get("collection").Str()
	}
	if r.s.o.Record != nil {
		if to := r.s.o.Record(); to != nil {
			r.told(to)
		}
	}
	e := r.s.o.Faults.Hit(q)
	if e == nil {
		return r.perform(dst, def)
	}
	out := dst
	err := e.Do(r.ctx, func() (err error) {
		out, err = r.perform(dst, def)
		return err
	})
	if errors.Is(err, fault.ErrLost) {
		r.c.hangUp = true
		return dst, nil
	}
	if status.Is(err, status.Unavailable) && e.Err != nil {
		// ShutdownInProgress would make the driver wait for its next heartbeat before it repeats the command.
		err = merr.New(hostUnreachable, "%s", status.From(err).Msg)
	}
	return out, err
}

// unrecorded are the commands that no record has: they have credentials.
var unrecorded = map[string]bool{"createUser": true, "updateUser": true, "authenticate": true, "logout": true,
	"saslStart": true, "saslContinue": true}

// ofSession are the arguments that no record has: they belong to the session or the moment of the command.
var ofSession = map[string]bool{"lsid": true, "txnNumber": true, "$clusterTime": true, "startTransaction": true,
	"autocommit": true, "stmtId": true}

// told gives the command to a function. Document sequences become arrays.
func (r *request) told(to func([]byte)) {
	if unrecorded[r.name] {
		return
	}
	at, b := bson.Begin(nil)
	for it := r.body.Iter(); it.Next(); {
		if !ofSession[string(it.Key())] {
			b = value.AppendElement(b, string(it.Key()), it.Value())
		}
	}
	for _, s := range r.seqs {
		var docs []value.Value
		for name := s.Name; len(s.Docs) > 0; {
			d, ok := s.Next()
			if !ok {
				return
			}
			docs = append(docs, value.ObjectOf(d))
			s.Name = name
		}
		b = value.AppendElement(b, string(s.Name), value.MakeArray(docs))
	}
	to(doc.AppendExtJSON(nil, value.ObjectOf(bson.End(b, at)), false))
}

// hostUnreachable is a code after which drivers repeat retryable commands at once.
const hostUnreachable = 6

// firstID returns the _id that the first statement of a command names: a string as it is, another value as Extended
// JSON, "" if there is none.
func (r *request) firstID() string {
	from := value.Value{}
	switch r.name {
	case "find":
		from = r.body.Get("filter")
	case "findAndModify", "findandmodify":
		from = r.body.Get("query")
	case "insert":
		from = r.firstDocument("documents")
	case "update":
		from = r.firstDocument("updates").Get("q")
	case "delete":
		from = r.firstDocument("deletes").Get("q")
	}
	switch id := from.Get("_id"); {
	case !id.IsDefined():
		return ""
	case id.Kind() == value.String:
		return id.Str()
	default:
		return string(doc.AppendExtJSON(nil, id, true))
	}
}

// firstDocument returns the first element of an array argument, which may be a document sequence.
func (r *request) firstDocument(name string) value.Value {
	for i := range r.seqs {
		if string(r.seqs[i].Name) == name {
			s := r.seqs[i]
			if d, ok := s.Next(); ok {
				return value.ObjectOf(d)
			}
		}
	}
	return r.body.Get(name).At(0)
}

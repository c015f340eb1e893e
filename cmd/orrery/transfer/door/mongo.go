package door

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// Mongo is a container behind the MongoDB API: documents are sent and read as their bytes.
type Mongo struct {
	pool     *mongoPool
	db, coll string
	keys     []string // paths of the shard key
}

// OpenMongo opens a container. If it is absent the first write creates it: with a shard key, if one is given.
func OpenMongo(ctx context.Context, s *Server, db, coll string, create []string) (*Mongo, error) {
	if s.Mongo == "" {
		return nil, errors.New("the server has no MongoDB API (--mongo-addr off), or its address isn't known")
	}
	ctx = first(ctx)
	m := &Mongo{pool: newMongoPool(s), db: db, coll: coll}
	err := m.describe(ctx)
	var e *mongoError
	if errors.As(err, &e) && (e.code == namespaceNotFound || e.code == databaseNotFound) {
		if err = nil; len(create) > 0 {
			if len(create) > 1 {
				return nil,
					errors.New("MongoDB's containers have one partition key path: create the container by NoSQL")
			}
			key := strings.ReplaceAll(strings.TrimPrefix(create[0], "/"), "/", ".")
			if key == "id" {
				key = "_id" // what the other APIs call id
			}
			err = m.pool.run(ctx, db, command("customAction", "CreateCollection", func(b []byte) []byte {
				return bson.AppendString(bson.AppendString(b, "collection", coll), "shardKey", key)
			}), "", nil, nil)
			m.keys = []string{key}
		}
	}
	return m, err
}

// Codes of MongoDB's errors.
const (
	databaseNotFound    = 59
	namespaceNotFound   = 26
	namespaceExists     = 48
	commandNotSupported = 115
	duplicateKey        = 11000
)

// describe learns the shard key.
func (m *Mongo) describe(ctx context.Context) error {
	return m.pool.run(ctx, m.db, command("customAction", "GetCollection", func(b []byte) []byte {
		return bson.AppendString(b, "collection", m.coll)
	}), "", nil, func(reply doc.Doc) error {
		for it := doc.Get(reply, "shardKeyDefinition").Iter(); it.Next(); {
			m.keys = append(m.keys, string(it.Key()))
		}
		return nil
	})
}

// Close closes the connections.
func (m *Mongo) Close() error {
	m.pool.close()
	return nil
}

// Limits of a batch.
const (
	insertRows  = 500
	insertBytes = 4 << 20
)

// Full implements transfer.Target.
func (m *Mongo) Full(b *transfer.Batch) bool {
	return len(b.Rows) >= insertRows || len(b.Buf) >= insertBytes
}

// Prepare implements transfer.Target. A document without an _id gets an ObjectId.
func (m *Mongo) Prepare(b *transfer.Batch, r *transfer.Row, num int64) error {
	if r.Doc == nil {
		return errors.New("the row is no document")
	}
	id := doc.Get(r.Doc, "_id")
	s := transfer.Sent{Line: r.Line}
	if id.IsDefined() {
		s.Body = b.Append(r.Doc)
	} else {
		derived := transfer.DerivedID(num, r.Doc)
		at, doc := bson.Begin(b.Buf)
		doc = bson.AppendHead(doc, bson.TypeObjectID, "_id")
		doc = append(doc, derived[:12]...)
		doc = append(doc, r.Doc[4:len(r.Doc)-1]...)
		s.Body[0] = at
		b.Buf = bson.End(doc, at)
		s.Body[1] = len(b.Buf)
	}
	b.Rows = append(b.Rows, s)
	return nil
}

// Write implements transfer.Target.
func (m *Mongo) Write(ctx context.Context, b *transfer.Batch, rows []int, replace bool,
	verdict func(int, transfer.Verdict, string)) (wait time.Duration, err error) {
	name, seq := "insert", "documents"
	var docs []byte
	switch {
	case replace:
		name, seq = "update", "updates"
		for _, row := range rows {
			docs = m.appendReplace(docs, b.Part(b.Rows[row].Body))
		}
	case len(rows) == len(b.Rows): // in the order of the batch, which has the documents one behind the other
		docs = b.Buf
	default:
		for _, row := range rows {
			docs = append(docs, b.Part(b.Rows[row].Body)...)
		}
	}
	cmd := command(name, m.coll, func(b []byte) []byte { return bson.AppendBool(b, "ordered", false) })
	verdicts := make([]transfer.Verdict, len(rows))
	reasons := map[int]string{}
	err = m.pool.run(ctx, m.db, cmd, seq, docs, func(reply doc.Doc) error {
		for it := doc.Get(reply, "writeErrors").Iter(); it.Next(); {
			e := it.Value()
			i := int(e.Get("index").Int())
			if i < 0 || i >= len(rows) {
				return errors.New("the reply names a row that was not sent")
			}
			switch code := e.Get("code").Int(); {
			case code == duplicateKey && !replace && e.Get("keyPattern").Get("_id").IsDefined():
				verdicts[i] = transfer.Exists
			case code == mongoBusy || code == mongoTimeout:
				verdicts[i], wait = transfer.Later, 50*time.Millisecond
			case code == mongoDiskFull: // no document is at fault
				return &mongoError{code, e.Get("errmsg").Str()}
			default:
				verdicts[i] = transfer.Refused
			}
			reasons[i] = e.Get("errmsg").Str()
		}
		return nil
	})
	var e *mongoError
	if errors.As(err, &e) && len(rows) == 1 && e.code != mongoDiskFull {
		verdict(rows[0], transfer.Refused, e.Error())
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s.%s: %w", m.db, m.coll, err)
	}
	for i, row := range rows {
		verdict(row, verdicts[i], reasons[i])
	}
	return wait, nil
}

// appendReplace appends {q: {_id, <shard key>}, u: <document>, upsert: true}.
func (m *Mongo) appendReplace(dst []byte, d doc.Doc) []byte {
	at, dst := bson.Begin(dst)
	q, dst := bson.BeginObject(dst, "q")
	dst = value.AppendElement(dst, "_id", doc.Get(d, "_id"))
	for _, key := range m.keys {
		if v := doc.Get(d, strings.Split(key, ".")...); v.IsDefined() {
			dst = value.AppendElement(dst, key, v)
		} else {
			dst = value.AppendElement(dst, key, value.NullValue())
		}
	}
	dst = bson.End(dst, q)
	dst = bson.AppendDocument(dst, "u", d)
	return bson.End(bson.AppendBool(dst, "upsert", true), at)
}

// CreateIndexes creates the indexes of a definition. Those that exist are left as they are.
func (m *Mongo) CreateIndexes(ctx context.Context, specs [][]byte) error {
	if len(specs) == 0 {
		return nil
	}
	return m.pool.run(ctx, m.db, command("createIndexes", m.coll, func(b []byte) []byte {
		at, b := bson.BeginArray(b, "indexes")
		for i, spec := range specs {
			inner, out := bson.Begin(bson.AppendIndexHead(b, bson.TypeDocument, i))
			for it := doc.Value(spec).Iter(); it.Next(); {
				switch string(it.Key()) {
				case "ns", "v", "background":
				default:
					out = append(out, it.Element()...)
				}
			}
			b = bson.End(out, inner)
		}
		return bson.End(b, at)
	}), "", nil, nil)
}

// CreateSearchIndexes creates the search indexes of a definition.
func (m *Mongo) CreateSearchIndexes(ctx context.Context, specs [][]byte) error {
	if len(specs) == 0 {
		return nil
	}
	err := m.pool.run(ctx, m.db, command("create", m.coll, nil), "", nil, nil)
	var e *mongoError
	if err != nil && !(errors.As(err, &e) && e.code == namespaceExists) {
		return err
	}
	return m.pool.run(ctx, m.db, command("createSearchIndexes", m.coll, func(b []byte) []byte {
		at, b := bson.BeginArray(b, "indexes")
		for i, spec := range specs {
			b = append(bson.AppendIndexHead(b, bson.TypeDocument, i), spec...)
		}
		return bson.End(b, at)
	}), "", nil, nil)
}

// searchIndexes returns the search indexes of the container; none if the server has none.
func (m *Mongo) searchIndexes(ctx context.Context) (specs [][]byte, err error) {
	err = m.pool.run(ctx, m.db, command("listSearchIndexes", m.coll, nil), "", nil, func(reply doc.Doc) error {
		specs = nil
		for it := doc.Get(reply, "cursor", "firstBatch").Iter(); it.Next(); {
			at, b := bson.Begin(nil)
			b = value.AppendElement(b, "name", it.Value().Get("name"))
			b = value.AppendElement(b, "type", it.Value().Get("type"))
			b = value.AppendElement(b, "definition", it.Value().Get("latestDefinition"))
			specs = append(specs, bson.End(b, at))
		}
		return nil
	})
	var e *mongoError
	if errors.As(err, &e) && (e.code == commandNotSupported || e.code == namespaceNotFound) { // --strict mongo
		err = nil
	}
	return specs, err
}

// Definition returns the indexes of the container.
func (m *Mongo) Definition(ctx context.Context) (def transfer.Definition, err error) {
	def.Place = m.db + "/" + m.coll
	err = m.pool.run(ctx, m.db, command("listIndexes", m.coll, nil), "", nil, func(reply doc.Doc) error {
		def.Indexes = nil
		for it := doc.Get(reply, "cursor", "firstBatch").Iter(); it.Next(); {
			if spec := it.Value(); spec.Get("name").Str() != "_id_" {
				def.Indexes = append(def.Indexes, append([]byte(nil), spec.Bytes()...))
			}
		}
		return nil
	})
	if err == nil {
		def.Search, err = m.searchIndexes(ctx)
	}
	return def, err
}

// Size implements transfer.Source.
func (m *Mongo) Size(ctx context.Context) (n int64, err error) {
	err = m.pool.run(ctx, m.db, command("count", m.coll, nil), "", nil, func(reply doc.Doc) error {
		f, _ := value.Number(doc.Get(reply, "n"))
		n = int64(f)
		return nil
	})
	return n, err
}

// findRows is the number of documents that one reply has at most.
const findRows = 4000

// Rows implements transfer.Source.
func (m *Mongo) Rows(ctx context.Context, f func(*transfer.Row) error) error {
	return m.Find(ctx, bson.Empty, bson.Empty, f)
}

// Find calls f with the documents that match a filter, with the fields of a projection.
func (m *Mongo) Find(ctx context.Context, filter, fields []byte, f func(*transfer.Row) error) error {
	var n int64
	return m.Pages(ctx, filter, fields, func(page []byte) error {
		for it := value.ArrayOf(page).Iter(); it.Next(); {
			n++
			if err := f(&transfer.Row{Doc: it.Value().Bytes(), Line: n}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Pages calls f with the batches of a find, each an array, which is valid until f returns. While f works the next reply
// is on its way.
func (m *Mongo) Pages(ctx context.Context, filter, fields []byte, f func(page []byte) error) error {
	return ahead(ctx, func(ctx context.Context, pages chan<- []byte, free <-chan []byte) error {
		return m.pages(ctx, filter, fields, pages, free)
	}, f)
}

// pages sends the batches of a cursor. A cursor lives in the server, so a reply that is lost ends it.
func (m *Mongo) pages(ctx context.Context, filter, fields []byte, pages chan<- []byte, free <-chan []byte) error {
	c, err := m.pool.take(ctx)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if whole {
			m.pool.give(c)
		} else {
			_ = c.Close() // with the cursor
		}
	}()
	cmd := command("find", m.coll, func(b []byte) []byte {
		b = bson.AppendDocument(b, "filter", filter)
		if len(fields) > len(bson.Empty) {
			b = bson.AppendDocument(b, "projection", fields)
		}
		return bson.AppendInt32(b, "batchSize", findRows)
	})
	for name := "firstBatch"; ; {
		reply, err := c.run(ctx, m.db, cmd, "", nil)
		if err == nil {
			err = commandError(reply)
		}
		var again *Again
		if errors.As(err, &again) && again.Wait > 0 && sleep(ctx, again.Wait) { // the server is busy: the same again
			continue
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", m.db, m.coll, err)
		}
		var buf []byte
		select {
		case buf = <-free:
		default:
		}
		buf = append(buf[:0], doc.Get(reply, "cursor", name).Bytes()...)
		select {
		case pages <- buf:
		case <-ctx.Done():
			return ctx.Err()
		}
		id := doc.Get(reply, "cursor", "id").Int()
		if whole = id == 0; whole {
			return nil
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(bson.AppendInt64(b, "getMore", id), "collection", m.coll)
		cmd, name = bson.End(bson.AppendInt32(b, "batchSize", findRows), at), "nextBatch"
	}
}

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongodb is a collection by MongoDB's driver. A copy reads the documents by ascending _id, and then, with --follow,
// the changes since it began, deletions too.
type mongodb struct {
	c *mongo.Collection
}

func openMongo(ctx context.Context, p *place) (*mongodb, error) {
	o := options.Client().SetHosts([]string{p.base}).SetDirect(true)
	if p.secret != "" {
		o.SetAuth(options.Credential{Username: p.account, Password: p.secret, AuthSource: "admin"})
	}
	if p.tls {
		o.SetTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	client, err := mongo.Connect(o)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", p.base, err)
	}
	return &mongodb{client.Database(p.db).Collection(p.container)}, nil
}

// mongoIndexes are the indexes of a collection.
type mongoIndexes struct {
	declared []bson.D
	search   []searchIndex
}

// searchIndex is an index of Atlas, as it is created.
type searchIndex struct {
	Name       string   `bson:"name"`
	Type       string   `bson:"type"`
	Definition bson.Raw `bson:"definition"`
}

// define returns the indexes.
func (m *mongodb) define(ctx context.Context) (any, error) {
	var x mongoIndexes
	err := patient(ctx, func() error {
		cur, err := m.c.Indexes().List(ctx)
		if err == nil {
			err = cur.All(ctx, &x.declared)
		}
		return err
	})
	if err == nil {
		x.search, err = m.searchIndexes(ctx)
	}
	return x, err
}

// unsearched are the codes of servers without search indexes: of the service, of MongoDB without Atlas, and of a
// database or collection that doesn't exist.
var unsearched = []int{26, 59, 115, 31082, 40324, 6047401}

// searchIndexes returns the search indexes for vectors. Those of full-text search aren't copied: no server but Atlas
// has them.
func (m *mongodb) searchIndexes(ctx context.Context) (out []searchIndex, err error) {
	var list []struct {
		Name, Type       string
		LatestDefinition bson.Raw `bson:"latestDefinition"`
	}
	err = patient(ctx, func() error {
		cur, err := m.c.Aggregate(ctx, mongo.Pipeline{{{Key: "$listSearchIndexes", Value: bson.D{}}}})
		if err == nil {
			err = cur.All(ctx, &list)
		}
		return err
	})
	var e mongo.ServerError
	if errors.As(err, &e) && slices.ContainsFunc(unsearched, e.HasErrorCode) {
		return nil, nil
	}
	for _, x := range list {
		if x.Type == "vectorSearch" {
			out = append(out, searchIndex{x.Name, x.Type, x.LatestDefinition})
		}
	}
	return out, err
}

// patient does something until the server isn't too busy for it.
func patient(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !isBusy(err) {
			return err
		}
		var some mongo.BulkWriteException
		if errors.As(err, &some) && len(some.WriteErrors) > 0 {
			return err // it is about single documents
		}
		if !wait(ctx, busyFor(err.Error())) {
			return ctx.Err()
		}
	}
}

func (m *mongodb) size(ctx context.Context) int64 {
	n, err := m.c.EstimatedDocumentCount(ctx)
	if err != nil {
		return 0
	}
	return n
}

func (m *mongodb) close() { _ = m.c.Database().Client().Disconnect(context.Background()) }

// check implements target.
func (m *mongodb) check(*change) error { return nil }

func (m *mongodb) prepare(ctx context.Context, definition any, dry bool) error {
	if dry {
		return nil
	}
	x, _ := definition.(mongoIndexes)
	list := bson.A{}
	for _, s := range x.declared {
		var spec bson.D
		id := false
		for _, e := range s {
			switch e.Key {
			case "v", "ns", "background":
				continue
			case "name":
				id = e.Value == "_id_"
			}
			spec = append(spec, e)
		}
		if !id {
			list = append(list, spec)
		}
	}
	db := m.c.Database()
	if len(list) > 0 {
		err := patient(ctx, func() error {
			return db.RunCommand(ctx, bson.D{{Key: "createIndexes", Value: m.c.Name()}, {Key: "indexes",
				Value: list}}).Err()
		})
		if err != nil {
			return err
		}
	}
	if len(x.search) == 0 {
		return nil
	}
	return patient(ctx, func() error { // they need a collection
		err := db.CreateCollection(ctx, m.c.Name())
		var e mongo.ServerError
		if err != nil && !(errors.As(err, &e) && e.HasErrorCode(namespaceExists)) {
			return err
		}
		return db.RunCommand(ctx, bson.D{{Key: "createSearchIndexes", Value: m.c.Name()}, {Key: "indexes",
			Value: x.search}}).Err()
	})
}

// namespaceExists is the code of a collection that is there already, maybe with other options.
const namespaceExists = 48

// mongoAt is a position: the last _id of the documents, or that of the changes.
type mongoAt struct {
	Last  bson.RawValue `bson:"last,omitempty"`
	Began bson.Raw      `bson:"began,omitempty"` // of the changes when the copy began
	Whole bool          `bson:"whole"`           // all documents are copied
}

func (a *mongoAt) text() (json.RawMessage, error) { return bson.MarshalExtJSON(a, true, false) }

func (m *mongodb) changes(ctx context.Context, from json.RawMessage, follow bool,
	f func([]change, json.RawMessage) error) error {
	var at mongoAt
	if from != nil {
		if err := bson.UnmarshalExtJSON(from, true, &at); err != nil {
			return err
		}
	}
	var stream *mongo.ChangeStream
	if follow { // before the documents are read, so that no change is missed
		o := options.ChangeStream().SetFullDocument(options.UpdateLookup)
		if at.Began != nil {
			o.SetResumeAfter(at.Began)
		}
		err := patient(ctx, func() (err error) {
			stream, err = m.c.Watch(ctx, mongo.Pipeline{}, o)
			return err
		})
		if err != nil {
			return fmt.Errorf("--follow: %w", err)
		}
		defer func() { _ = stream.Close(context.Background()) }()
		at.Began = stream.ResumeToken()
	}
	if !at.Whole {
		if err := m.documents(ctx, &at, f); err != nil {
			return err
		}
		at.Whole = true
	}
	for follow {
		if !stream.TryNext(ctx) {
			if err := stream.Err(); err != nil || ctx.Err() != nil {
				return errors.Join(ctx.Err(), err)
			}
			if !pause(ctx) {
				return ctx.Err()
			}
			continue
		}
		var e struct {
			OperationType string   `bson:"operationType"`
			DocumentKey   bson.Raw `bson:"documentKey"`
			FullDocument  bson.Raw `bson:"fullDocument"`
		}
		if err := stream.Decode(&e); err != nil {
			return err
		}
		at.Began = stream.ResumeToken()
		var batch []change
		switch {
		case e.OperationType == "invalidate":
			return errors.New("the collection was dropped or renamed: there is nothing more to follow")
		case e.OperationType == "delete":
			batch = []change{{id: e.DocumentKey}}
		case e.FullDocument != nil:
			batch = []change{{item: e.FullDocument}}
		}
		next, err := at.text()
		if err == nil {
			err = f(batch, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// documents reads all documents behind a position.
func (m *mongodb) documents(ctx context.Context, at *mongoAt, f func([]change, json.RawMessage) error) error {
	const page = 1000
	for {
		filter := bson.D{}
		if at.Last.Type != 0 { // $gt compares values of one kind only, $expr all of them
			filter = bson.D{{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$_id",
				bson.D{{Key: "$literal", Value: at.Last}}}}}}}
		}
		var batch []change
		err := patient(ctx, func() error {
			batch = nil
			cur, err := m.c.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(page))
			if err != nil {
				return err
			}
			for cur.Next(ctx) {
				batch = append(batch, change{item: append([]byte(nil), cur.Current...)})
			}
			err = cur.Err()
			if len(batch) > 0 && isBusy(err) { // a page may cost more than the server gives at once: keep what was read
				err = nil
			}
			return errors.Join(err, cur.Close(ctx))
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		at.Last = bson.Raw(batch[len(batch)-1].item).Lookup("_id")
		next, err := at.text()
		if err == nil {
			err = f(batch, next)
		}
		if err != nil {
			return err
		}
	}
}

// busy is the code of a server that refuses what comes too fast.
const busy = 16500

// Codes of write errors that aren't about a document.
var (
	again = []int{busy, 112}                                   // the server is busy, or another write was in the way
	fatal = []int{13, 50, 91, 189, 10107, 11600, 11602, 13435} // the server, or what the user may do
)

// isBusy reports whether a server has refused a request because it came too fast.
func isBusy(err error) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(busy)
}

// asked finds how long a busy server asks to wait.
var asked = regexp.MustCompile(`RetryAfterMs=(\d+)`)

func (m *mongodb) apply(ctx context.Context, batch []change) (bad []refused, err error) {
	at := make([]int, len(batch)) // which changes are sent
	for i := range at {
		at[i] = i
	}
	most := len(at) // which are sent together: a busy server gets few more than it takes
	for len(at) > 0 {
		now := at[:min(len(at), most)]
		models := make([]mongo.WriteModel, 0, len(now))
		for _, i := range now {
			models = append(models, modelOf(&batch[i]))
		}
		err := patient(ctx, func() error {
			_, err := m.c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
			return err
		})
		var failed mongo.BulkWriteException
		if err != nil && (!errors.As(err, &failed) || len(failed.WriteErrors) == 0) {
			return bad, err
		}
		var later []int
		wanted := time.Duration(0)
		for _, e := range failed.WriteErrors {
			switch {
			case slices.Contains(again, e.Code):
				later, wanted = append(later, at[e.Index]), max(wanted, busyFor(e.Message))
			case slices.Contains(fatal, e.Code):
				return bad, fmt.Errorf("%s: %s (%d)", m.c.Name(), e.Message, e.Code)
			default:
				bad = append(bad, refused{at[e.Index], fmt.Sprintf("%s (%d)", e.Message, e.Code)})
			}
		}
		most = max(1, 2*(len(now)-len(later)))
		at = append(later, at[len(now):]...)
		if len(later) > 0 && !wait(ctx, wanted) {
			return bad, ctx.Err()
		}
	}
	return bad, nil
}

// busyFor is the pause that an error asks for.
func busyFor(message string) time.Duration {
	if ms := asked.FindStringSubmatch(message); ms != nil {
		if n, err := strconv.Atoi(ms[1]); err == nil {
			return time.Duration(n) * time.Millisecond
		}
	}
	return poll
}

func modelOf(c *change) mongo.WriteModel {
	if c.item == nil {
		return mongo.NewDeleteOneModel().SetFilter(bson.Raw(c.id))
	}
	filter := bson.D{{Key: "_id", Value: bson.Raw(c.item).Lookup("_id")}}
	return mongo.NewReplaceOneModel().SetFilter(filter).SetReplacement(bson.Raw(c.item)).SetUpsert(true)
}

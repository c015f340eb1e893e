package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"

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

// define returns the indexes.
func (m *mongodb) define(ctx context.Context) (any, error) {
	cur, err := m.c.Indexes().List(ctx)
	if err != nil {
		return nil, err
	}
	var specs []bson.D
	return specs, errors.Join(cur.All(ctx, &specs), nil)
}

func (m *mongodb) prepare(ctx context.Context, definition any) error {
	specs, _ := definition.([]bson.D)
	list := bson.A{}
	for _, s := range specs {
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
	if len(list) == 0 {
		return nil
	}
	return m.c.Database().RunCommand(ctx, bson.D{{Key: "createIndexes", Value: m.c.Name()}, {Key: "indexes",
		Value: list}}).
		Err()
}

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
		var err error
		if stream, err = m.c.Watch(ctx, mongo.Pipeline{}, o); err != nil {
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
		cur, err := m.c.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(page))
		if err != nil {
			return err
		}
		var batch []change
		for cur.Next(ctx) {
			batch = append(batch, change{item: append([]byte(nil), cur.Current...)})
		}
		if err := errors.Join(cur.Err(), cur.Close(ctx)); err != nil || len(batch) == 0 {
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

func (m *mongodb) apply(ctx context.Context, batch []change) error {
	models := make([]mongo.WriteModel, 0, len(batch))
	for _, c := range batch {
		if c.item == nil {
			models = append(models, mongo.NewDeleteOneModel().SetFilter(bson.Raw(c.id)))
			continue
		}
		filter := bson.D{{Key: "_id", Value: bson.Raw(c.item).Lookup("_id")}}
		models = append(models,
			mongo.NewReplaceOneModel().SetFilter(filter).SetReplacement(bson.Raw(c.item)).SetUpsert(true))
	}
	for len(models) > 0 {
		_, err := m.c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
		var failed mongo.BulkWriteException
		if !errors.As(err, &failed) {
			return err
		}
		var again []mongo.WriteModel
		for _, e := range failed.WriteErrors {
			if e.Code != busy {
				return fmt.Errorf("%s: %s (%d)", m.c.Name(), e.Message, e.Code)
			}
			again = append(again, models[e.Index])
		}
		if models = again; !pause(ctx) {
			return ctx.Err()
		}
	}
	return nil
}

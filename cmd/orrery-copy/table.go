package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// table is a table by aztables. Its API has no change feed.
type table struct {
	c *aztables.Client
}

func openTable(p *place) (*table, error) {
	if p.secret == "" {
		return nil, errors.New("the Table API needs a key: give --from-key and --to-key")
	}
	cred, err := aztables.NewSharedKeyCredential(p.account, p.secret)
	if err != nil {
		return nil, errors.New("the key is not base64")
	}
	c, err := aztables.NewClientWithSharedKey(strings.TrimSuffix(p.base, "/")+"/"+p.container, cred,
		&aztables.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: newHTTP(),
			Retry: retry}})
	return &table{c}, err
}

func (t *table) define(context.Context) (any, error) { return nil, nil }

func (t *table) size(context.Context) int64 { return 0 }

func (t *table) close() {}

// check implements target.
func (t *table) check(*change) error { return nil }

func (t *table) prepare(ctx context.Context, _ any, dry bool) error {
	if dry {
		return nil
	}
	_, err := t.c.CreateTable(ctx, nil)
	if coded(err, http.StatusConflict) {
		err = nil
	}
	return brief(err)
}

// tableAt is a position: what the reply says of the next page.
type tableAt struct{ PartitionKey, RowKey *string }

func (t *table) changes(ctx context.Context, from json.RawMessage, follow bool,
	f func([]change, json.RawMessage) error) error {
	if follow {
		return errors.New("--follow: the Table API has no change feed; copy the table's container by NoSQL instead")
	}
	o := &aztables.ListEntitiesOptions{Format: ptr(aztables.MetadataFormatMinimal)}
	if from != nil {
		var at tableAt
		if err := json.Unmarshal(from, &at); err != nil {
			return err
		}
		o.NextPartitionKey, o.NextRowKey = at.PartitionKey, at.RowKey
	}
	for pager := t.c.NewListEntitiesPager(o); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return brief(err)
		}
		batch := make([]change, len(page.Entities))
		for i, e := range page.Entities {
			if batch[i].item, err = withoutSystem(e); err != nil {
				return err
			}
		}
		next, err := json.Marshal(tableAt{page.NextPartitionKey, page.NextRowKey})
		if err == nil {
			err = f(batch, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

// withoutSystem returns an entity without what the server has made.
func withoutSystem(entity []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(entity, &fields); err != nil {
		return nil, err
	}
	for name := range fields {
		if strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "Timestamp") {
			delete(fields, name)
		}
	}
	return json.Marshal(fields)
}

func (t *table) apply(ctx context.Context, batch []change) ([]refused, error) {
	return each(ctx, batch, func(ctx context.Context, c *change) error {
		_, err := t.c.UpsertEntity(ctx, c.item, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		if err != nil {
			return fmt.Errorf("an entity can't be written: %w", httpBad(err))
		}
		return nil
	})
}

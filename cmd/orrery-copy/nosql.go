package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// nosql is a container by azcosmos. It is read by its change feed, whose position is exact: a copy that was ended goes
// on there. The feed has no deletions.
type nosql struct {
	client *azcosmos.Client
	db, id string
	c      *azcosmos.ContainerClient
	paths  []string
}

// retry sends a request again as long as the server is busy. A request without an answer ends the copy, which the same
// command continues.
var retry = policy.RetryOptions{MaxRetries: 10_000, MaxRetryDelay: 5 * time.Second,
	ShouldRetry: func(r *http.Response, err error) bool {
		if err != nil || r == nil {
			return false
		}
		switch r.StatusCode {
		case http.StatusTooManyRequests, 449, http.StatusServiceUnavailable, http.StatusRequestTimeout:
			return true
		}
		return false
	}}

func openNoSQL(p *place) (*nosql, error) {
	key := p.secret
	if key == "" {
		return nil, errors.New("the NoSQL API needs a key: give --from-key and --to-key")
	}
	cred, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		return nil, errors.New("the key is not base64")
	}
	o := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: newHTTP(),
		Retry: retry}}
	client, err := azcosmos.NewClientWithKey(p.base, cred, o)
	if err != nil {
		return nil, err
	}
	n := &nosql{client: client, db: p.db, id: p.container}
	n.c, err = client.NewContainer(p.db, p.container)
	return n, err
}

func (n *nosql) define(ctx context.Context) (any, error) {
	r, err := n.c.Read(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", n.db, n.id, brief(err))
	}
	return r.ContainerProperties, nil
}

// brief is the error of a client without the request and the reply.
func brief(err error) error {
	var r *azcore.ResponseError
	if errors.As(err, &r) {
		return fmt.Errorf("%d %s (%s)", r.StatusCode, http.StatusText(r.StatusCode), r.ErrorCode)
	}
	return err
}

func coded(err error, code int) bool {
	var r *azcore.ResponseError
	return errors.As(err, &r) && r.StatusCode == code
}

// size is what the account says of the container's usage: "documentSize=0;documentsCount=12;..".
func (n *nosql) size(ctx context.Context) int64 {
	r, err := n.c.Read(ctx, &azcosmos.ReadContainerOptions{PopulateQuotaInfo: true})
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(r.RawResponse.Header.Get("x-ms-resource-usage"), "documentsCount=")
	count, _, _ := strings.Cut(after, ";")
	size, _ := strconv.ParseInt(count, 10, 64) // 0 where it doesn't say
	return size
}

func (n *nosql) close() {}

func (n *nosql) prepare(ctx context.Context, definition any, dry bool) error {
	p := *definition.(*azcosmos.ContainerProperties)
	r, err := n.c.Read(ctx, nil)
	if coded(err, http.StatusNotFound) && dry {
		n.paths = p.PartitionKeyDefinition.Paths
		return nil
	}
	if coded(err, http.StatusNotFound) {
		_, err = n.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: n.db}, nil)
		if err != nil && !coded(err, http.StatusConflict) {
			return brief(err)
		}
		var db *azcosmos.DatabaseClient
		if db, err = n.client.NewDatabase(n.db); err != nil {
			return err
		}
		p.ID, p.ETag, p.SelfLink, p.ResourceID = n.id, nil, "", ""
		_, err = db.CreateContainer(ctx, p, nil)
		n.paths = p.PartitionKeyDefinition.Paths
	} else if err == nil {
		n.paths = r.ContainerProperties.PartitionKeyDefinition.Paths
	}
	return brief(err)
}

func (n *nosql) changes(ctx context.Context, from json.RawMessage, follow bool,
	f func([]change, json.RawMessage) error) error {
	positions := map[string]string{} // of each range
	if from != nil {
		if err := json.Unmarshal(from, &positions); err != nil {
			return err
		}
	}
	ranges, err := n.c.ReadFeedRanges(ctx, nil)
	if err != nil {
		return brief(err)
	}
	for {
		some := false
		for _, r := range ranges {
			name := r.MinInclusive + "-" + r.MaxExclusive
			for {
				o := &azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: 1000}
				if token := positions[name]; token != "" {
					o = &azcosmos.ChangeFeedOptions{Continuation: &token, MaxItemCount: 1000}
				}
				page, err := n.c.ReadChangeFeed(ctx, o)
				if err != nil {
					return brief(err)
				}
				if page.ContinuationToken != "" {
					positions[name] = page.ContinuationToken
				}
				if len(page.Items) == 0 {
					break
				}
				some = true
				next, err := json.Marshal(positions)
				if err != nil {
					return err
				}
				batch := make([]change, len(page.Items))
				for i, item := range page.Items {
					if batch[i].item, err = door.Own(item); err != nil {
						return err
					}
				}
				if err := f(batch, next); err != nil {
					return err
				}
			}
		}
		if !follow || !some && !pause(ctx) {
			return ctx.Err()
		}
	}
}

// check implements target.
func (n *nosql) check(c *change) error {
	_, err := keyOf(c.item, n.paths)
	return err
}

func (n *nosql) apply(ctx context.Context, batch []change) ([]refused, error) {
	return each(ctx, batch, func(ctx context.Context, c *change) error {
		pk, err := keyOf(c.item, n.paths)
		if err != nil {
			return &badItem{err.Error()}
		}
		if _, err = n.c.UpsertItem(ctx, pk, c.item, nil); err != nil {
			return fmt.Errorf("%s/%s: an item can't be written: %w", n.db, n.id, httpBad(err))
		}
		return nil
	})
}

// keyOf returns the partition key of an item.
func keyOf(item []byte, paths []string) (azcosmos.PartitionKey, error) {
	pk := azcosmos.NewPartitionKey()
	var root map[string]any
	d := json.NewDecoder(bytes.NewReader(item))
	if err := d.Decode(&root); err != nil {
		return pk, err
	}
	for _, p := range paths {
		v, found := any(root), true
		for seg := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
			m, ok := v.(map[string]any)
			if v, found = m[strings.Trim(seg, `"`)]; !ok || !found {
				found = false
				break
			}
		}
		switch x := v.(type) {
		case string:
			pk = pk.AppendString(x)
		case float64:
			pk = pk.AppendNumber(x)
		case bool:
			pk = pk.AppendBool(x)
		case nil:
			if !found {
				return pk, fmt.Errorf("it has no value at %s, which azcosmos can't express", p)
			}
			pk = pk.AppendNull()
		default:
			return pk, fmt.Errorf("its value at %s is no partition key", p)
		}
	}
	return pk, nil
}

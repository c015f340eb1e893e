package mongo

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// counter dials, and counts the bytes of all of its connections.
type counter struct{ in, out atomic.Int64 }

// DialContext implements options.ContextDialer.
func (c *counter) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &counted{nc, c}, err
}

type counted struct {
	net.Conn
	c *counter
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.c.in.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.c.out.Add(int64(n))
	return n, err
}

// TestCompression: with each compressor of the driver, documents are sent in both directions in less than a tenth of
// their length, and are unchanged.
func TestCompression(t *testing.T) {
	s := start(t)
	const docs, pad = 50, 20_000
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		t.Run(name, func(t *testing.T) {
			var n counter
			cl, err := mongo.Connect(options.Client().ApplyURI(s.uri("directConnection=true&compressors=" + name)).
				SetDialer(&n))
			must(t, err)
			defer func() { must(t, cl.Disconnect(bg)) }()
			c := cl.Database("db").Collection(name)
			var all []bson.D
			for i := range docs {
				all = append(all, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("abcde fghij ",
					pad/12)}})
			}
			_, err = c.InsertMany(bg, all)
			must(t, err)
			cur, err := c.Find(bg, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetBatchSize(20))
			must(t, err)
			var got []bson.D
			must(t, cur.All(bg, &got))
			if len(got) != docs || text(got[docs-1]) != text(bson.D{{Key: "_id", Value: int32(docs - 1)}, all[0][1]}) {
				t.Errorf("%d documents, the last %.60s", len(got), text(got[len(got)-1]))
			}
			if in, out := n.in.Load(), n.out.Load(); in > docs*pad/10 || out > docs*pad/10 {
				t.Errorf("%d bytes read, %d written for %d", in, out, docs*pad)
			}
		})
	}
}

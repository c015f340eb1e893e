package door

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// MongoClient runs commands of the MongoDB API that a person or a script has written. A command without an answer isn't
// sent again, because it may have written. Safe for concurrent use.
type MongoClient struct {
	mu   sync.Mutex
	pool *mongoPool
}

// NewMongoClient returns a client, which connects with its first command.
func NewMongoClient(s *Server) *MongoClient { return &MongoClient{pool: newMongoPool(s)} }

// Address returns host and port of the server.
func (c *MongoClient) Address() string { return c.now().addr }

func (c *MongoClient) now() *mongoPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool
}

// Login makes the commands that follow those of another user. A refused login changes nothing.
func (c *MongoClient) Login(ctx context.Context, user, password string) error {
	if password == "" {
		return errors.New("want a password")
	}
	before := c.now()
	next := newMongoPool(&Server{Mongo: before.addr, Account: user, Key: password})
	conn, err := next.take(ctx)
	if err != nil {
		return plainError(err)
	}
	next.give(conn)
	c.mu.Lock()
	c.pool = next
	c.mu.Unlock()
	before.close()
	return nil
}

// Close closes the connections.
func (c *MongoClient) Close() error {
	c.now().close()
	return nil
}

// Run sends a command, without $db, and returns the reply, also one that is an error of MongoDB. If ctx ends, so does
// the command: its connection is closed.
func (c *MongoClient) Run(ctx context.Context, db string, cmd []byte) (doc.Doc, error) {
	p := c.now()
	conn, err := p.take(ctx)
	for err == nil {
		used := conn.used
		var reply doc.Doc
		if reply, err = conn.run(ctx, db, cmd, "", nil); err == nil {
			reply = slices.Clone(reply)
			if ctx.Err() != nil { // its end closes the connection, if it hasn't yet
				_ = conn.Close()
			} else {
				p.give(conn)
			}
			return reply, nil
		}
		_ = conn.Close()
		if !used || !reads(cmd) || ctx.Err() != nil || !closed(err) {
			break
		}
		p.close() // the server has closed idle connections, this one before it has read the command
		conn, err = p.take(ctx)
	}
	return nil, plainError(err)
}

// reads reports whether a command writes nothing, so that it may be sent again.
func reads(cmd []byte) bool {
	it := value.ObjectOf(cmd).Iter()
	if !it.Next() {
		return false
	}
	switch string(it.Key()) {
	case "find", "count", "distinct", "hello", "ping", "listCollections", "listDatabases", "listIndexes", "buildInfo":
		return true
	}
	return false
}

// closed reports whether an error is that of a connection which the other side has closed.
func closed(err error) bool {
	var n *net.OpError
	return errors.Is(err, io.EOF) || errors.As(err, &n) && n.Op != "dial"
}

// plainError removes the mark of errors after which others try again.
func plainError(err error) error {
	var again *Again
	if errors.As(err, &again) {
		return again.Err
	}
	return err
}

// Collections returns the names of the collections of a database.
func (c *MongoClient) Collections(ctx context.Context, db string) (names []string, err error) {
	at, cmd := bson.Begin(nil)
	cmd = bson.End(bson.AppendBool(bson.AppendInt32(cmd, "listCollections", 1), "nameOnly", true), at)
	reply, err := c.Run(ctx, db, cmd)
	if err == nil {
		err = commandError(reply)
	}
	for it := doc.Get(reply, "cursor", "firstBatch").Iter(); err == nil && it.Next(); {
		names = append(names, it.Value().Get("name").Str())
	}
	return names, err
}

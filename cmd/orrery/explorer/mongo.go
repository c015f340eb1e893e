package explorer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
)

const (
	maxCommand = 48 << 20 // bytes of a command as Extended JSON: MongoDB's limit of a message
	idleConns  = 4        // connections that are kept for the next command
)

// mongoPool keeps a few connections to the MongoDB door. Cursors don't belong to connections, so any of them can get
// the next batch. Safe for concurrent use.
type mongoPool struct {
	dial func(context.Context) (MongoConn, error)

	mu     sync.Mutex
	idle   []MongoConn
	closed bool
}

// take returns a connection, and whether it was used before: the server may have closed such a one.
func (p *mongoPool) take(ctx context.Context) (c MongoConn, used bool, err error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
		p.mu.Unlock()
		return c, true, nil
	}
	p.mu.Unlock()
	c, err = p.dial(ctx)
	return c, false, err
}

func (p *mongoPool) put(c MongoConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == idleConns {
		_ = c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

func (p *mongoPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}

// mongo runs the command in a request's body on a database. The reply is the door's, as canonical Extended JSON, with
// its status 200 also if the command failed: then "ok" is 0, as in MongoDB. The header x-ms-request-charge has the
// charge, which the door tells in the reply to the next command.
func (e *Explorer) mongo(w http.ResponseWriter, r *http.Request, db string, access Access) {
	if r.Method != http.MethodPost || db == "" {
		(&refused{http.StatusMethodNotAllowed, "MethodNotAllowed", "A command is a POST to mongo/DATABASE."}).write(w)
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommand))
	if err != nil {
		(&refused{http.StatusRequestEntityTooLarge, "TooLarge", "The command is too large."}).write(w)
		return
	}
	command, why := parseCommand(text, db)
	if why == nil && access == Reads {
		why = mayRun(command)
	}
	if why != nil {
		why.write(w)
		return
	}
	reply, charge, err := e.pool.run(r.Context(), command)
	if err != nil {
		(&refused{http.StatusBadGateway, "NoReply", "The MongoDB API didn't answer: " + err.Error()}).write(w)
		return
	}
	if charge != "" {
		w.Header().Set("X-Ms-Request-Charge", charge)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(reply)
}

// parseCommand reads a command and adds the name of its database.
func parseCommand(text []byte, db string) (doc.Doc, *refused) {
	b, err := doc.FromExtJSON(nil, text)
	if err != nil {
		return nil, &refused{http.StatusBadRequest, "BadCommand", "The command is not Extended JSON: " + err.Error()}
	}
	if doc.Get(b, "$db").IsDefined() {
		return nil, &refused{http.StatusBadRequest, "BadCommand",
			"The database is part of the path, not of the command."}
	}
	b = bson.AppendString(b[:len(b)-1], "$db", db) // in place of the zero byte that ends the document
	return bson.End(b, 0), nil
}

var lastStatistics = func() doc.Doc {
	b, err := doc.FromExtJSON(nil, []byte(`{"getLastRequestStatistics":1,"$db":"admin"}`))
	if err != nil {
		panic(err)
	}
	return b
}()

// run sends a command. When ctx ends it closes the connection, by which the door notices that nobody wants the reply.
func (p *mongoPool) run(ctx context.Context, command doc.Doc) (reply []byte, charge string, err error) {
	for {
		c, used, err := p.take(ctx)
		if err != nil {
			return nil, "", err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		raw, err := c.Exchange(command)
		if err == nil {
			reply = doc.AppendExtJSON(nil, doc.Value(raw), false)
			if raw, err = c.Exchange(lastStatistics); err == nil {
				charge = chargeOf(raw)
			}
		}
		if !stop() || err != nil {
			_ = c.Close()
		} else {
			p.put(c)
		}
		switch {
		case reply != nil:
			return reply, charge, nil
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case !used || !errors.Is(err, io.EOF):
			return nil, "", err
		}
		// The server had closed an idle connection before it has read the command.
	}
}

// chargeOf returns the charge in a reply of getLastRequestStatistics.
func chargeOf(reply doc.Doc) string {
	v := doc.Get(reply, "RequestCharge")
	if !v.IsNumber() {
		return ""
	}
	return strconv.FormatFloat(v.Float(), 'f', -1, 64)
}

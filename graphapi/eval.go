package graphapi

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/yield"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/graphbinary"
	"github.com/orrerydb/orrery/graphapi/wire/graphson"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/fault"
)

// run evaluates the request and replies. It runs on the request's goroutine.
func (w *work) run(batch int) {
	out := results{reply: w.reply, batch: batch, o: optionsOf(w.req)}
	out.buf = itemBuffers.Get().(*[]byte)
	out.items = (*out.buf)[:0]
	defer out.release()
	srv := w.conn.srv
	w.reply.seen.evaluates(w.req)
	place := new(admit.Place)
	w.reply.place = place
	err := place.Enter(w.conn.ctx, srv.o.Gate)
	if err != nil {
		w.reply.fail(failureOf(err))
		return
	}
	err = srv.guarded(yield.With(w.conn.ctx, place), func(ctx context.Context) error {
		g, err := srv.graphOf(ctx, &w.conn.login, w.req.Source, w.reply.seen)
		if err != nil {
			return err
		}
		w.req.Lazy = writesLazily(w.reply.codec)
		did, err := g.Evaluate(ctx, w.req, out.emit)
		w.reply.seen.evaluated(did)
		w.reply.charge += did.Charge
		return err
	})
	place.Leave() // a client that reads slowly doesn't block other requests
	if errors.Is(err, fault.ErrLost) {
		w.conn.cancel()
		w.conn.ws.Close()
		return
	}
	if err != nil {
		w.reply.fail(failureOf(err))
		return
	}
	out.finish()
}

// optionsOf returns how the results of a request are written.
func optionsOf(r *message.Request) message.Options {
	return message.Options{Tokens: r.Tokens, Traversers: r.Bytecode != nil}
}

// guarded runs f. A panic is logged and becomes an internal error, so that it doesn't affect other clients.
func (s *Server) guarded(ctx context.Context, f func(ctx context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.Error("A traversal panicked.", "panic", p, "stack", string(debug.Stack()))
			err = &failure{kind: kindInternal}
		}
	}()
	return f(ctx)
}

var itemBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// results collects the result items of a request and sends them in chunks: 206 for a full chunk if more items follow,
// 200 for the last one.
//
// Example: 130 items with a batch size of 64 are sent as 206 with 64, 206 with 64, and 200 with 2 items.
type results struct {
	reply *reply
	o     message.Options
	batch int

	buf   *[]byte // from the pool
	items []byte
	n     int
	sent  bool // a chunk was sent

	held    *budget.Account // for results that are larger than freeBytes
	charged int
}

// hold reserves memory for that many bytes of collected results in the budget. They count twice, because they are
// copied into a message.
func (r *results) hold(bytes int) error {
	if r.held == nil {
		r.held = r.reply.c.srv.o.Budget.Open("result")
	}
	n := bytes - r.charged
	if n <= 0 {
		return nil
	}
	r.charged = bytes
	return r.held.Grow(2 * int64(n))
}

func (r *results) release() {
	r.held.Close()
	if cap(r.items) <= maxChunkBytes+keepBuffer {
		*r.buf = r.items
		itemBuffers.Put(r.buf)
	}
}

// emit adds one result. Bytecode gets traversers with their bulk; scripts get each value as often as its bulk says.
func (r *results) emit(v any, bulk int64) error {
	if r.o.Traversers {
		return r.item(v, bulk)
	}
	for range bulk {
		if err := r.item(v, 1); err != nil {
			return err
		}
	}
	return nil
}

func (r *results) item(v any, bulk int64) error {
	if r.n >= r.batch || len(r.items) >= maxChunkBytes {
		if err := r.flush(message.PartialContent); err != nil {
			return err
		}
	}
	before := len(r.items)
	if r.n > 0 {
		r.items = r.reply.codec.AppendSeparator(r.items)
	}
	var own error // of the map, and not of the codec
	if m, ok := v.(*gvalue.LazyMap); ok {
		r.watch(m, &own)
	}
	b, err := r.reply.codec.AppendItem(r.items, v, bulk, r.o)
	if err != nil {
		r.items = b[:before]
		if own != nil {
			return own
		}
		return fail(kindResult, "%s", err.Error())
	}
	r.items = b
	r.n++
	if len(b) > freeBytes {
		return r.hold(len(b))
	}
	return nil
}

// watch makes a map that is read while it is written reserve the memory of its bytes meanwhile. own becomes the error
// of that, or of the map's entries.
func (r *results) watch(m *gvalue.LazyMap, own *error) {
	before, each := len(r.items), m.Each
	m.Written = func(bytes int) error {
		if bytes += before; bytes > freeBytes {
			*own = r.hold(bytes)
		}
		return *own
	}
	m.Each = func(f func(e gvalue.Entry) error) error {
		var ofCodec error
		err := each(func(e gvalue.Entry) error {
			ofCodec = f(e)
			return ofCodec
		})
		if err != nil && ofCodec == nil {
			*own = err
		}
		return err
	}
}

// writesLazily reports whether a codec writes maps entry by entry.
func writesLazily(c message.Codec) bool {
	switch c := c.(type) {
	case graphson.Codec:
		return !c.Strings
	case graphbinary.Codec:
		return !c.Strings
	}
	return false
}

func (r *results) flush(code int) error {
	c := r.reply.c
	status := int32(message.Success)
	if code == message.PartialContent {
		status = message.PartialContent
	}
	resp := message.Response{ID: r.reply.id, Code: code, Attributes: r.reply.attributes(status, c.srv.o.Clock.UUID())}
	err := r.send(&resp)
	r.items, r.n, r.sent = r.items[:0], 0, true
	r.charged = 0
	r.held.Close()
	if err != nil {
		return &failure{kind: kindUnavailable}
	}
	return nil
}

// send sends a chunk. Sending may take long, so the request gives up its place at the gate meanwhile.
func (r *results) send(resp *message.Response) error {
	if resp.Code == message.PartialContent { // the last chunk is sent after the request has given up its place
		if r.reply.place.Leave() {
			defer r.reply.place.Return()
		}
	}
	return r.reply.send(resp, r.items, r.n)
}

// finish sends the last chunk. Without any results TinkerPop clients get 204 and the service's applications 200, both
// with an empty list.
func (r *results) finish() {
	code := message.Success
	if r.n == 0 && !r.sent && !r.reply.service {
		code = message.NoContent
	}
	r.flush(code)
}

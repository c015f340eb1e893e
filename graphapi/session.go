package graphapi

import (
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// session executes its requests one after another, in the order in which they arrived. It belongs to its connection and
// ends with it. Each request is a separate transaction, as everywhere in this server.
type session struct {
	id   string
	last chan struct{} // closed when the last request so far is finished; nil before the first one
}

// session returns a session of the connection, and opens it if necessary.
func (c *conn) session(id string) (*session, *failure) {
	if s := c.sessions[id]; s != nil {
		return s, nil
	}
	if len(c.sessions) >= maxSessionsOnConn {
		return nil, &failure{kind: kindBusy, msg: "too many sessions on one connection"}
	}
	if c.sessions == nil {
		c.sessions = map[string]*session{}
	}
	s := &session{id: id}
	c.sessions[id] = s
	return s, nil
}

// closeSession ends a session after its requests have finished.
func (w *work) closeSession() {
	if w.session == nil {
		w.reply.fail(fail(kindArguments, "A message with an [close] op code requires a [session] argument"))
		return
	}
	delete(w.conn.sessions, w.session.id)
	w.conn.start(w, func() {
		w.reply.send(&message.Response{ID: w.reply.id, Code: message.NoContent,
			Attributes: w.reply.attributes(message.Success, w.conn.srv.o.Clock.UUID())}, nil, 0)
	})
}

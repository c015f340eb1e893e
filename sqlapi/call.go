package sqlapi

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// call is one request and its reply. Calls are pooled, so nothing may refer to a call after its handler has returned.
type call struct {
	rest.Call
	s *Server

	grant *wire.Grant // rights of the resource token; nil: everything is allowed
	sub   int         // sub-status of the reply; 0: none

	item core.Item
	room core.Mem // memory of item
}

var _ rest.Of = (*call)(nil)

// minCharge is the charge of a reply whose request has none of its own, in RU. Clients sum the charges and treat 0 as
// an error.
const minCharge = ru.Metadata

// keepMem is the largest item memory in bytes that a call keeps when it returns to the pool.
const keepMem = 256 << 10

// newCall returns a call for the pool, with buffers that are large enough for most replies.
func newCall(s *Server) *call {
	c := &call{s: s}
	c.Out, c.Body, c.Lines = make([]byte, 0, 4<<10), make([]byte, 0, 4<<10), make([]byte, 0, 512)
	return c
}

// begin is the first middleware. It attaches a call to the request.
func (s *Server) begin(g *gin.Context) {
	c := s.calls.Get().(*call)
	c.Begin(s.door, g)
	c.grant, c.sub = nil, 0
	g.Writer = c
	defer c.release() // also when a panic aborts the connection
	g.Next()
}

func (c *call) release() {
	c.End()
	c.item = core.Item{}
	if c.room.Size() > keepMem {
		c.room = core.Mem{}
	}
	c.s.calls.Put(c)
}

// setItemETag adds the etag header of an item.
func (c *call) setItemETag(it *core.Item) {
	c.BeginLine(hETag)
	c.Lines = append(c.Lines, '"')
	c.Lines = it.AppendETag(c.Lines)
	c.Lines = append(c.Lines, '"')
	c.EndLine()
}

// setETag adds the etag header: the quoted etag.
func (c *call) setETag(etag string) {
	c.BeginLine(hETag)
	c.Lines = append(c.Lines, '"')
	c.Lines = append(c.Lines, etag...)
	c.Lines = append(c.Lines, '"')
	c.EndLine()
}

// send writes the reply: the status, the headers set so far, the headers that each reply has, and c.Out as body.
func (c *call) send(code int) error { return c.sendAs(code, vJSON) }

// sendAs is send for a body of another type.
func (c *call) sendAs(code int, contentType []string) error {
	if c.Charge == 0 {
		c.Charge = minCharge
	}
	c.BeginLine(hCharge)
	c.Lines = rest.AppendCharge(c.Lines, c.Charge)
	c.EndLine()
	if d := c.Elapsed(); d > 0 {
		c.BeginLine(hDuration)
		c.Lines = strconv.AppendFloat(c.Lines, float64(d.Microseconds())/1000, 'f', 3, 64)
		c.EndLine()
	}
	c.BeginLine(rActivityID)
	c.Lines = append(c.Lines, c.ID[:]...)
	c.EndLine()
	if c.sub != 0 {
		c.SetInt(hSubStatus, int64(c.sub))
	}
	c.setReplica()
	if code == http.StatusNoContent {
		c.Set(hContentType, vJSON[0]) // as the service does: some clients decode what isn't there, if it is JSON
	}
	c.Send(code, contentType)
	return nil
}

// minimal reports whether a write should be answered without a body.
func (c *call) minimal() bool {
	return header(c.In, hPrefer) == "return=minimal"
}

// notAllowed answers a verb that the resource does not have.
func (c *call) notAllowed() error {
	c.errorBody("MethodNotAllowed", "The requested verb is not supported.", nil)
	return c.send(http.StatusMethodNotAllowed)
}

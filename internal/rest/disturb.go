package rest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/internal/httpconn"
)

// Disturb executes a request with a fault that a test has asked for. If the reply is to be lost, the connection ends.
func (c *Call) Disturb(e *fault.Effect, serve func() error) error {
	w := &caught{ResponseWriter: c.ResponseWriter, header: http.Header{}}
	if e.Loss != fault.Kept {
		c.ResponseWriter = w
	}
	err := e.Do(c.ctx, serve)
	if !errors.Is(err, fault.ErrLost) {
		return err
	}
	if e.Loss == fault.Cut && w.code != 0 { // the reply of an error would be made later
		if conn := httpconn.Of(c.Request.Context()); conn != nil {
			conn.Next(nil, 0) // the header lines of the reply that isn't sent
		}
		w.cut()
	}
	panic(http.ErrAbortHandler)
}

// caught keeps a reply from its client.
type caught struct {
	gin.ResponseWriter
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *caught) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *caught) WriteHeader(code int) { w.code = code }

// WriteHeaderNow implements gin.ResponseWriter.
func (w *caught) WriteHeaderNow() {}

// Write implements http.ResponseWriter.
func (w *caught) Write(p []byte) (int, error) { return w.body.Write(p) }

// Status implements gin.ResponseWriter.
func (w *caught) Status() int { return w.code }

// Written implements gin.ResponseWriter.
func (w *caught) Written() bool { return w.code != 0 }

// cut sends the first half of the reply, and ends the connection.
func (w *caught) cut() {
	conn, _, err := w.ResponseWriter.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	half := w.body.Bytes()[:w.body.Len()/2]
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", w.code,
		http.StatusText(w.code), w.header.Get("Content-Type"), w.body.Len()+1, half)
}

package tableapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// maxBody is the service's limit of a request body in bytes, also for batches.
const maxBody = 4 << 20

// call is one request and its reply. Calls are pooled: nothing of a call may be kept after its request.
type call struct {
	rest.Call
	s    *Server
	part bool // the request is the query of a batch: nothing is sent, groupQuery takes the body

	path      string // as sent
	query     string
	resource  string // the path after the account, escaped
	pathStyle bool
	addr      odata.Address
	params    []param
	level     edm.Level
	grant     grant

	ent   edm.Entity
	build doc.Builder
}

type param struct{ name, value string }

// contentTypes are the header values by metadata level, shared by all replies.
var contentTypes = [...][]string{
	edm.NoMetadata: {edm.NoMetadata.ContentType()},
	edm.Minimal:    {edm.Minimal.ContentType()},
	edm.Full:       {edm.Full.ContentType()},
}

var (
	xmlType = []string{"application/xml"}
)

// defaultVersion is the version in the reply to a request without x-ms-version.
const defaultVersion = "2019-02-02"

// begin reads the target of a request.
func (c *call) begin() {
	delete(c.Header(), "Allow") // the router sets it for unknown methods; otherMethod sets the right one
	c.path, c.query = target(c.Request.RequestURI)
	c.resource, c.pathStyle = c.s.resourceOf(c.path, c.query)
	c.addr, c.level, c.grant = odata.Address{}, edm.Minimal, grant{}
	c.params = parseQuery(c.params[:0], c.query)
}

// setCommon sets the headers that every reply has.
func (c *call) setCommon() {
	c.BeginLine("X-Ms-Request-Id")
	c.Lines = append(c.Lines, c.ID[:]...)
	c.EndLine()
	c.Set("X-Content-Type-Options", "nosniff")
	c.Set("Cache-Control", "no-cache")
	c.Set("Server", "Orrery") // Rust's client takes no answer without the header
	version := defaultVersion
	if v := c.In["X-Ms-Version"]; len(v) > 0 && validVersion(v[0]) {
		version = v[0]
	}
	c.Set("X-Ms-Version", version)
	if v := c.In["X-Ms-Client-Request-Id"]; len(v) > 0 && len(v[0]) <= 1024 {
		c.Set("X-Ms-Client-Request-Id", v[0])
	}
	if c.Charge == 0 { // a request about tables, or one that changes and finds nothing
		c.Charge = ru.Metadata
	}
	c.BeginLine("x-ms-request-charge")
	c.Lines = rest.AppendCharge(c.Lines, c.Charge)
	c.EndLine()
}

// parseQuery reads the query string. A pair with malformed escapes is taken literally, because $filter texts of
// hand-written requests often contain them. "+" is a blank.
func parseQuery(dst []param, q string) []param {
	for q != "" {
		var pair string
		pair, q, _ = strings.Cut(q, "&")
		if pair == "" {
			continue
		}
		name, v, _ := strings.Cut(pair, "=")
		dst = append(dst, param{unescape(name), unescape(v)})
	}
	return dst
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return strings.ReplaceAll(s, "+", " ")
}

// param returns the value of the first query parameter with this name, or "".
//
//go:noinline // called from many places, see decision 41
func (c *call) param(name string) string {
	for i := range c.params {
		if c.params[i].name == name {
			return c.params[i].value
		}
	}
	return ""
}

// checkVersion refuses an x-ms-version that isn't a date.
func (c *call) checkVersion() error {
	if v := c.In["X-Ms-Version"]; len(v) > 0 && !validVersion(v[0]) {
		return newError("InvalidHeaderValue")
	}
	return nil
}

// validVersion reports whether v has the form of a date.
func validVersion(v string) bool {
	if len(v) != len("2019-02-02") {
		return false
	}
	for i := range len(v) {
		if dash := i == 4 || i == 7; dash && v[i] != '-' || !dash && (v[i] < '0' || v[i] > '9') {
			return false
		}
	}
	return true
}

// atomSince is the first version for which a request without an Accept header, which asks for Atom, is refused.
const atomSince = "2015-12-11"

// negotiate sets the metadata level. $format has precedence over Accept. Plain JSON and */* mean minimal metadata.
func (c *call) negotiate(method string) error {
	if f := c.param("$format"); f != "" {
		if f == "json" {
			f = "application/json"
		}
		return c.accept(f)
	}
	accept := c.In["Accept"]
	if len(accept) > 0 && accept[0] != "" {
		return c.accept(strings.Join(accept, ","))
	}
	v := c.In["X-Ms-Version"]
	if method == "GET" && len(v) > 0 && v[0] >= atomSince {
		return newError("AtomFormatNotSupported")
	}
	return nil
}

func (c *call) accept(accept string) error {
	// Fast path: nearly all requests have one of these texts.
	switch accept {
	case "application/json;odata=minimalmetadata", "application/json":
		c.level = edm.Minimal
		return nil
	case "application/json;odata=nometadata":
		c.level = edm.NoMetadata
		return nil
	}
	atom := false
	for _, one := range strings.Split(strings.ToLower(accept), ",") {
		parts := strings.Split(one, ";")
		switch strings.TrimSpace(parts[0]) {
		case "application/json", "application/*", "*/*", "multipart/mixed":
			for _, p := range parts[1:] {
				switch strings.ReplaceAll(p, " ", "") {
				case "odata=nometadata":
					c.level = edm.NoMetadata
				case "odata=fullmetadata":
					c.level = edm.Full
				case "odata=minimalmetadata":
					c.level = edm.Minimal
				}
			}
			return nil
		case "application/atom+xml", "application/xml":
			atom = true
		}
	}
	if atom {
		return newError("AtomFormatNotSupported")
	}
	return newError("JsonFormatNotSupported")
}

// readBody reads the request body into c.Body.
func (c *call) readBody() error {
	err := c.ReadBody(maxBody)
	switch status.CodeOf(err) {
	case status.TooLarge, status.MemoryLimit:
		return newError("RequestBodyTooLarge")
	case status.BadRequest, status.Timeout:
		return errorMsg("InvalidInput", rest.Status(err).Msg)
	}
	return err
}

// readEntity reads the request body as one entity into c.ent.
func (c *call) readEntity() error {
	if t := c.In.Get("Content-Type"); strings.Contains(t, "atom+xml") {
		return newError("AtomFormatNotSupported")
	}
	if err := c.readBody(); err != nil {
		return err
	}
	return c.ent.Parse(c.Body)
}

// send sends the reply, with c.Out as its body.
func (c *call) send(status int, contentType []string) {
	if !c.part {
		c.setCommon()
		c.Send(status, contentType)
	}
}

// sendJSON sends c.Out as JSON of the negotiated level.
func (c *call) sendJSON(status int) error {
	c.send(status, contentTypes[c.level])
	return nil
}

// sendNothing replies with 204.
func (c *call) sendNothing() error {
	c.send(http.StatusNoContent, nil)
	return nil
}

// noContent reads the Prefer header and sets Preference-Applied in the reply.
func (c *call) noContent() bool {
	switch prefer := c.In.Get("Prefer"); prefer {
	case "return-no-content":
		c.Set("Preference-Applied", prefer)
		return true
	case "return-content":
		c.Set("Preference-Applied", prefer)
	}
	return false
}

// base returns the absolute URL of the account as the client sees it.
func (c *call) base() string {
	scheme := "http://"
	if c.Request.TLS != nil {
		scheme = "https://"
	}
	if c.pathStyle {
		return scheme + c.Request.Host + "/" + c.s.o.Account
	}
	return scheme + c.Request.Host
}

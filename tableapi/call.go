package tableapi

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// maxBody is the service's limit of a request body; batches have the same.
const maxBody = 4 << 20

// keepBuffer is the largest buffer that a call keeps for the next request.
const keepBuffer = 1 << 20

// call is one request on its way through. Calls are pooled: nothing of one may be kept after the request.
type call struct {
	s *Server
	w http.ResponseWriter
	r *http.Request

	id        string // x-ms-request-id
	path      string // as on the wire
	query     string
	resource  string // path below the account, still escaped
	pathStyle bool
	addr      odata.Address
	params    []param
	level     edm.Level
	grant     grant

	in    []byte // request body
	out   []byte // answer
	ent   edm.Entity
	build doc.Builder
}

type param struct{ name, value string }

// contentTypes holds the header values by level, shared by all answers.
var contentTypes = [...][]string{
	edm.NoMetadata: {edm.NoMetadata.ContentType()},
	edm.Minimal:    {edm.Minimal.ContentType()},
	edm.Full:       {edm.Full.ContentType()},
}

var (
	noCache     = []string{"no-cache"}
	noSniff     = []string{"nosniff"}
	defaultVers = []string{"2019-02-02"}
)

func (c *call) begin(w http.ResponseWriter, r *http.Request) {
	s := c.s
	c.w, c.r = w, r
	c.path, c.query = target(r.RequestURI)
	c.resource, c.pathStyle = s.resourceOf(c.path, c.query)
	c.id = string(appendRequestID(make([]byte, 0, 36), s.idPrefix, s.idSeq.Add(1)))
	c.addr, c.level, c.grant = odata.Address{}, edm.Minimal, grant{}
	c.params = parseQuery(c.params[:0], c.query)
	h := w.Header()
	h["X-Ms-Request-Id"] = []string{c.id}
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noCache
	if v := r.Header["X-Ms-Version"]; len(v) > 0 {
		h["X-Ms-Version"] = v[:1]
	} else {
		h["X-Ms-Version"] = defaultVers
	}
	if v := r.Header["X-Ms-Client-Request-Id"]; len(v) > 0 && len(v[0]) <= 1024 {
		h["X-Ms-Client-Request-Id"] = v[:1]
	}
}

func (c *call) end() {
	c.w, c.r = nil, nil
	if cap(c.in) > keepBuffer {
		c.in = nil
	}
	if cap(c.out) > keepBuffer {
		c.out = nil
	}
}

// appendRequestID makes a unique id in the form of a UUID without asking for randomness each time.
func appendRequestID(dst []byte, prefix string, n uint64) []byte {
	dst = append(dst, prefix...)
	const hex = "0123456789abcdef"
	for shift := 44; shift >= 0; shift -= 4 {
		dst = append(dst, hex[n>>shift&15])
	}
	return dst
}

// parseQuery reads the query string; a pair that is not escaped correctly is taken as it is, since $filter texts of hand-made
// requests often are not. "+" is a blank.
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

// param returns the first query parameter of that name, "" when there is none.
func (c *call) param(name string) string {
	for i := range c.params {
		if c.params[i].name == name {
			return c.params[i].value
		}
	}
	return ""
}

// checkVersion refuses an x-ms-version that is no date.
func (c *call) checkVersion() error {
	v := c.r.Header["X-Ms-Version"]
	if len(v) == 0 {
		return nil
	}
	ok := len(v[0]) == 10
	for i := 0; ok && i < 10; i++ {
		if d := v[0][i]; i == 4 || i == 7 {
			ok = d == '-'
		} else {
			ok = d >= '0' && d <= '9'
		}
	}
	if !ok {
		c.w.Header()["X-Ms-Version"] = defaultVers
		return newError("InvalidHeaderValue")
	}
	return nil
}

// atomSince is the version from which on an absent Accept header, which asks for Atom, is refused.
const atomSince = "2015-12-11"

// negotiate sets the metadata level: $format wins over Accept, plain JSON and */* are minimal.
func (c *call) negotiate(method string) error {
	if f := c.param("$format"); f != "" {
		if f == "json" {
			f = "application/json"
		}
		return c.accept(f)
	}
	accept := c.r.Header["Accept"]
	if len(accept) > 0 && accept[0] != "" {
		return c.accept(strings.Join(accept, ","))
	}
	v := c.r.Header["X-Ms-Version"]
	if method == "GET" && len(v) > 0 && v[0] >= atomSince {
		return newError("AtomFormatNotSupported")
	}
	return nil
}

func (c *call) accept(accept string) error {
	// The exact texts that clients send come first: they are nearly all requests.
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

// readBody reads the request body into c.in.
func (c *call) readBody() error {
	n := c.r.ContentLength
	if n > maxBody {
		return newError("RequestBodyTooLarge")
	}
	if int64(cap(c.in)) < n {
		c.in = make([]byte, 0, n+512)
	}
	c.in = c.in[:0]
	if n >= 0 {
		c.in = c.in[:n]
		if _, err := io.ReadFull(c.r.Body, c.in); err != nil {
			return newError("InvalidInput")
		}
		return nil
	}
	var err error
	if c.in, err = appendAll(c.in, io.LimitReader(c.r.Body, maxBody+1)); err != nil {
		return newError("InvalidInput")
	}
	if len(c.in) > maxBody {
		return newError("RequestBodyTooLarge")
	}
	return nil
}

func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// readEntity reads the request body as one entity into c.ent.
func (c *call) readEntity() error {
	if t := c.r.Header.Get("Content-Type"); strings.Contains(t, "atom+xml") {
		return newError("AtomFormatNotSupported")
	}
	if err := c.readBody(); err != nil {
		return err
	}
	return c.ent.Parse(c.in)
}

// send sends c.out with its length.
func (c *call) send(status int) {
	c.w.Header()["Content-Length"] = []string{strconv.Itoa(len(c.out))}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(c.out) // the client is gone: nobody to tell
}

// sendJSON sends c.out as JSON of the negotiated level.
func (c *call) sendJSON(status int) error {
	c.w.Header()["Content-Type"] = contentTypes[c.level]
	c.send(status)
	return nil
}

// sendNothing answers 204.
func (c *call) sendNothing() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// noContent reads the Prefer header and says in the answer what was applied.
func (c *call) noContent() bool {
	switch prefer := c.r.Header.Get("Prefer"); prefer {
	case "return-no-content":
		c.w.Header()["Preference-Applied"] = []string{prefer}
		return true
	case "return-content":
		c.w.Header()["Preference-Applied"] = []string{prefer}
	}
	return false
}

// base returns the absolute address of the account as the client sees it.
func (c *call) base() string {
	scheme := "http://"
	if c.r.TLS != nil {
		scheme = "https://"
	}
	if c.pathStyle {
		return scheme + c.r.Host + "/" + c.s.o.Account
	}
	return scheme + c.r.Host
}

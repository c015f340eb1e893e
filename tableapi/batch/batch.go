// Package batch reads and writes the multipart framing of entity group transactions (POST $batch): the envelope, its
// one change set, and the requests in it. It doesn't interpret entities.
//
// Microsoft's page "Performing entity group transactions" describes the framing. Clients differ in the case of header
// names, in order, blank lines and line ends, so the reader is lenient about these.
//
//	--batch_1                                         the envelope: boundary batch_1
//	Content-Type: multipart/mixed; boundary=changeset_1
//
//	--changeset_1                                     a part: one operation
//	Content-Type: application/http
//
//	POST /people HTTP/1.1                             -> Op.Method and Op.URI
//	Content-Type: application/json                    -> a header of Op
//
//	{"PartitionKey": "p", "RowKey": "r"}              -> Op.Body
//	--changeset_1--
//	--batch_1--
package batch

import (
	"bytes"
	"strings"
)

// maxOperations is the service's limit of operations in a change set.
const maxOperations = 100

// Error is the error for an envelope that can't be read: status 400 for the whole batch.
type Error struct{ Msg string }

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// Op is one request of a batch. Body points into the batch's bytes.
type Op struct {
	Method    string
	URI       string // as in the request line: absolute or relative, escaped
	ContentID string // repeated in the reply, "" = none
	Header    []Header
	Body      []byte
}

// Header is one header line.
type Header struct{ Name, Value string }

// Get returns the value of the first header with this name, ignoring case, or "".
func (o *Op) Get(name string) string {
	for i := range o.Header {
		if strings.EqualFold(o.Header[i].Name, name) {
			return o.Header[i].Value
		}
	}
	return ""
}

// Request is a batch: the operations of its change set, or a single query.
type Request struct {
	Ops     []Op
	IsQuery bool
}

// Parse reads a batch body. contentType is the request's header, which contains the boundary. More than maxOperations
// operations are an error.
func Parse(contentType string, body []byte) (*Request, error) {
	boundary, ok := boundaryOf(contentType)
	if !ok {
		return nil, &Error{"The Content-Type of a batch must be multipart/mixed with a boundary."}
	}
	outer, err := split(body, boundary, 1)
	if err != nil {
		return nil, err
	}
	if len(outer) != 1 {
		return nil, &Error{"A batch must hold exactly one change set or one query."}
	}
	head, rest := headers(outer[0])
	ctype := get(head, "Content-Type")
	if inner, ok := boundaryOf(ctype); ok {
		return changeSet(rest, inner)
	}
	if !isHTTP(ctype) {
		return nil, &Error{"A part of a batch must be multipart/mixed or application/http."}
	}
	op, err := request(head, rest)
	if err != nil {
		return nil, err
	}
	if op.Method != "GET" {
		return nil, &Error{"A write in a batch must be in a change set."}
	}
	return &Request{Ops: []Op{op}, IsQuery: true}, nil
}

func changeSet(body []byte, boundary string) (*Request, error) {
	parts, err := split(body, boundary, maxOperations)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, &Error{"The change set is empty."}
	}
	r := &Request{Ops: make([]Op, 0, len(parts))}
	for _, p := range parts {
		head, rest := headers(p)
		if !isHTTP(get(head, "Content-Type")) {
			return nil, &Error{"A part of a change set must be application/http."}
		}
		op, err := request(head, rest)
		if err != nil {
			return nil, err
		}
		r.Ops = append(r.Ops, op)
	}
	return r, nil
}

// request reads the request line, headers and body of one operation.
func request(part []Header, b []byte) (Op, error) {
	b = skipBlank(b)
	line, b := cutLine(b)
	method, uri, ok := strings.Cut(line, " ")
	if i := strings.LastIndex(uri, " HTTP/"); i >= 0 {
		uri = uri[:i]
	}
	uri = strings.TrimSpace(uri)
	if !ok || uri == "" {
		return Op{}, &Error{"A request line in the batch is malformed."}
	}
	op := Op{Method: strings.ToUpper(method), URI: uri, ContentID: get(part, "Content-ID")}
	op.Header, b = headers(b)
	if op.ContentID == "" {
		op.ContentID = op.Get("Content-ID")
	}
	op.Body = bytes.TrimSpace(b)
	return op, nil
}

// boundaryOf returns the boundary of a multipart content type.
func boundaryOf(contentType string) (string, bool) {
	mime, params, _ := strings.Cut(contentType, ";")
	if !strings.EqualFold(strings.TrimSpace(mime), "multipart/mixed") {
		return "", false
	}
	for _, p := range strings.Split(params, ";") {
		name, v, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "boundary") {
			v = strings.Trim(strings.TrimSpace(v), `"`)
			return v, v != "" && len(v) <= 200
		}
	}
	return "", false
}

func isHTTP(contentType string) bool {
	mime, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(mime), "application/http")
}

// split cuts a multipart body at its delimiter lines. A missing closing delimiter is an error, because the body was
// truncated. The envelope, which has one part, may end with a delimiter that doesn't close, as Rust's client writes it:
// a change set in it has a closing delimiter of its own, and a query changes nothing.
func split(b []byte, boundary string, limit int) ([][]byte, error) {
	var parts [][]byte
	open := -1 // start of the current part
	for at := 0; at < len(b); {
		end := len(b)
		next := end
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		if end > at+1 && b[at] == '-' && b[at+1] == '-' {
			line := bytes.TrimRight(b[at:end], " \t\r")
			if rest, ok := bytes.CutPrefix(line[2:], []byte(boundary)); ok && (len(rest) == 0 || string(rest) == "--") {
				if open >= 0 {
					if len(parts) == limit {
						return nil, &Error{"The batch request contains too many operations or parts."}
					}
					parts = append(parts, b[open:at])
				}
				if len(rest) != 0 {
					return parts, nil
				}
				open = next
			}
		}
		at = next
	}
	if limit == 1 && len(parts) == 1 && len(bytes.TrimSpace(b[open:])) == 0 {
		return parts, nil
	}
	return nil, &Error{"The multipart body has no closing delimiter."}
}

// headers reads header lines up to a blank line and returns the bytes after it.
func headers(b []byte) (h []Header, rest []byte) {
	for len(b) > 0 {
		var line string
		if line, b = cutLine(b); line == "" {
			break
		}
		name, v, _ := strings.Cut(line, ":")
		h = append(h, Header{strings.TrimSpace(name), strings.TrimSpace(v)})
	}
	return h, b
}

func get(h []Header, name string) string {
	o := Op{Header: h}
	return o.Get(name)
}

func cutLine(b []byte) (line string, rest []byte) {
	l, rest, _ := bytes.Cut(b, []byte{'\n'})
	return string(bytes.TrimRight(l, " \t\r")), rest
}

func skipBlank(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// Writer builds the reply to a batch in one buffer.
type Writer struct {
	Buf   []byte
	outer string
	inner string
	inSet bool
}

// Begin starts a reply whose boundaries end in id. The id must not occur in the reply's content. set says whether the
// parts belong to a change set.
func (w *Writer) Begin(id string, set bool) {
	w.outer, w.inner, w.inSet = "batchresponse_"+id, "changesetresponse_"+id, set
	w.str("--", w.outer, "\r\n")
	if set {
		w.str("Content-Type: multipart/mixed; boundary=", w.inner, "\r\n\r\n")
	}
}

// ContentType returns the content type of the reply.
func (w *Writer) ContentType() string { return "multipart/mixed; boundary=" + w.outer }

// Part starts the reply to one operation. status is the text after the protocol, such as "204 No Content". Calls of
// Header follow, then one of Body.
func (w *Writer) Part(status, contentID string) {
	if w.inSet {
		w.str("--", w.inner, "\r\n")
	}
	w.str("Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 ", status, "\r\n")
	if contentID != "" && !strings.ContainsAny(contentID, "\r\n") {
		w.Header("Content-ID", contentID)
	}
}

// Header appends one header line to the current part.
func (w *Writer) Header(name, v string) { w.str(name, ": ", v, "\r\n") }

// Body ends the headers of the current part and appends its body, which may be empty.
func (w *Writer) Body(b []byte) {
	w.str("\r\n")
	w.Buf = append(w.Buf, b...)
	w.str("\r\n")
}

// End ends the reply.
func (w *Writer) End() {
	if w.inSet {
		w.str("--", w.inner, "--\r\n")
	}
	w.str("--", w.outer, "--\r\n")
}

//go:noinline // called from many places, see decision 41
func (w *Writer) str(parts ...string) {
	for _, p := range parts {
		w.Buf = append(w.Buf, p...)
	}
}

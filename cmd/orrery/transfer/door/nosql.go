package door

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
)

// NoSQL is a container behind the NoSQL API.
type NoSQL struct {
	url, key      string
	db, container string
	http          *http.Client
	clock         *clock.Clock
	paths         [][]string // of the partition key
	rooms         sync.Pool  // of *[]byte, for the bodies of bulks
}

const nosqlVersion = "2020-11-05"

// OpenNoSQL opens a container. It is created with the partition key paths if these are given and it is absent.
func OpenNoSQL(ctx context.Context, s *Server, db, container string, create []string) (*NoSQL, error) {
	if s.NoSQL == "" {
		return nil, errors.New("the server has no NoSQL API (--nosql-addr off), or its address isn't known")
	}
	n := &NoSQL{url: strings.TrimSuffix(s.NoSQL, "/"), key: s.Key, db: db, container: container, http: newHTTP(),
		clock: clock.New()}
	ctx = first(ctx)
	var def struct{ PartitionKey struct{ Paths []string } }
	err := n.ask(ctx, http.MethodGet, "colls", n.link(), n.path(), nil, nil, &def)
	var absent *refusal
	if errors.As(err, &absent) && absent.code == http.StatusNotFound && len(create) > 0 {
		if err = n.create(ctx, create); err == nil {
			def.PartitionKey.Paths = create
		}
	} else if absent != nil && absent.code == http.StatusNotFound {
		return nil, fmt.Errorf("there is no container %s/%s: create it, or name its key with --partition-key", db,
			container)
	}
	for _, p := range def.PartitionKey.Paths {
		segs := strings.Split(strings.TrimPrefix(p, "/"), "/")
		for i := range segs {
			segs[i] = strings.Trim(segs[i], `"`)
		}
		n.paths = append(n.paths, segs)
	}
	return n, err
}

// Names lists the databases of a server, or the containers of a database.
func Names(ctx context.Context, s *Server, db string) ([]string, error) {
	n := &NoSQL{url: strings.TrimSuffix(s.NoSQL, "/"), key: s.Key, http: newHTTP(), clock: clock.New()}
	kind, link, path := "dbs", "", "/dbs"
	if db != "" {
		kind, link, path = "colls", "dbs/"+db, "/dbs/"+url.PathEscape(db)+"/colls"
	}
	var reply struct{ Databases, DocumentCollections []struct{ ID string } }
	code, h, text, err := n.send(ctx, http.MethodGet, kind, link, path, nil, nil, nil)
	if err == nil && code >= 300 {
		err = refused(code, h, text)
	}
	if err == nil {
		err = stdjson.Unmarshal(text, &reply)
	}
	var out []string
	for _, r := range append(reply.Databases, reply.DocumentCollections...) {
		out = append(out, r.ID)
	}
	return out, err
}

func (n *NoSQL) link() string { return "dbs/" + n.db + "/colls/" + n.container }
func (n *NoSQL) path() string {
	return "/dbs/" + url.PathEscape(n.db) + "/colls/" + url.PathEscape(n.container)
}

// create creates the database, if it is absent, and the container.
func (n *NoSQL) create(ctx context.Context, paths []string) error {
	body, err := stdjson.Marshal(map[string]string{"id": n.db})
	if err != nil {
		return err
	}
	err = n.ask(ctx, http.MethodPost, "dbs", "", "/dbs", nil, body, nil)
	var r *refusal
	if err != nil && !(errors.As(err, &r) && r.code == http.StatusConflict) {
		return err
	}
	kind := "Hash"
	if len(paths) > 1 {
		kind = "MultiHash"
	}
	body, err = stdjson.Marshal(map[string]any{"id": n.container,
		"partitionKey": map[string]any{"paths": paths, "kind": kind, "version": 2}})
	if err != nil {
		return err
	}
	return n.ask(ctx, http.MethodPost, "colls", "dbs/"+n.db, "/dbs/"+url.PathEscape(n.db)+"/colls", nil, body, nil)
}

// refusal is an answer with an error.
type refusal struct {
	code int
	text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// refused returns the error of an answer: *Again if it asks for a pause.
func refused(code int, header http.Header, body []byte) error {
	var e struct{ Message string }
	if stdjson.Unmarshal(body, &e) != nil || e.Message == "" {
		e.Message = fmt.Sprintf("%.300s", body)
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "Message: "), "\r\nActivityId")
	err := &refusal{code, fmt.Sprintf("%d %s: %s", code, http.StatusText(code), text)}
	switch code {
	case http.StatusTooManyRequests, 449, http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusGone:
		return &Again{Err: err, Wait: retryAfter(code, header)}
	}
	return err
}

// retryAfter returns the pause that a server asks for, at least 10 ms.
func retryAfter(code int, header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("x-ms-retry-after-ms"), 64); err == nil {
		return max(10*time.Millisecond, time.Duration(ms*float64(time.Millisecond)))
	}
	if s, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
		return max(10*time.Millisecond, time.Duration(s)*time.Second)
	}
	if code == http.StatusTooManyRequests {
		return 100 * time.Millisecond
	}
	return 0
}

// sign returns the value of Authorization.
func sign(key, text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return "", errors.New("the account key is not base64")
	}
	m := hmac.New(sha256.New, raw)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil)), nil
}

// send sends one request once. The reply is in buf.
func (n *NoSQL) send(ctx context.Context, method, kind, link, path string, header map[string]string, body []byte,
	buf []byte) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, buf, err
	}
	date := n.clock.Now().Format(http.TimeFormat)
	sig, err := sign(n.key, strings.ToLower(method)+"\n"+kind+"\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	if err != nil {
		return 0, nil, buf, err
	}
	req.Header["Authorization"] = []string{url.QueryEscape("type=master&ver=1.0&sig=" + sig)}
	req.Header["X-Ms-Date"], req.Header["X-Ms-Version"] = []string{date}, []string{nosqlVersion}
	req.Header["Content-Type"] = []string{"application/json"}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := n.http.Do(req)
	if err != nil {
		return 0, nil, buf, lost(n.url, err)
	}
	defer res.Body.Close()
	if l := int(res.ContentLength); l > cap(buf) {
		buf = make([]byte, 0, l+1)
	}
	if buf, err = readAll(buf, res.Body); err != nil {
		return 0, nil, buf, lost(n.url, err)
	}
	return res.StatusCode, res.Header, buf, nil
}

// ask sends a request until it is answered, and reads the reply into out.
func (n *NoSQL) ask(ctx context.Context, method, kind, link, path string, header map[string]string, body []byte,
	out any) error {
	return tries(ctx, func() error {
		code, h, text, err := n.send(ctx, method, kind, link, path, header, body, nil)
		switch {
		case err != nil:
			return err
		case code >= 300:
			return refused(code, h, text)
		case out == nil:
			return nil
		}
		return stdjson.Unmarshal(text, out)
	})
}

// Limits of a batch: the service's 100 operations, and a body below its 2 MB.
const (
	batchRows  = 100
	batchBytes = 1 << 20
)

// Full implements transfer.Target.
func (n *NoSQL) Full(b *transfer.Batch) bool {
	return len(b.Rows) >= batchRows || len(b.Buf) >= batchBytes
}

// system are the fields that the server computes.
var system = map[string]bool{"_rid": true, "_self": true, "_etag": true, "_ts": true, "_attachments": true,
	"_lsn": true}

// Prepare implements transfer.Target. A row without an id gets one.
func (n *NoSQL) Prepare(b *transfer.Batch, r *transfer.Row, num int64) error {
	s := transfer.Sent{Line: r.Line}
	from := len(b.Buf)
	if r.Text != nil {
		b.Buf = append(b.Buf, r.Text...)
	} else {
		b.Buf = append(doc.AppendJSONFields(append(b.Buf, '{'), r.Doc, doc.NoSQL), '}')
	}
	hasID, empty := false, true
	var keys keyTexts
	err := json.EachNamed(b.Buf[from:], func(name, raw []byte) error {
		if string(name) == "id" {
			hasID = true
			if raw[0] != '"' {
				return errors.New("the id is not a string")
			}
		}
		for i, p := range n.paths {
			if p[0] == string(name) && i < len(keys) {
				keys[i] = at(raw, p[1:])
			}
		}
		empty = false
		return nil
	})
	if err != nil {
		b.Buf = b.Buf[:from]
		return err
	}
	if !hasID {
		id := transfer.DerivedID(num, b.Buf[from:])
		for i := range keys {
			keys[i] = bytes.Clone(keys[i]) // their place is written over
		}
		var text []byte
		b.Buf, text = insertID(b.Buf, from, id, empty)
		for i, p := range n.paths {
			if p[0] == "id" {
				keys[i] = text
			}
		}
	}
	s.Body = [2]int{from, len(b.Buf)}
	b.Buf = keys.append(b.Buf, len(n.paths))
	s.Key = [2]int{s.Body[1], len(b.Buf)}
	b.Rows = append(b.Rows, s)
	return nil
}

// insertID makes the id the first field of the object that begins at from and is the rest of buf. It returns the id's
// JSON text, too.
func insertID(buf []byte, from int, id [16]byte, empty bool) (with, text []byte) {
	text = append(value.AppendUUID([]byte(`"`), id[:]), '"')
	rest := bytes.Clone(buf[from+1:])
	buf = append(append(buf[:from], `{"id":`...), text...)
	if !empty {
		buf = append(buf, ',')
	}
	return append(buf, rest...), text
}

// keyTexts are the values of a partition key as JSON text, in the order of its paths; empty: the row has none.
type keyTexts [3][]byte

// append appends the first n values as a JSON array.
func (k *keyTexts) append(dst []byte, n int) []byte {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if len(k[i]) == 0 {
			dst = append(dst, "{}"...)
		} else {
			dst = append(dst, k[i]...)
		}
	}
	return append(dst, ']')
}

// at returns the value at a path below raw, nil if it isn't there or has no place in a partition key.
func at(raw []byte, path []string) []byte {
	for _, p := range path {
		var found []byte
		if raw[0] != '{' || json.EachMember(raw, func(name string, v []byte) error {
			if name == p {
				found = v
			}
			return nil
		}) != nil || found == nil {
			return nil
		}
		raw = found
	}
	if raw[0] == '{' || raw[0] == '[' {
		return nil
	}
	return raw
}

// result is the answer to one operation of a bulk.
type result struct {
	StatusCode             int
	SubStatusCode          int
	Message                string
	RetryAfterMilliseconds float64
}

// readResults reads the answer to a bulk of at most so many operations. Of an operation that has succeeded only the
// code is read.
func readResults(text []byte, most int) ([]result, error) {
	results := make([]result, 0, most)
	err := json.EachElement(text, func(raw []byte) error {
		var res result
		err := json.EachNamed(raw, func(name, v []byte) (err error) {
			if string(name) == "statusCode" {
				res.StatusCode, err = strconv.Atoi(string(v))
			}
			return err
		})
		if err != nil || res.StatusCode < 200 || res.StatusCode >= 300 {
			res = result{}
			err = stdjson.Unmarshal(raw, &res)
		}
		results = append(results, res)
		return err
	})
	return results, err
}

// bulkHeader are the headers of a bulk: operations of their own, of which all are done.
var bulkHeader = map[string]string{"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False",
	"x-ms-cosmos-batch-continue-on-error": "True", "Prefer": "return=minimal"}

// Write implements transfer.Target. If the server refuses the rows as a whole, both halves are sent alone, and so on,
// until the rows at fault are found.
func (n *NoSQL) Write(ctx context.Context, b *transfer.Batch, rows []int, replace bool,
	verdict func(int, transfer.Verdict, string)) (wait time.Duration, err error) {
	room, _ := n.rooms.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	body := appendOperations((*room)[:0], b, rows, replace)
	var results []result
	err = tries(ctx, func() error {
		code, h, text, err := n.send(ctx, http.MethodPost, "docs", n.link(), n.path()+"/docs", bulkHeader, body, nil)
		switch {
		case err != nil:
			return err
		case code >= 300:
			return refused(code, h, text)
		}
		results, err = readResults(text, len(rows))
		return err
	})
	var r *refusal
	switch atFault := errors.As(err, &r) && (r.code == http.StatusBadRequest ||
		r.code == http.StatusRequestEntityTooLarge); {
	case atFault && len(rows) == 1:
		verdict(rows[0], transfer.Refused, r.text)
		return 0, nil
	case atFault:
		for _, half := range [][]int{rows[:len(rows)/2], rows[len(rows)/2:]} {
			w, err := n.Write(ctx, b, half, replace, verdict)
			if err != nil {
				return 0, err
			}
			wait = max(wait, w)
		}
		return wait, nil
	case err != nil:
		return 0, fmt.Errorf("%s/%s: %w", n.db, n.container, err)
	case len(results) != len(rows):
		return 0, fmt.Errorf("%s answers %d of %d operations", n.url, len(results), len(rows))
	}
	*room = body // the server has read all of it; after an error the transport may still be sending it
	n.rooms.Put(room)
	for i := range results {
		res := &results[i]
		if res.StatusCode == http.StatusForbidden && res.SubStatusCode == 0 {
			// No row is at fault: the server's disk is full.
			return 0, fmt.Errorf("%s/%s: %s", n.db, n.container, res.text())
		}
		v, text := res.verdict(replace)
		if v == transfer.Later {
			wait = max(wait, time.Duration(res.RetryAfterMilliseconds)*time.Millisecond, 20*time.Millisecond)
		}
		verdict(rows[i], v, text)
	}
	return wait, nil
}

// appendOperations appends the body of a bulk with one operation for each row.
func appendOperations(body []byte, b *transfer.Batch, rows []int, replace bool) []byte {
	verb := `{"operationType":"Create","partitionKey":`
	if replace {
		verb = `{"operationType":"Upsert","partitionKey":`
	}
	body = append(slices.Grow(body, len(b.Buf)+len(rows)*100), '[')
	for i, row := range rows {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, verb...)
		body = json.AppendText(body, b.Part(b.Rows[row].Key))
		body = append(body, `,"resourceBody":`...)
		body = append(body, b.Part(b.Rows[row].Body)...)
		body = append(body, '}')
	}
	return append(body, ']')
}

// verdict is what a result says about its row, and why.
func (r *result) verdict(replace bool) (v transfer.Verdict, text string) {
	switch code := r.StatusCode; {
	case code < 300:
		return transfer.Written, ""
	case code == http.StatusConflict && !replace:
		return transfer.Exists, r.Message
	case code == http.StatusTooManyRequests || code == 449 || code == http.StatusServiceUnavailable ||
		code == http.StatusRequestTimeout || code == http.StatusFailedDependency:
		return transfer.Later, ""
	}
	return transfer.Refused, r.text()
}

func (r *result) text() string {
	return fmt.Sprintf("%d %s %s", r.StatusCode, http.StatusText(r.StatusCode), r.Message)
}

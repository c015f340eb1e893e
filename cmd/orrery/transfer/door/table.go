package door

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/json"
)

// Table is a table behind the Table API.
type Table struct {
	url, account, key, table string
	http                     *http.Client
	clock                    *clock.Clock
}

// OpenTable opens a table, which is created if it is absent and create says so.
func OpenTable(ctx context.Context, s *Server, table string, create bool) (*Table, error) {
	if s.Table == "" {
		return nil, errors.New("the server has no Table API (--table-addr off), or its address isn't known")
	}
	t := &Table{url: strings.TrimSuffix(s.Table, "/"), account: s.Account, key: s.Key, table: table, http: newHTTP(),
		clock: clock.New()}
	if !create {
		return t, nil
	}
	body, err := stdjson.Marshal(map[string]string{"TableName": table})
	if err != nil {
		return nil, err
	}
	ctx = first(ctx)
	err = tries(ctx, func() error {
		code, h, text, err := t.send(ctx, http.MethodPost, "/Tables", "", "application/json", body)
		if err == nil && code >= 300 && code != http.StatusConflict {
			err = tableRefused(code, h, text)
		}
		return err
	})
	return t, err
}

// Close implements io.Closer.
func (t *Table) Close() error { return nil }

// tableRefused returns the error of an answer.
func tableRefused(code int, header http.Header, body []byte) error {
	err := refused(code, header, body)
	var e struct {
		Error struct{ Message struct{ Value string } } `json:"odata.error"`
	}
	if stdjson.Unmarshal(body, &e) == nil && e.Error.Message.Value != "" {
		text, _, _ := strings.Cut(e.Error.Message.Value, "\n")
		var r *refusal
		if errors.As(err, &r) {
			r.text = fmt.Sprintf("%d %s: %s", code, http.StatusText(code), text)
		}
	}
	return err
}

// send sends a request once.
func (t *Table) send(ctx context.Context, method, path, query, kind string, body []byte) (int, http.Header, []byte,
	error) {
	u, err := url.Parse(t.url + path)
	if err != nil {
		return 0, nil, nil, err
	}
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	date := t.clock.Now().Format(http.TimeFormat)
	sig, err := sign(t.key, date+"\n/"+t.account+req.URL.EscapedPath())
	if err != nil {
		return 0, nil, nil, err
	}
	for k, v := range map[string]string{"x-ms-date": date, "x-ms-version": "2019-02-02", "DataServiceVersion": "3.0",
		"Authorization": "SharedKeyLite " + t.account + ":" + sig, "Content-Type": kind, "Prefer": "return-no-content",
		"Accept": "application/json;odata=minimalmetadata"} {
		req.Header.Set(k, v)
	}
	res, err := t.http.Do(req)
	if err != nil {
		return 0, nil, nil, lost(t.url, err)
	}
	defer res.Body.Close()
	text, err := readAll(nil, res.Body)
	if err != nil {
		return 0, nil, nil, lost(t.url, err)
	}
	return res.StatusCode, res.Header, text, nil
}

// Full implements transfer.Target.
func (t *Table) Full(b *transfer.Batch) bool {
	return len(b.Rows) >= batchRows || len(b.Buf) >= batchBytes
}

// Prepare implements transfer.Target.
func (t *Table) Prepare(b *transfer.Batch, r *transfer.Row, _ int64) error {
	if r.Text == nil {
		return errors.New("the row is no entity")
	}
	keys := map[string]string{}
	err := json.EachMember(r.Text, func(name string, raw []byte) error {
		if name == "PartitionKey" || name == "RowKey" {
			s, ok := json.String(raw)
			if !ok {
				return fmt.Errorf("the %s is not a string", name)
			}
			keys[name] = s
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(keys) < 2 {
		return errors.New("the entity has no PartitionKey or no RowKey")
	}
	quoted := func(s string) string { return url.PathEscape(strings.ReplaceAll(s, "'", "''")) }
	s := transfer.Sent{Line: r.Line, Body: b.Append(r.Text)}
	pk := quoted(keys["PartitionKey"])
	s.Key = b.Append([]byte("/" + t.table + "(PartitionKey='" + pk + "',RowKey='" + quoted(keys["RowKey"]) + "')"))
	b.Rows = append(b.Rows, s)
	return nil
}

// partition returns what the addresses of entities with one PartitionKey have in common.
func partition(address []byte) string {
	before, _, _ := strings.Cut(string(address), "',RowKey='")
	return before
}

// Write implements transfer.Target. Entities with the same PartitionKey are sent as one change set. If it is refused
// they are sent one by one.
func (t *Table) Write(ctx context.Context, b *transfer.Batch, rows []int, replace bool,
	verdict func(int, transfer.Verdict, string)) (wait time.Duration, err error) {
	groups := map[string][]int{}
	for _, row := range rows {
		p := partition(b.Part(b.Rows[row].Key))
		groups[p] = append(groups[p], row)
	}
	for _, p := range slices.Sorted(maps.Keys(groups)) {
		group := groups[p]
		whole := false
		if len(group) > 1 {
			if whole, err = t.changeSet(ctx, b, group, replace); err != nil {
				return 0, err
			}
		}
		for _, row := range group {
			if whole {
				verdict(row, transfer.Written, "")
			} else if err := t.one(ctx, b, row, replace, verdict); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// request returns method and path of the request that writes an entity.
func (t *Table) request(b *transfer.Batch, row int, replace bool) (method, path string) {
	if replace {
		return http.MethodPut, string(b.Part(b.Rows[row].Key))
	}
	return http.MethodPost, "/" + t.table
}

// changeSet sends entities of one partition. It reports whether they are written.
func (t *Table) changeSet(ctx context.Context, b *transfer.Batch, rows []int, replace bool) (bool, error) {
	var body bytes.Buffer
	body.WriteString("--batch\r\nContent-Type: multipart/mixed; boundary=changes\r\n\r\n")
	for _, row := range rows {
		method, path := t.request(b, row, replace)
		fmt.Fprintf(&body, "--changes\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"%s %s%s HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json\r\n"+
			"Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n%s\r\n", method, t.url, path,
			b.Part(b.Rows[row].Body))
	}
	body.WriteString("--changes--\r\n--batch--\r\n")
	whole := false
	err := tries(ctx, func() error {
		code, h, text, err := t.send(ctx, http.MethodPost, "/$batch", "", "multipart/mixed; boundary=batch",
			body.Bytes())
		switch {
		case err != nil:
			return err
		case code == http.StatusAccepted:
			whole = !bytes.Contains(text, []byte("HTTP/1.1 4")) && !bytes.Contains(text, []byte("HTTP/1.1 5"))
		case code >= 300:
			err = tableRefused(code, h, text)
			var again *Again
			if !errors.As(err, &again) {
				err = nil // one of them is at fault
			}
		}
		return err
	})
	return whole, err
}

// one sends an entity.
func (t *Table) one(ctx context.Context, b *transfer.Batch, row int, replace bool,
	verdict func(int, transfer.Verdict, string)) error {
	method, path := t.request(b, row, replace)
	err := tries(ctx, func() error {
		code, h, text, err := t.send(ctx, method, path, "", "application/json", b.Part(b.Rows[row].Body))
		if err == nil && code >= 300 {
			err = tableRefused(code, h, text)
		}
		return err
	})
	var r *refusal
	switch {
	case err == nil:
		verdict(row, transfer.Written, "")
	case errors.As(err, &r) && r.code == http.StatusConflict && !replace:
		verdict(row, transfer.Exists, r.text)
	case errors.As(err, &r) && r.code < 500 && r.code != http.StatusForbidden && r.code != http.StatusNotFound &&
		r.code != http.StatusTooManyRequests:
		verdict(row, transfer.Refused, r.text)
	default:
		return fmt.Errorf("table %s: %w", t.table, err)
	}
	return nil
}

// Size implements transfer.Source. The protocol has no count.
func (t *Table) Size(context.Context) (int64, error) { return 0, nil }

// Rows implements transfer.Source: entities without Timestamp and etag, with the types of their properties.
func (t *Table) Rows(ctx context.Context, f func(*transfer.Row) error) error {
	query, num := url.Values{}, int64(0)
	for {
		var page []byte
		var next http.Header
		err := tries(ctx, func() error {
			code, h, text, err := t.send(ctx, http.MethodGet, "/"+t.table+"()", query.Encode(), "application/json", nil)
			if err == nil && code >= 300 {
				err = tableRefused(code, h, text)
			}
			page, next = text, h
			return err
		})
		if err != nil {
			return fmt.Errorf("table %s: %w", t.table, err)
		}
		err = json.EachMember(page, func(name string, raw []byte) error {
			if name != "value" {
				return nil
			}
			return json.EachElement(raw, func(entity []byte) error {
				num++
				text, err := ownProperties(entity)
				if err != nil {
					return err
				}
				return f(&transfer.Row{Text: text, Line: num})
			})
		})
		if err != nil {
			return err
		}
		query = url.Values{}
		for _, name := range []string{"NextPartitionKey", "NextRowKey"} {
			if v := next.Get("x-ms-continuation-" + name); v != "" {
				query.Set(name, v)
			}
		}
		if len(query) == 0 {
			return nil
		}
	}
}

// ownProperties returns an entity without what the server has made.
func ownProperties(entity []byte) ([]byte, error) {
	out := append(make([]byte, 0, len(entity)), '{')
	err := json.EachMember(entity, func(name string, raw []byte) error {
		if strings.HasPrefix(name, "odata.") || name == "Timestamp" || name == "Timestamp@odata.type" {
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(json.AppendString(out, name), ':'), raw...)
		return nil
	})
	return append(out, '}'), err
}

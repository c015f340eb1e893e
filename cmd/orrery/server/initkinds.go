package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

// initName splits the name of a file of initial data: "02-shop.products.jsonl" is "shop.products" and ".jsonl".
func initName(file string) (name, kind string) {
	kind = strings.ToLower(filepath.Ext(file))
	name = file[:len(file)-len(kind)]
	if order, rest, ok := strings.Cut(name, "-"); ok && order != "" && strings.Trim(order, "0123456789") == "" {
		name = rest
	}
	return name, kind
}

// initTarget splits DATABASE.CONTAINER.
func initTarget(name string) (db, container string, err error) {
	db, container, ok := strings.Cut(name, ".")
	if !ok || db == "" || container == "" {
		return "", "", errors.New("its name doesn't say where its items belong: want [ORDER-]DATABASE.CONTAINER.KIND")
	}
	return db, container, nil
}

// initSpec is a YAML file. Containers have the fields of the NoSQL API's definition.
type initSpec struct {
	Databases []struct {
		ID         string
		Containers []map[string]any
	}
	Tables []string
}

// initYAML makes databases, containers and tables that are missing.
func initYAML(ctx context.Context, s *Server, _, file string) (n int, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var spec initSpec
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&spec); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for _, db := range spec.Databases {
		body, _ := json.Marshal(map[string]string{"id": db.ID})
		if err := s.ensure(ctx, "dbs", "", body); err != nil {
			return n, fmt.Errorf("database %q: %w", db.ID, err)
		}
		for _, c := range db.Containers {
			body, err := containerBody(c)
			if err == nil {
				err = s.ensure(ctx, "colls", "dbs/"+db.ID, body)
			}
			if err != nil {
				return n, fmt.Errorf("container %q of database %q: %w", c["id"], db.ID, err)
			}
			n++
		}
		n++
	}
	for _, t := range spec.Tables {
		err := s.table(ctx, http.MethodPost, "/Tables", fmt.Appendf(nil, `{"TableName":%q}`, t))
		if err != nil && !isConflict(err) {
			return n, fmt.Errorf("table %q: %w", t, err)
		}
		n++
	}
	return n, nil
}

// containerBody makes the definition of a container. partitionKey may be a path, or a list of paths.
//
// Example: {id: products, partitionKey: /category, defaultTtl: 3600}.
func containerBody(c map[string]any) ([]byte, error) {
	switch k := c["partitionKey"].(type) {
	case string:
		c["partitionKey"] = map[string]any{"paths": []any{k}, "kind": "Hash", "version": 2}
	case []any:
		kind := "Hash"
		if len(k) > 1 {
			kind = "MultiHash"
		}
		c["partitionKey"] = map[string]any{"paths": k, "kind": kind, "version": 2}
	}
	return json.Marshal(c)
}

// ensure makes a database or a container unless it is there.
func (s *Server) ensure(ctx context.Context, kind, link string, body []byte) error {
	if s.Addr(NoSQL) == "" {
		return errors.New("the NoSQL API is off")
	}
	if err := s.nosql(ctx, http.MethodPost, kind, link, nil, body); err != nil && !isConflict(err) {
		return err
	}
	return nil
}

// isConflict reports whether an error of a request says that the thing exists.
func isConflict(err error) bool { return strings.Contains(err.Error(), ": 409 ") }

// openInit opens a file of text.
func openInit(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := transfer.Text(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{text, f}, nil
}

// initJSON upserts the items of a JSON array, or of JSON lines.
func initJSON(ctx context.Context, s *Server, name, file string) (int, error) {
	f, err := openInit(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	array := strings.EqualFold(filepath.Ext(file), ".json")
	if array {
		first, err := d.Token()
		if err != nil || first != json.Delim('[') {
			return 0, errors.New("want a JSON array of items; a file of JSON lines is called .jsonl")
		}
	}
	return s.initItems(ctx, name, func() (item json.RawMessage, err error) {
		if array && !d.More() {
			return nil, endOfArray(d)
		}
		err = d.Decode(&item)
		return item, err
	})
}

// endOfArray reads the end of an array, and returns io.EOF if it is there, and is the end of the file.
func endOfArray(d *json.Decoder) error {
	_, err := d.Token()
	if errors.Is(err, io.EOF) {
		return errors.New("the file ends within its array")
	}
	if err == nil {
		if _, err = d.Token(); err == nil {
			err = errors.New("there is something behind the array")
		}
	}
	return err
}

// initCSV upserts the rows of a table with a header. A column is text, unless its name ends with :number, :bool or
// :json. An empty field is no property.
func initCSV(ctx context.Context, s *Server, name, file string) (int, error) {
	f, err := openInit(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	rows := csv.NewReader(bufio.NewReader(f))
	head, err := rows.Read()
	if err != nil {
		return 0, fmt.Errorf("the header: %w", err)
	}
	return s.initItems(ctx, name, func() (json.RawMessage, error) {
		row, err := rows.Read()
		if err != nil {
			return nil, err
		}
		item := map[string]any{}
		for i, text := range row {
			column, kind, _ := strings.Cut(head[i], ":")
			switch {
			case text == "":
			case kind == "":
				item[column] = text
			default:
				item[column] = json.RawMessage(text)
			}
		}
		return json.Marshal(item)
	})
}

// initItems upserts the items that next returns until io.EOF. A container that is missing gets the partition key /id.
func (s *Server) initItems(ctx context.Context, name string, next func() (json.RawMessage, error)) (n int, err error) {
	db, container, err := initTarget(name)
	if err != nil {
		return 0, err
	}
	c, err := s.Engine().Within(ctx).Container(db, container)
	if status.Is(err, status.NotFound) {
		if err = s.ensure(ctx, "dbs", "", fmt.Appendf(nil, `{"id":%q}`, db)); err == nil {
			body, _ := containerBody(map[string]any{"id": container, "partitionKey": "/id"})
			err = s.ensure(ctx, "colls", "dbs/"+db, body)
		}
		if err == nil {
			c, err = s.Engine().Within(ctx).Container(db, container)
		}
	}
	if err != nil {
		return 0, err
	}
	for ; ; n++ {
		item, err := next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err == nil {
			err = s.upsert(ctx, c, item)
		}
		if err != nil {
			return n, fmt.Errorf("item %d: %w", n+1, err)
		}
	}
}

// upsert writes an item through the NoSQL API.
func (s *Server) upsert(ctx context.Context, c *core.Container, item json.RawMessage) error {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return err
	}
	key := []any{}
	for _, path := range c.Spec().PartitionKey.Paths {
		key = append(key, at(fields, path))
	}
	text, err := json.Marshal(key)
	if err != nil {
		return err
	}
	header := map[string]string{"x-ms-documentdb-partitionkey": string(text), "x-ms-documentdb-is-upsert": "true"}
	return s.nosql(ctx, http.MethodPost, "docs", "dbs/"+c.Database()+"/colls/"+c.ID(), header, item)
}

// at returns the value at a path, such as /a/b. A missing one is the partition key None, which is written {}.
func at(fields map[string]any, path string) any {
	var v any = fields
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		object, ok := v.(map[string]any)
		if !ok {
			return struct{}{}
		}
		if v, ok = object[strings.Trim(part, `"`)]; !ok {
			return struct{}{}
		}
	}
	return v
}

// mostScript is the length of the longest script, in bytes.
const mostScript = 1 << 20

// initGremlin runs scripts on a graph. Each line is a script. Empty lines and those that begin with // are skipped.
func initGremlin(ctx context.Context, s *Server, name, file string) (n int, err error) {
	db, graph, err := initTarget(name)
	if err != nil {
		return 0, err
	}
	if s.Addr(Gremlin) == "" {
		return 0, errors.New("the Gremlin API is off")
	}
	f, err := openInit(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := s.ensureGraph(ctx, db, graph); err != nil {
		return 0, err
	}
	c, err := s.dialGremlin(ctx)
	if err != nil {
		return 0, err
	}
	defer c.close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, mostScript)
	for at := 1; lines.Scan(); at++ {
		script := strings.TrimSpace(lines.Text())
		if script == "" || strings.HasPrefix(script, "//") {
			continue
		}
		if err := c.eval(db+"/"+graph, script, nil); err != nil {
			return n, fmt.Errorf("line %d: %w", at, err)
		}
		n++
	}
	return n, lines.Err()
}

// ensureGraph makes a graph without a partition key unless there is one.
func (s *Server) ensureGraph(ctx context.Context, db, graph string) error {
	if db+"/"+graph == "graphs/g" {
		return nil // always exists
	}
	_, err := s.Engine().Within(ctx).Container(db, graph)
	if !status.Is(err, status.NotFound) {
		return err
	}
	if err := s.ensure(ctx, "dbs", "", fmt.Appendf(nil, `{"id":%q}`, db)); err != nil {
		return err
	}
	body, err := containerBody(map[string]any{"id": graph, "partitionKey": "/id"})
	if err != nil {
		return err
	}
	return s.ensure(ctx, "colls", "dbs/"+db, body)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Gremlin has no position to go on from, and no order that an index gives: order().by(T.id).limit(n) reads all elements
// for each page. So a copy first lists the ids of all edges and of all vertices in two files beside its state, and then
// reads the elements by these ids. Each step costs what it reads, and memory is that of a page:
//
//	STATE.edges     ["s:north","s:e1"]    partition key and id; without a partition key only the id
//	STATE.vertices  ["l:7"]
//	position        {"edges":false,"offset":48210}    all vertices before this byte of their list are written
//
// Edges are listed first, so that the ends of a listed edge are listed too; vertices are written first. What is added
// behind the lists isn't copied, and what is removed is left out.

// gremlinAt is a position: a byte of a list.
type gremlinAt struct {
	Edges  bool  `json:"edges"` // of the edges' list; the vertices are copied
	Offset int64 `json:"offset"`
}

// gremlinPage is the number of elements that are read by one traversal.
const gremlinPage = 100

// listOf is the file with the ids of all vertices or edges.
func listOf(lists string, edges bool) string {
	if edges {
		return lists + ".edges"
	}
	return lists + ".vertices"
}

// removeLists removes the files of ids, if there are any.
func removeLists(lists string) (err error) {
	for _, edges := range []bool{false, true} {
		if e := os.Remove(listOf(lists, edges)); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// stream runs a traversal and gives its results to f one by one. As long as the server is busy, it waits as the server
// says; a traversal that has given results isn't repeated.
func (g *gremlin) stream(ctx context.Context, script string, bindings map[string]any, f func(any) error) error {
	for {
		some := false
		err := g.streamOnce(ctx, script, bindings, func(v any) error {
			some = true
			return f(v)
		})
		var fault *gremlinFault
		if err == nil || some || !errors.As(err, &fault) || !fault.busy() {
			return err
		}
		if !wait(ctx, fault.after) {
			return ctx.Err()
		}
	}
}

func (g *gremlin) streamOnce(ctx context.Context, script string, bindings map[string]any, f func(any) error) error {
	rs, err := g.c.Submit(script, bindings)
	if err != nil {
		return faultOf(err)
	}
	leave := func() { // the driver's reader must not wait for this one, which is gone
		go func() {
			for range rs.Channel() {
				continue
			}
		}()
	}
	for {
		select {
		case r, ok := <-rs.Channel():
			if !ok {
				if err := rs.GetError(); err != nil {
					return faultOf(err)
				}
				return nil
			}
			if err := f(r.Data); err != nil {
				leave()
				return err
			}
		case <-ctx.Done():
			leave()
			return ctx.Err()
		}
	}
}

// list writes the ids of all vertices or edges to their file.
func (g *gremlin) list(ctx context.Context, edges bool) error {
	f, err := os.OpenFile(listOf(g.lists, edges)+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	script, key := "g.V()", "__.values(k)"
	if edges {
		script, key = "g.E()", "__.outV().values(k)"
	}
	if g.key == "" {
		script += ".id()"
	} else {
		script += ".project('i', 'k').by(T.id).by(" + key + ")"
	}
	err = g.stream(ctx, script, map[string]any{"k": g.key}, func(v any) error {
		ids := []any{v}
		if m, ok := v.(map[any]any); ok && g.key != "" {
			if m["k"] == nil {
				return fmt.Errorf("the element %v has no %s, which is said to be the partition key", m["i"], g.key)
			}
			ids = []any{m["k"], m["i"]}
		}
		line, err := idLine(ids)
		if err == nil {
			_, err = w.Write(line)
		}
		return err
	})
	if err = errors.Join(err, w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return os.Rename(f.Name(), listOf(g.lists, edges))
}

// changes implements source.
func (g *gremlin) changes(ctx context.Context, from json.RawMessage, follow bool,
	f func([]change, json.RawMessage) error) error {
	if follow {
		return errors.New("--follow: Gremlin has no change feed; copy the graph's container by NoSQL instead")
	}
	var at gremlinAt
	if from != nil {
		if err := json.Unmarshal(from, &at); err != nil {
			return err
		}
	} else if err := errors.Join(g.list(ctx, true), g.list(ctx, false)); err != nil {
		return err
	}
	for {
		if err := g.listed(ctx, &at, f); err != nil || at.Edges {
			return err
		}
		at = gremlinAt{Edges: true}
	}
}

// listed reads the elements of a list behind a position.
func (g *gremlin) listed(ctx context.Context, at *gremlinAt, f func([]change, json.RawMessage) error) error {
	list, err := os.Open(listOf(g.lists, at.Edges))
	if err != nil {
		return fmt.Errorf("the ids of the copy that was ended are gone, give --restart: %w", err)
	}
	defer list.Close()
	if _, err := list.Seek(at.Offset, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(list); ; {
		ids := make([]any, 0, gremlinPage)
		for len(ids) < gremlinPage {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			at.Offset += int64(len(line))
			id, err := idOf(line)
			if err != nil {
				return fmt.Errorf("%s: %w", list.Name(), err)
			}
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return nil
		}
		batch, err := g.page(ctx, at.Edges, ids)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		next, err := json.Marshal(at)
		if err == nil {
			err = f(batch, next)
		}
		if err != nil {
			return err
		}
	}
}

// page reads the elements with these ids that are there.
func (g *gremlin) page(ctx context.Context, edges bool, ids []any) ([]change, error) {
	names, bindings := make([]string, len(ids)), map[string]any{"k": g.key}
	for i, id := range ids {
		names[i] = "i" + strconv.Itoa(i)
		bindings[names[i]] = id
	}
	script := map[bool]string{false: "g.V(", true: "g.E("}[edges] + strings.Join(names, ", ") + ")"
	if edges && g.key != "" { // where an edge's ends are isn't in the edge
		script += ".project('e', 'o', 'i').by().by(__.outV().values(k)).by(__.inV().values(k))"
	}
	results, err := g.run(ctx, script, bindings)
	if err != nil {
		return nil, err
	}
	batch := make([]change, len(results))
	for n, r := range results {
		el := &element{}
		ends, _ := r.(map[any]any)
		if ends != nil {
			r = ends["e"]
		}
		if err := el.read(r); err != nil {
			return nil, err
		}
		if ends != nil && el.out != nil {
			el.out.key, el.in.key = ends["o"], ends["i"]
		}
		batch[n].element = el
	}
	return batch, nil
}

package door

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/json"
)

// Size implements transfer.Source.
func (n *NoSQL) Size(ctx context.Context) (count int64, err error) {
	err = tries(ctx, func() error {
		code, h, text, err := n.send(ctx, http.MethodGet, "colls", n.link(), n.path(),
			map[string]string{"x-ms-documentdb-populatequotainfo": "True"}, nil, nil)
		if err == nil && code >= 300 {
			err = refused(code, h, text)
		}
		for part := range strings.SplitSeq(h.Get("x-ms-resource-usage"), ";") {
			if v, ok := strings.CutPrefix(part, "documentsCount="); ok {
				count, _ = strconv.ParseInt(v, 10, 64)
			}
		}
		return err
	})
	return count, err
}

// Rows implements transfer.Source. It reads the physical partitions one after the other, in the order of creation in
// each.
func (n *NoSQL) Rows(ctx context.Context, f func(*transfer.Row) error) error {
	var num int64
	return n.Pages(ctx, func(page []byte) error { return eachItem(page, &num, f) })
}

// Pages calls f with the pages of the read feed, as they have arrived. A page is valid until f returns. While f works
// the next one is on its way.
func (n *NoSQL) Pages(ctx context.Context, f func(page []byte) error) error {
	var ranges struct{ PartitionKeyRanges []struct{ ID string } }
	err := n.ask(ctx, http.MethodGet, "pkranges", n.link(), n.path()+"/pkranges", nil, nil, &ranges)
	if err != nil {
		return err
	}
	return ahead(ctx, func(ctx context.Context, pages chan<- []byte, free <-chan []byte) error {
		for _, r := range ranges.PartitionKeyRanges {
			if err := n.pages(ctx, r.ID, pages, free); err != nil {
				return err
			}
		}
		return nil
	}, f)
}

// pages reads a physical partition to its end.
func (n *NoSQL) pages(ctx context.Context, id string, pages chan<- []byte, free <-chan []byte) error {
	for token := ""; ; {
		var buf []byte
		select {
		case buf = <-free:
		default:
		}
		header := map[string]string{"x-ms-max-item-count": "4000", "x-ms-documentdb-partitionkeyrangeid": id}
		if token != "" {
			header["x-ms-continuation"] = token
		}
		err := tries(ctx, func() (err error) {
			code, h, text, err := n.send(ctx, http.MethodGet, "docs", n.link(), n.path()+"/docs", header, nil, buf)
			if err == nil && code >= 300 {
				err = refused(code, h, text)
			}
			buf, token = text, h.Get("x-ms-continuation")
			return err
		})
		if err != nil {
			return err
		}
		select {
		case pages <- buf:
		case <-ctx.Done():
			return ctx.Err()
		}
		if token == "" {
			return nil
		}
	}
}

// eachItem calls f with the items of a page, without what the server has computed. It reads the page once.
func eachItem(page []byte, num *int64, f func(*transfer.Row) error) error {
	item := func(raw []byte) error {
		*num++
		text, err := Own(raw)
		if err != nil {
			return err
		}
		return f(&transfer.Row{Text: text, Line: *num})
	}
	const name = `"Documents"`
	i := json.Space(page, 0)
	if i >= len(page) || page[i] != '{' {
		return json.ErrShape
	}
	for i++; ; i++ {
		i = json.Space(page, i)
		end := json.Skip(page, i)
		if end < 0 {
			return json.ErrShape
		}
		items := string(page[i:end]) == name
		if i = json.Space(page, end); i >= len(page) || page[i] != ':' {
			return json.ErrShape
		}
		var err error
		if items {
			end, err = json.ElementsAt(page, i+1, item)
		} else if end = json.Skip(page, json.Space(page, i+1)); end < 0 {
			err = json.ErrShape
		}
		if err != nil {
			return err
		}
		if i = json.Space(page, end); i >= len(page) || page[i] != ',' {
			break
		}
	}
	if i >= len(page) || page[i] != '}' {
		return json.ErrShape
	}
	return nil
}

var tail = []byte(`,"_rid":`)

// Own returns an item without the fields that the server has computed. It may change the item's bytes. A server puts
// them at the end, where they are cut off without a look at the rest: a part of the item that begins with ,"_rid": and
// reads as members up to the item's brace is none of a string or of an object in it.
func Own(item []byte) ([]byte, error) {
	if i := bytes.LastIndex(item, tail); i > 0 {
		all := true
		item[i] = '{'
		err := json.EachMember(item[i:], func(name string, _ []byte) error {
			all = all && system[name]
			return nil
		})
		if item[i] = ','; err == nil && all {
			item[i] = '}'
			return item[:i+1], nil
		}
	}
	out := make([]byte, 1, len(item))
	out[0] = '{'
	err := json.EachMember(item, func(name string, raw []byte) error {
		if system[name] {
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

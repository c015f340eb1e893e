package script_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// items is a Host over a list of documents in the order of their creation.
type items struct {
	docs  []map[string]any
	calls []string // the operations, as the scripts of testdata show them
}

var links = script.Links{Self: "dbs/AAA=/colls/BBB=/", Alt: "dbs/shop/colls/books"}

func (h *items) find(link string) int {
	id := link[strings.LastIndex(link, "/")+1:]
	return slices.IndexFunc(h.docs, func(d map[string]any) bool { return d["id"] == id })
}

// Do implements script.Host.
func (h *items) Do(_ context.Context, op script.Op) (script.Reply, *script.Error) {
	h.calls = append(h.calls, fmt.Sprintf("%s %s body=%s query=%s options=%s", op.Name, op.Link, op.Body, op.Query,
		op.Options))
	var doc map[string]any
	if op.Body != nil {
		if err := json.Unmarshal(op.Body, &doc); err != nil {
			return script.Reply{}, &script.Error{Status: 400, Body: err.Error()}
		}
	}
	at := h.find(op.Link)
	if at < 0 && strings.Contains(op.Link, "/docs/") {
		return script.Reply{}, &script.Error{Status: 404, Body: `{"Errors":["Resource Not Found."]}`}
	}
	switch op.Name {
	case "createDocument":
		if h.find(fmt.Sprintf("/%v", doc["id"])) >= 0 {
			return script.Reply{}, &script.Error{Status: 409,
				Body: `{"Errors":["Resource with specified id or name already exists."]}`}
		}
		h.docs = append(h.docs, doc)
		return h.reply(doc)
	case "readDocument":
		if strings.Contains(string(op.Options), "ifNoneMatch") {
			return script.Reply{Options: []byte(`{"statusCode":304,"notModified":true}`)}, nil
		}
		return h.reply(h.docs[at])
	case "replaceDocument":
		h.docs[at] = doc
		return h.reply(doc)
	case "deleteDocument":
		h.docs = slices.Delete(h.docs, at, at+1)
		return script.Reply{Options: []byte(`{"statusCode":204}`)}, nil
	case "readDocuments", "queryDocuments":
		return h.page(op)
	}
	return script.Reply{}, &script.Error{Status: 400, Body: "unknown operation " + op.Name}
}

func (h *items) reply(doc map[string]any) (script.Reply, *script.Error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return script.Reply{}, &script.Error{Status: 400, Body: err.Error()}
	}
	return script.Reply{Body: b, Options: []byte(`{"statusCode":200}`), ETag: `"1"`}, nil
}

// page answers a page of all documents; a continuation is the position of the next one.
func (h *items) page(op script.Op) (script.Reply, *script.Error) {
	var o struct {
		PageSize     int
		Continuation string
	}
	if err := json.Unmarshal(op.Options, &o); err != nil {
		return script.Reply{}, &script.Error{Status: 400, Body: err.Error()}
	}
	if o.PageSize <= 0 {
		o.PageSize = 100
	}
	from := 0
	if o.Continuation != "" {
		var err error
		if from, err = strconv.Atoi(o.Continuation); err != nil {
			return script.Reply{}, &script.Error{Status: 400, Body: "Invalid continuation token"}
		}
	}
	end := min(from+o.PageSize, len(h.docs))
	info := map[string]any{"statusCode": 200}
	if end < len(h.docs) {
		info["continuation"] = strconv.Itoa(end)
	}
	b, err := json.Marshal(h.docs[from:end])
	if err != nil {
		return script.Reply{}, &script.Error{Status: 400, Body: err.Error()}
	}
	options, err := json.Marshal(info)
	if err != nil {
		return script.Reply{}, &script.Error{Status: 400, Body: err.Error()}
	}
	return script.Reply{Body: b, Options: options}, nil
}

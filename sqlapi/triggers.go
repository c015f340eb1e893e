package sqlapi

import (
	"net/http"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// A trigger runs with a write of an item if the request names it. A pre-trigger runs before the write and may change
// the item. A post-trigger runs after the write. All of it is one transaction: if a trigger throws, nothing is written.

// hasTriggers reports whether a request names triggers.
func (c *call) hasTriggers() bool {
	return header(c.In, hPreTrigger) != "" || header(c.In, hPostTrigger) != ""
}

// noTriggers refuses a request that names triggers, for operations that don't run them. The write must not happen
// without them.
func (c *call) noTriggers() error {
	if c.hasTriggers() {
		return status.New(status.NotSupported, "Triggers don't run with this operation.")
	}
	return nil
}

// operationNames are the operations as a trigger sees them.
var operationNames = map[core.WriteKind]string{core.Create: "Create", core.Upsert: "Upsert", core.Replace: "Replace",
	core.Delete: "Delete"}

// fits says which triggerOperations run with an operation. An upsert may create or replace.
var fits = map[core.WriteKind][]string{
	core.Create:  {"all", "create"},
	core.Upsert:  {"all", "create", "replace", "update"},
	core.Replace: {"all", "replace", "update"},
	core.Delete:  {"all", "delete"},
}

// trigger returns the trigger that a header names, nil when there is none. typ is pre or post.
func (c *call) trigger(ct *core.Container, name, typ string, kind core.WriteKind) (*core.Resource, error) {
	id := strings.TrimSpace(header(c.In, name))
	if id == "" {
		return nil, nil
	}
	if strings.Contains(id, ",") {
		return nil, status.New(status.BadRequest, "The request names more than one %s-trigger.", typ)
	}
	r, err := c.s.core.Within(c.Ctx()).Resource(ct.Database(), core.Trigger, ct.Num(), id)
	if status.Is(err, status.NotFound) {
		return nil, status.New(status.BadRequest, "The %s-trigger '%s' does not exist.", typ, clip(id))
	}
	if err != nil {
		return nil, err
	}
	attributes, _ := programText(r)
	is, operation, _ := strings.Cut(strings.ToLower(attributes), " ")
	if is != typ {
		return nil, status.New(status.BadRequest, "The trigger '%s' is not a %s-trigger.", clip(id), typ)
	}
	for _, f := range fits[kind] {
		if f == operation {
			return r, nil
		}
	}
	return nil, status.New(status.BadRequest, "The trigger '%s' is for the operation %s and doesn't run with %s.",
		clip(id), operation, operationNames[kind])
}

// triggered is a write with triggers.
type triggered struct {
	c         *call
	ct        *core.Container
	kind      core.WriteKind
	pk        core.PartitionKey
	id        value.Value // of the path; Undefined for a create and an upsert
	pre, post *core.Resource
	res       core.Result
	number    uint64 // of res.Item, as the transaction sees it
	shown     []byte // the body of the reply
}

// writeTriggered does a write with its triggers and replies.
func (c *call) writeTriggered(ct *core.Container, kind core.WriteKind, pk core.PartitionKey, id value.Value) error {
	t := &triggered{c: c, ct: ct, kind: kind, pk: pk, id: id}
	var err error
	if t.pre, err = c.trigger(ct, hPreTrigger, "pre", kind); err != nil {
		return err
	}
	if t.post, err = c.trigger(ct, hPostTrigger, "post", kind); err != nil {
		return err
	}
	h, err := c.withScripts(ct, pk, t.run)
	c.setSession(ct, pk)
	if err != nil {
		return err
	}
	if kind == core.Delete {
		return c.send(http.StatusNoContent)
	}
	c.setItemETag(h.last(t.res.Item, t.number))
	if !c.minimal() {
		c.Out = append(c.Out[:0], h.final(t.shown)...)
	}
	if t.res.Created {
		return c.send(http.StatusCreated)
	}
	return c.send(http.StatusOK)
}

// run runs the pre-trigger, the write and the post-trigger.
func (t *triggered) run(h *scriptHost) error {
	request := script.Message{Operation: operationNames[t.kind], Headers: t.c.scriptHeaders()}
	if t.kind != core.Delete {
		request.Body = t.c.Body
	}
	if t.pre != nil {
		res, err := t.c.script(h, t.pre, script.Run{Kind: script.PreTrigger, Request: &request})
		if err != nil {
			return err
		}
		if res.Request != nil && t.kind != core.Delete {
			request.Body = res.Request
		}
	}
	if err := t.write(h, request.Body); err != nil {
		return err
	}
	if t.post == nil {
		return nil
	}
	quota, usage, err := t.c.s.quotaOf(t.c.Ctx(), t.ct)
	if err != nil {
		return err
	}
	res, err := t.c.script(h, t.post, script.Run{Kind: script.PostTrigger, Request: &request,
		Response: &script.Message{Body: t.shown, Headers: []script.Header{
			{Name: hResourceQuota, Value: quota},
			{Name: hResourceUsage, Value: usage}}}})
	if res.Response != nil {
		t.shown = res.Response
	}
	return err
}

// write does the write itself, with the body that the pre-trigger has left.
func (t *triggered) write(h *scriptHost, body []byte) (err error) {
	w := core.Write{Kind: core.Delete, PK: t.pk, ID: t.id}
	if t.kind != core.Delete {
		if len(body) > maxBody {
			return errTooLarge
		}
		var room []byte
		if w, err = itemWrite(t.c.Ctx(), t.ct, t.kind, t.pk, body, &room); err != nil {
			return err
		}
		if t.id.IsDefined() && !value.Identical(w.ID, t.id) {
			return errInvalid
		}
		if w.NoIndex, err = noIndex(header(t.c.In, hIndexing)); err != nil {
			return err
		}
	}
	w.Check = conditions(header(t.c.In, hIfMatch), header(t.c.In, hIfNoneMatch))
	if t.res, err = h.tx.Write(&w); err != nil || t.kind == core.Delete {
		return err
	}
	h.note(t.res.Item)
	t.number = t.res.Item.Number
	t.shown = appendShown(nil, t.ct, t.res.Item)
	return nil
}

package sqlapi

import (
	"context"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/yield"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// Scripts runs programs; a *script.Pool does.
type Scripts interface {
	Run(ctx context.Context, r script.Run, h script.Host) (script.Result, error)
	Functions(sources map[string]string) *script.Functions
}

// scriptsAtOnce is the number of requests whose programs run or wait for a worker. Further requests wait before their
// transactions begin: a transaction that waits for a worker would see an old state, and lose against each that commits
// meanwhile.
func scriptsAtOnce() int { return 2 * max(2, runtime.GOMAXPROCS(0)) }

var errNoScripts = status.New(status.NotSupported, "Programs in JavaScript are switched off on this server.")

// executeProcedure runs a stored procedure in one transaction of the logical partition that the header names.
func executeProcedure(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	o, err := procedures.owner(c)
	if err != nil {
		return err
	}
	r, err := procedures.find(c.Ctx(), c.s, &o, procedures.name(c))
	if err != nil {
		return err
	}
	if header(c.In, hPartitionKey) == "" && !ct.Spec().PartitionKey.SystemKey {
		return status.New(status.BadRequest, "PartitionKey value must be supplied for this operation.")
	}
	var room [maxKeyPaths]value.Value
	pk, err := c.partitionKey(room[:0], &ct.Spec().PartitionKey, keyFull)
	if err != nil {
		return err
	}
	if len(c.Body) > 0 && json.EachElement(c.Body, func([]byte) error { return nil }) != nil {
		return status.New(status.BadRequest, "The body of the execution of a stored procedure is not a JSON array.")
	}
	run := script.Run{Kind: script.Procedure, Args: c.Body,
		Request: &script.Message{Operation: "Execute", Headers: c.scriptHeaders()}}
	var res script.Result
	host, err := c.withScripts(ct, pk, func(h *scriptHost) (err error) {
		res, err = c.script(h, r, run)
		return err
	})
	c.setSession(ct, pk)
	if err != nil {
		return err
	}
	c.Out = append(c.Out[:0], host.final(res.Body)...)
	return c.send(http.StatusOK)
}

// withScripts runs f, which runs programs, in one transaction. f may run again. It returns the host of the last run.
func (c *call) withScripts(ct *core.Container, pk core.PartitionKey, f func(h *scriptHost) error) (*scriptHost, error) {
	if c.s.opt.Scripts == nil {
		return nil, errNoScripts
	}
	ctx := c.Ctx()
	err := yield.While(ctx, func() error {
		select {
		case c.s.scripting <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { <-c.s.scripting }()
	host := &scriptHost{}
	done, err := ct.WithTx(ctx, pk, func(tx *core.Tx) error {
		*host = scriptHost{s: c.s, ct: ct, tx: tx, pk: pk}
		tx.Eager()
		return f(host)
	})
	c.Charge += done.Charge + host.charge
	return host, err
}

// script runs a program. While it runs the request gives up its place: the program computes in another process. The
// reply gets the log, also when the program fails.
func (c *call) script(h *scriptHost, p *core.Resource, r script.Run) (res script.Result, err error) {
	_, r.Source = programText(p)
	r.Name, r.Links = p.ID, scriptLinks(h.ct)
	r.Log = isTrue(c.In, hScriptLog)
	if err := c.s.blocks.check(p, c.s.clock.Now()); err != nil {
		return res, err
	}
	err = yield.While(c.Ctx(), func() error {
		res, err = c.s.opt.Scripts.Run(c.Ctx(), r, h)
		return err
	})
	c.s.blocks.ran(p, err, c.s.clock.Now())
	if r.Log {
		h.logged(c, res.Log, err)
	}
	return res, scriptError(err)
}

// logged adds what a program has logged to the reply, after what the programs before it in the transaction have.
func (h *scriptHost) logged(c *call, text string, err error) {
	if e, ok := err.(*script.Error); ok {
		text = e.Log
	}
	if h.log != "" && text != "" {
		text = "\n" + text
	}
	h.log += text
	c.Take(hScriptLogResults) // of an earlier program or run
	c.Set(hScriptLogResults, strings.ReplaceAll(url.QueryEscape(h.log), "+", "%20"))
}

// scriptLinks returns the two links of a container.
func scriptLinks(ct *core.Container) script.Links {
	self := appendContainerSelf(nil, ct.RID())
	return script.Links{Self: string(self), Alt: "dbs/" + ct.Database() + "/colls/" + ct.ID()}
}

// scriptHeaders returns the headers of the request as a program may see them: all except the authorization.
func (c *call) scriptHeaders() (out []script.Header) {
	for name, v := range c.In {
		if name != hAuthorization && len(v) > 0 {
			out = append(out, script.Header{Name: strings.ToLower(name), Value: v[0]})
		}
	}
	slices.SortFunc(out, func(a, b script.Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// scriptError turns the error of a run into a status.
func scriptError(err error) error {
	e, ok := err.(*script.Error)
	if !ok {
		return err
	}
	code := status.BadRequest
	switch e.Status {
	case http.StatusForbidden:
		code = status.Forbidden
	case http.StatusRequestTimeout:
		code = status.Timeout
	case http.StatusRequestEntityTooLarge:
		code = status.TooLarge
	case http.StatusServiceUnavailable:
		code = status.Unavailable
	case http.StatusInternalServerError:
		code = status.Internal
	case 449:
		code = status.RetryWith
	}
	return status.WithSub(code, e.Sub, "%s", e.Body)
}

package mongoapi

import (
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/failpoint"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// configureFailPoint sets or removes a fail point.
func configureFailPoint(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "configureFailPoint may only be run against the admin database.")
	}
	n, err := r.s.fails.Configure(r.body, r.s.clk.Float64)
	return bson.AppendInt64(dst, "count", n), err
}

var errHangUp = errors.New("mongoapi: a fail point closes the connection")

// hung returns the error that ends a connection, if a fail point says so.
func (c *conn) hung() error {
	if c.hangUp {
		return errHangUp
	}
	return nil
}

// hit returns what a fail point does at this command; nil = nothing.
func (r *request) hit(at failpoint.Place) *failpoint.Failure {
	if !r.s.fails.On() || r.name == "configureFailPoint" {
		return nil
	}
	e := failpoint.Event{Command: r.name, App: r.c.client.app()}
	switch {
	case r.arg.Kind() == value.String:
		e.Namespace = r.db + "." + r.arg.Str()
	case r.name == "getMore":
		e.Namespace = r.db + "." + r.body.Get("collection").Str()
	}
	return r.s.fails.Hit(at, e)
}

// failing runs a command while fail points are set.
func (r *request) failing(dst []byte, def command) ([]byte, error) {
	if r.maxTimeMS > 0 && r.name != "getMore" && r.hit(failpoint.MaxTime) != nil {
		return dst, errTimeUp
	}
	f := r.hit(failpoint.Command)
	if f == nil {
		return r.perform(dst, def)
	}
	if err := r.fail(f, "Failing command via 'failCommand' failpoint"); err != nil {
		return dst, err
	}
	at := len(dst)
	dst, err := r.perform(dst, def)
	if err != nil || !f.Concern.IsDefined() {
		return dst, err
	}
	dst = value.AppendElement(dst[:len(dst)-1], "writeConcernError", f.Concern)
	code, _ := num.ToInt64(f.Concern.Get("code"), true)
	if stateChange(int32(code)) {
		dst = r.appendTopologyVersion(dst)
	}
	if r.inTxn && !r.closes() && !f.Labelled { // what follows decides
		return bson.End(dst, at), nil
	}
	return bson.End(r.appendLabels(dst, int32(code), nil), at), nil
}

// fail does what a fail point does before its place.
func (r *request) fail(f *failpoint.Failure, message string) error {
	r.failure = f
	if f.Block > 0 {
		t := time.NewTimer(f.Block)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
	}
	r.c.hangUp = r.c.hangUp || f.Close
	if f.Code == 0 && !f.Close {
		return nil
	}
	r.logged = true
	e := merr.New(f.Code, "%s", message)
	e.Extra = f.Extra
	return e
}

// failAt does what the fail point of a place does.
func (r *request) failAt(at failpoint.Place) error {
	if f := r.hit(at); f != nil {
		return r.fail(f, "Hit a failpoint")
	}
	return nil
}

// failWrite is called before a statement of a write. A fail point refuses it, or lets it be done but not answered.
func (r *request) failWrite() error {
	if !r.retry {
		return nil
	}
	f := r.hit(failpoint.Write)
	if f == nil {
		return nil
	}
	r.c.hangUp = r.c.hangUp || f.Close
	if f.Code == 0 {
		return nil
	}
	r.failure, r.logged = f, true
	return merr.New(f.Code, "Failing write due to failpoint. The write must not be reflected.")
}

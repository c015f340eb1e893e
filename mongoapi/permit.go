package mongoapi

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// What a command must pass before it runs.

// wellFormed refuses documents that aren't BSON, are nested too deeply or are too large.
func (r *request) wellFormed(body []byte) error {
	if msg := bson.Validate(body, maxDepth); msg != "" {
		return malformed(body, msg, "invalid BSON in the command: invalid BSON: ")
	}
	for i := range r.seqs {
		for s := r.seqs[i]; len(s.Docs) > 0; {
			d, ok := s.Next()
			if !ok {
				return merr.New(22, "invalid BSON in a document sequence")
			}
			if len(d) > wire.MaxDocument+16*1024 {
				return merr.New(merr.BSONObjectTooLarge, "BSONObj size: %d is invalid. Size must be between 0 and %d",
					len(d), wire.MaxDocument)
			}
			if msg := bson.Validate(d, maxDepth); msg != "" {
				return malformed(d, msg, "invalid BSON: invalid BSON: ")
			}
		}
	}
	return nil
}

// malformed is the error of a document that isn't valid.
func malformed(d []byte, msg, where string) error {
	if msg != bson.TooDeep {
		return merr.New(22, "%s%s", where, msg)
	}
	var path []string
	bson.Deeper(d, maxDepth, &path)
	slices.Reverse(path)
	id := "unknown _id"
	if v := value.ObjectOf(d).Get("_id"); v.IsDefined() && v.Kind() != value.Object && v.Kind() != value.Array {
		id = "_id: " + merr.Show(v)
	}
	return merr.New(merr.Overflow, "BSONObj exceeds maximum nested object depth in element with field name '%s' in "+
		"object with %s", strings.Join(path, "."), id)
}

// command reads the arguments that all commands have, and finds the command.
func (r *request) command() (command, error) {
	def, ok, err := r.readArguments()
	switch {
	case err != nil:
		return def, err
	case ok && (!def.test || r.s.o.TestCommands):
		return def, nil
	case unsupported[r.name]:
		return def, merr.New(merr.CommandNotSupported, "the command %s is not supported by this server", r.name)
	}
	return def, merr.New(merr.CommandNotFound, "no such command: '%s'", r.name)
}

// permit refuses a command that the client's parameters, its rights, the service's restrictions or a transaction don't
// allow.
func (r *request) permit(def command) error {
	if r.api != (apiParams{}) {
		if err := r.checkAPI(); err != nil {
			return err
		}
	}
	if !r.c.authed && !def.open {
		return merr.New(merr.Unauthorized, "Command %s requires authentication", r.name)
	}
	if r.c.who != nil && r.s.o.Auth && !def.open {
		if err := r.authorize(); err != nil {
			return err
		}
	}
	if r.s.o.Strict {
		if err := r.strict(def); err != nil {
			return err
		}
	}
	switch {
	case r.txn >= 0 && !r.inTxn && !def.retry:
		return merr.New(merr.NotARetryableWriteCommand, "txnNumber may only be provided for multi-document "+
			"transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable "+
			"write command.", r.name)
	case r.inTxn:
		return r.checkInside(def)
	case r.concern.Level == "snapshot":
		return r.checkSnapshot(def)
	}
	return nil
}

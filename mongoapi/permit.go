package mongoapi

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// What a command must pass before it runs.

// wellFormed refuses documents that aren't BSON, are nested too deeply or are too large.
func (r *request) wellFormed(body []byte) error {
	if err := doc.Validate(body, maxDepth); err != nil {
		return merr.New(22, "invalid BSON in the command: %s", status.From(err).Msg)
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
			if err := doc.Validate(d, maxDepth); err != nil {
				return merr.New(22, "invalid BSON: %s", status.From(err).Msg)
			}
		}
	}
	return nil
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

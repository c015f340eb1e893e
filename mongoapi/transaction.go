package mongoapi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// A transaction of a session is a core.Transaction, which its first command begins and a commit or an abort ends. Its
// commands run one after the other, because each holds the session's lock. It is aborted:
//
//   - by an error of a command, or of a statement in a command that is answered otherwise,
//   - by a command of the session with a greater number,
//   - when it is open for more than transactionLife, or its session is ended,
//   - when memory is short, see transactionmemory.go.
//
// A client that disconnects leaves its transaction open, because drivers may go on over another connection.
//
// The session keeps the number of its last transaction and how it has ended, so that a repeated commit gets the same
// answer.
//
// Example: insert with {txnNumber: 4, startTransaction: true, autocommit: false} begins transaction 4. Another insert
// finds that its `_id` is taken: the reply has a write error with code 11000, and the transaction is aborted. The
// commit answers NoSuchTransaction.
type transaction struct {
	number  int64
	of      *session
	session [16]byte // its key
	user    string
	lsid    value.Value
	since   time.Time
	level   string // of its read concern
	api     apiParams

	// Only commands of the session use these.
	tx      *core.Transaction // nil until a command needs it
	fresh   map[string]*coll  // collections that it creates, by namespace
	used    map[string]*coll  // collections that its commands have used, by namespace
	cursors []int64

	busy atomic.Bool // a command of it runs

	mu    sync.Mutex
	state transactionState
	open  *core.Transaction // tx, for those that abort it from outside
	mem   *budget.Account   // of its writes; nil: it has made none
	time  time.Time         // when its last command has ended
}

// transactionLife is how long a transaction may be open.
const transactionLife = 60 * time.Second

// transactionState is how far a transaction is.
type transactionState int

const (
	transactionRuns transactionState = iota
	transactionCommits
	transactionUnsure // its commit may have been done
	transactionCommitted
	transactionAborted
)

// is returns the state.
func (t *transaction) is() transactionState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// to changes the state, if it is from.
func (t *transaction) to(from, next transactionState) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != from {
		return false
	}
	t.state = next
	return true
}

// abort ends the transaction, if it runs. It may be called while a command of it runs.
func (s *Server) abort(t *transaction) {
	if t.to(transactionRuns, transactionAborted) {
		s.ended(t)
	}
}

// ended releases what a transaction holds that has ended.
func (s *Server) ended(t *transaction) {
	t.mu.Lock()
	tx, cursors := t.open, t.cursors
	t.open, t.cursors = nil, nil
	t.mem.Close()
	t.mu.Unlock()
	s.sessions.closed(t)
	s.counters.ended(t, s.clk.Now())
	s.cursors.drop(cursors)
	if tx != nil {
		tx.Abort()
	}
}

// abortOld ends transactions that are open for too long, and idle ones while memory is short.
func (s *Server) abortOld() {
	now, short := s.clk.Now(), scarce(s.eng.Budget())
	old := func(t *transaction) bool { return now.Sub(t.since) > transactionLife || short && t.rests(now) }
	for _, t := range s.sessions.running(old) {
		s.abort(t)
	}
}

// errAborted and errCommitted are the errors of commands in a transaction that has ended.
func (t *transaction) errAborted() error {
	return merr.New(merr.NoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted.", t.number)
}

func (t *transaction) errCommitted() error {
	return merr.New(merr.TransactionCommitted, "Transaction with { txnNumber: %d } has been committed.", t.number)
}

// inTransaction runs a command of a transaction.
func (r *request) inTransaction(dst []byte, def command) ([]byte, error) {
	s, err := r.session()
	if err != nil {
		return dst, err
	}
	if err := r.enter(s); err != nil {
		return dst, err
	}
	defer s.leave()
	if err := r.join(s, def); err != nil {
		return dst, err
	}
	t := r.multi
	t.busy.Store(true)
	defer func() { t.leave(r.s.clk.Now()) }()
	if def.ends {
		return r.call(dst, def)
	}
	switch t.is() {
	case transactionCommits, transactionUnsure, transactionCommitted:
		return dst, t.errCommitted()
	case transactionAborted:
		return dst, t.errAborted()
	}
	out, err := r.call(dst, def)
	if (err != nil || r.failed != 0) && t.is() == transactionAborted { // meanwhile, from outside
		return dst, t.errAborted()
	}
	if err != nil || r.failed != 0 {
		r.s.abort(t)
	}
	return out, err
}

// join finds the transaction of a command, or begins one. The caller holds the session.
func (r *request) join(s *session, def command) error {
	switch t := s.multi; {
	case r.txn < s.txn:
		return r.tooOld(s.txn)
	case r.starts && r.txn == s.txn:
		return merr.New(merr.ConflictingOperation, "Only servers in a sharded cluster can start a new transaction at "+
			"the active transaction number")
	case r.starts:
		if t != nil {
			r.s.abort(t)
		}
		s.txn, s.reply = r.txn, nil
		r.s.sessions.count(s, 0)
		s.multi = &transaction{number: r.txn, of: s, session: s.key, user: r.c.user, lsid: r.lsid.Clone(),
			since: r.s.clk.Now(), level: r.concern.Level, api: r.api}
		r.s.sessions.opened(s.multi)
		r.s.counters.transactions.started.Add(1)
	case t == nil || r.txn != s.txn:
		if def.ends && r.name == "commitTransaction" {
			done, err := r.committedBefore()
			if err != nil {
				return err
			}
			if done {
				r.multi = &transaction{number: r.txn, state: transactionCommitted}
				return nil
			}
		}
		return merr.New(merr.NoSuchTransaction, "Given transaction number %d does not match any in-progress "+
			"transactions. The active transaction number is %d", r.txn, s.txn)
	case r.s.clk.Now().Sub(t.since) > transactionLife:
		r.s.abort(t)
	}
	r.multi = s.multi
	return r.sameAPI(s.multi.api, "transaction's first command")
}

// begun returns the core's transaction. The first command that needs it begins it, with the container that it reads
// first, if there is one.
func (r *request) begun(c *core.Container) (*core.Transaction, error) {
	t := r.multi
	if t.tx != nil {
		return t.tx, nil
	}
	begin := r.s.eng.Begin
	if c != nil {
		begin = c.Begin
	}
	tx, err := begin(r.ctx, 2*transactionLife) // the session's clock counts
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != transactionRuns {
		tx.Abort()
		return nil, t.errAborted()
	}
	t.tx, t.open = tx, tx
	return tx, nil
}

// createInside creates a collection that only the transaction sees until its commit.
func (r *request) createInside(db, name string, with ...func(*core.ContainerSpec)) (*coll, error) {
	t := r.multi
	tx, err := r.begun(nil)
	if err != nil {
		return nil, err
	}
	d, err := r.s.eng.Within(r.ctx).Database(db)
	if status.Is(err, status.NotFound) {
		d, err = &core.Database{}, nil
	}
	if err != nil {
		return nil, err
	}
	spec := newSpec(name, idPath)
	spec.Throughput = core.ThroughputIn(d)
	for _, f := range with {
		f(&spec)
	}
	c, err := tx.Create(r.ctx, db, spec)
	if err != nil {
		return nil, err
	}
	k := newColl(c)
	k.tx, k.of = tx, t
	if t.fresh == nil {
		t.fresh = map[string]*coll{}
	}
	t.fresh[db+"."+name] = k
	t.uses(k)
	return k, nil
}

// uses notes a collection.
func (t *transaction) uses(k *coll) {
	if t.used == nil {
		t.used = map[string]*coll{}
	}
	t.used[k.namespace()] = k
}

// changeIndexesInside changes the indexes of a collection that the transaction creates.
func (r *request) changeIndexesInside(k *coll, f func(*core.ContainerSpec) error) error {
	if r.multi.fresh[k.namespace()] == nil {
		return merr.New(merr.OperationNotInTransaction, "Cannot create new indexes on existing collection %s in a "+
			"multi-document transaction.", k.namespace())
	}
	return r.multi.tx.Change(r.ctx, k.Container, f)
}

func commitTransaction(r *request, dst []byte) ([]byte, error) {
	t, err := r.ending()
	if err != nil {
		return dst, err
	}
	switch t.is() {
	case transactionCommitted:
		return dst, nil
	case transactionAborted:
		return dst, t.errAborted()
	case transactionUnsure:
		done, err := r.committedBefore()
		if err == nil && done {
			t.to(transactionUnsure, transactionCommitted)
			return dst, nil
		}
		if err == nil {
			err = merr.New(merr.NetworkTimeout, "The outcome of the commit is unknown.")
		}
		return dst, err
	}
	if !t.to(transactionRuns, transactionCommits) {
		return dst, t.errAborted()
	}
	err = r.commitAll(t)
	next := transactionCommitted
	switch {
	case err == nil:
	case refusedCommit(err):
		next = transactionAborted
	default:
		next = transactionUnsure
	}
	t.to(transactionCommits, next)
	r.s.ended(t)
	switch {
	case err == nil:
		r.writes = true
	case next == transactionUnsure: // a code for which drivers commit again
		err = merr.New(merr.NetworkTimeout, "%s", status.From(err).Msg)
	}
	return dst, err
}

// commitAll commits what the transaction has written. It goes on if the client disconnects or its time is up: both
// would make the outcome unknown.
func (r *request) commitAll(t *transaction) error {
	if t.tx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), transactionLife)
	defer cancel()
	for _, k := range t.fresh {
		if _, err := r.s.eng.EnsureDatabase(ctx, k.Database()); err != nil {
			t.tx.Abort()
			return err
		}
	}
	charge, err := t.tx.CommitWith(ctx, r.commitRecord(), r.transactionNote(t))
	r.charge += charge
	r.commit = t.tx.Time()
	var dup *core.Duplicate
	if errors.As(err, &dup) {
		return t.duplicateIn(dup)
	}
	return err
}

// transactionNote is what change streams and the oplog show of the transaction with each of its changes.
func (r *request) transactionNote(t *transaction) []byte {
	at, b := bson.Begin(make([]byte, 0, 128))
	la, b := bson.BeginObject(b, "lsid")
	b = value.AppendElement(b, "id", t.lsid)
	b = bson.End(value.AppendElement(b, "uid", r.uid()), la)
	return bson.End(bson.AppendInt64(b, "txnNumber", t.number), at)
}

// duplicateIn is the error of a commit for a value that a unique index has already. The index is found by its name
// among those of the collections that the transaction has used.
func (t *transaction) duplicateIn(dup *core.Duplicate) error {
	var of *coll
	for _, k := range t.used {
		if of == nil || slices.ContainsFunc(k.indexSpecs(), func(d value.Value) bool {
			return d.Get("name").Str() == dup.Index
		}) {
			of = k
		}
	}
	return of.duplicateValue(dup, of.indexSpecs())
}

// refusedCommit reports whether a commit with this error has written nothing.
func refusedCommit(err error) bool {
	var m *merr.Error
	if errors.As(err, &m) {
		return true
	}
	switch status.From(err).Code {
	case status.RetryWith, status.Conflict, status.Forbidden, status.TooLarge, status.NotFound, status.BadRequest,
		status.TooManyRequests:
		return true
	}
	return false
}

func abortTransaction(r *request, dst []byte) ([]byte, error) {
	t, err := r.ending()
	if err != nil {
		return dst, err
	}
	switch t.is() {
	case transactionRuns:
		r.s.abort(t)
		return dst, nil
	case transactionAborted:
		return dst, t.errAborted()
	}
	return dst, t.errCommitted()
}

// ending returns the transaction that a command ends.
func (r *request) ending() (*transaction, error) {
	switch {
	case r.db != "admin":
		return nil, merr.New(merr.Unauthorized, "%s may only be run against the admin database.", r.name)
	case r.multi == nil:
		return nil, merr.New(merr.CommandFailed, "%s must be run within a transaction", r.name)
	}
	return r.multi, nil
}

// checkTransaction checks the arguments of transactions.
func (r *request) checkTransaction() error {
	ends := r.closes()
	switch {
	case !r.inTxn && r.starts:
		return merr.New(merr.InvalidOptions,
			"'startTransaction' field requires 'autocommit' field to also be specified")
	case !r.inTxn:
		return nil
	case r.txn < 0:
		return merr.New(merr.InvalidOptions, "'autocommit' field requires a transaction number to also be specified")
	case r.starts && ends:
		return merr.New(merr.OperationNotInTransaction, "Cannot start a transaction with %s", r.name)
	case r.concern.Given && !r.starts:
		return merr.New(merr.InvalidOptions, "Only the first command in a transaction may specify a readConcern")
	case r.concern.Level == "linearizable" || r.concern.Level == "available":
		return merr.New(merr.InvalidOptions, "The first command in a transaction cannot specify a readConcern level "+
			"other than local, majority, or snapshot")
	case r.concern.At != 0:
		return merr.New(merr.SnapshotUnavailable, "A transaction of this server reads the state at its first command, "+
			"not one at an earlier atClusterTime")
	case r.waits && !ends:
		return merr.New(merr.InvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	return nil
}

// checkInside refuses a command that can't be part of a transaction.
func (r *request) checkInside(def command) error {
	switch {
	case def.ends:
		return nil
	case !def.txn:
		return merr.New(merr.OperationNotInTransaction, "Cannot run '%s' in a multi-document transaction.", r.name)
	case r.name == "bulkWrite" || r.arg.Str() == bulkCollection || r.body.Get("collection").Str() == bulkCollection:
		return nil // it names its databases elsewhere
	case reserved(r.db):
		return refusedInside(r.db)
	}
	return nil
}

// reserved reports whether a database has no documents that a transaction may read or write.
func reserved(db string) bool { return db == "admin" || db == "local" || db == "config" }

func refusedInside(db string) error {
	return merr.New(merr.OperationNotInTransaction, "Cannot run command against the '%s' database in a "+
		"transaction.", db)
}

// checkStages refuses a pipeline that can't be part of a transaction.
func (r *request) checkStages(pipeline value.Value) error {
	if r.multi == nil {
		return nil
	}
	for it := pipeline.Iter(); it.Next(); {
		stage := it.Value().Iter()
		if !stage.Next() {
			continue
		}
		switch name := string(stage.Key()); name {
		case "$out", "$merge", "$collStats", "$currentOp", "$indexStats", "$listCatalog", "$listLocalSessions",
			"$listSessions", "$planCacheStats", "$changeStream", "$search", "$searchMeta", "$vectorSearch",
			"$listSearchIndexes":
			return merr.New(merr.OperationNotInTransaction, "Stage not supported inside of a multi-document "+
				"transaction: %s", name)
		}
	}
	return nil
}

// transient reports whether a transaction may be run again after the error of one of its commands.
func (r *request) transient(code int32) bool {
	switch code {
	case merr.WriteConflict, merr.NoSuchTransaction, merr.SnapshotUnavailable, 24, 267:
		return true
	}
	return !r.closes() && retryable(code)
}

// closes reports whether the command ends a transaction.
func (r *request) closes() bool { return r.name == "commitTransaction" || r.name == "abortTransaction" }

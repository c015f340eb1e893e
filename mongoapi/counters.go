package mongoapi

import (
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// counters are what a server has done since it began, for serverStatus.
//
// Example: an insert of three documents, the second of which exists, is one insert command, three insert operations,
// two inserted documents and one error that a user is told.
type counters struct {
	commands     []commandCount // by command.index; the first is that of unknown names
	statements   [opClasses]atomic.Int64
	documents    struct{ inserted, updated, deleted, returned atomic.Int64 }
	read         struct{ keys, docs atomic.Int64 }
	faults, told atomic.Int64 // errors: internal ones, and those that say what is wrong with a command
	conflicts    atomic.Int64 // of writes
	retried      struct{ commands, statements atomic.Int64 }
	transactions struct{ started, committed, aborted, micros atomic.Int64 }
	logins       [len(mechanisms)]loginCount
}

// commandCount counts the commands of a name.
type commandCount struct{ total, failed atomic.Int64 }

// mechanisms are the ways to log in, in the order of serverStatus.
var mechanisms = [...]string{"PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"}

// loginCount counts the logins of a mechanism: those begun and those that succeeded. The second ones are also among
// the first: they came with hello.
type loginCount struct{ begun, done, early, earlyDone atomic.Int64 }

// begin and end count a login. early means that it came with hello. A nil l counts nothing.
func (l *loginCount) begin(early bool) {
	if l == nil {
		return
	}
	l.begun.Add(1)
	if early {
		l.early.Add(1)
	}
}

func (l *loginCount) end(early bool) {
	if l == nil {
		return
	}
	l.done.Add(1)
	if early {
		l.earlyDone.Add(1)
	}
}

// effects are what a command has done.
type effects struct {
	statements                           [opClasses]int32 // of write commands
	inserted, updated, deleted, returned int32            // documents
	modified                             int32            // of the updated ones those that were changed
	keys, docs                           int64            // index entries and documents that it has read
	told                                 int              // bytes of texts and details of failed statements
}

// since leaves what was done after the command had done so much.
func (e *effects) since(before *effects) {
	for class := range e.statements {
		e.statements[class] -= before.statements[class]
	}
	e.inserted -= before.inserted
	e.updated -= before.updated
	e.modified -= before.modified
	e.deleted -= before.deleted
	e.returned -= before.returned
	e.keys -= before.keys
	e.docs -= before.docs
}

// read adds what sources have read.
func (e *effects) read(keys, docs int) {
	e.keys += int64(keys)
	e.docs += int64(docs)
}

// wrote adds a statement of a class and its outcome.
func (e *effects) wrote(class opClass, o *outcome) {
	e.statements[class]++
	if class == opDelete {
		e.deleted += o.modified
		return
	}
	e.updated += o.matched
	e.modified += o.modified
	if o.upserted.IsDefined() {
		e.inserted++
	}
}

// add counts a command that has ended. code is that of its error or of its first failed statement, 0 if there is none.
func (n *counters) add(r *request, code int32) {
	c := &n.commands[r.def]
	c.total.Add(1)
	switch code {
	case 0:
	case merr.InternalError:
		c.failed.Add(1)
		n.faults.Add(1)
	case merr.WriteConflict:
		c.failed.Add(1)
		n.conflicts.Add(1)
	default:
		c.failed.Add(1)
		n.told.Add(1)
	}
	e := &r.c.did
	switch class := classOf(r.name); class {
	case opInsert, opUpdate, opDelete: // their statements are counted
	default:
		n.statements[class].Add(1)
	}
	for class, k := range e.statements {
		addTo(&n.statements[class], int64(k))
	}
	addTo(&n.documents.inserted, int64(e.inserted))
	addTo(&n.documents.updated, int64(e.updated))
	addTo(&n.documents.deleted, int64(e.deleted))
	addTo(&n.documents.returned, int64(e.returned))
	addTo(&n.read.keys, e.keys)
	addTo(&n.read.docs, e.docs)
	if k := len(r.retried); k > 0 {
		n.retried.commands.Add(1)
		n.retried.statements.Add(int64(k))
	}
}

func addTo(c *atomic.Int64, n int64) {
	if n != 0 {
		c.Add(n)
	}
}

// ended counts a transaction.
func (n *counters) ended(t *transaction, now time.Time) {
	if t.is() == transactionAborted {
		n.transactions.aborted.Add(1)
	} else {
		n.transactions.committed.Add(1)
	}
	n.transactions.micros.Add(now.Sub(t.since).Microseconds())
}

// login returns the counter of a mechanism; nil if there is none of that name.
func (n *counters) login(mechanism string) *loginCount {
	for i, m := range mechanisms {
		if m == mechanism {
			return &n.logins[i]
		}
	}
	return nil
}

// appendOpCounters appends the number of statements of write commands, and of other commands of each class.
func (n *counters) appendOpCounters(dst []byte) []byte {
	for _, class := range opOrder {
		dst = bson.AppendInt64(dst, opNames[class], n.statements[class].Load())
	}
	return dst
}

// appendCommands appends the number of commands of each name, and of those that have failed.
func (n *counters) appendCommands(dst []byte) []byte {
	dst = bson.AppendInt64(dst, "<UNKNOWN>", n.commands[0].total.Load())
	for i, name := range commandNames {
		c := &n.commands[i+1]
		dst = appendCounts(dst, name, named{"failed", c.failed.Load()}, named{"total", c.total.Load()})
	}
	return dst
}

// appendLogins appends the number of logins by each mechanism.
func (n *counters) appendLogins(dst []byte) []byte {
	for i, name := range mechanisms {
		l := &n.logins[i]
		at, b := bson.BeginObject(dst, name)
		b = appendCounts(b, "speculativeAuthenticate", named{"received", l.early.Load()},
			named{"successful", l.earlyDone.Load()})
		dst = bson.End(appendCounts(b, "authenticate", named{"received", l.begun.Load()},
			named{"successful", l.done.Load()}), at)
	}
	return dst
}

// appendCounts appends the numbers of cursors: those that were opened, and those that are open.
func (cs *cursors) appendCounts(dst []byte) []byte {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var kept, used int64
	for _, c := range cs.m {
		if c.keep {
			kept++
		}
		if c.inUse {
			used++
		}
	}
	dst = bson.AppendInt64(dst, "timedOut", cs.timedOut)
	dst = bson.AppendInt64(dst, "totalOpened", cs.opened)
	return appendCounts(dst, "open", named{"noTimeout", kept}, named{"pinned", used}, named{"total", int64(len(cs.m))})
}

// named is a number in a reply.
type named struct {
	name string
	n    int64
}

// appendCounts appends an object of numbers.
func appendCounts(dst []byte, name string, counts ...named) []byte {
	at, dst := bson.BeginObject(dst, name)
	for _, c := range counts {
		dst = value.AppendElement(dst, c.name, value.Int64Of(c.n))
	}
	return bson.End(dst, at)
}

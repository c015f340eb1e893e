package linearize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

const (
	traders = 6   // goroutines with a session each
	amount  = 100 // of each account at first
)

// transfers is one run of TestTransactions.
type transfers struct {
	t       *testing.T
	start   time.Time
	version atomic.Int32 // of the last write
	mu      sync.Mutex
	ops     []porcupine.Operation
	unsure  []unsure
	count   map[string]int
	lives   []int64 // when each process of the server had ended; 0 = it runs
}

// unsure is an operation whose outcome isn't known: it may take effect until the end of a life of the server.
type unsure struct{ op, life int }

func (r *transfers) time() int64 { return time.Since(r.start).Nanoseconds() }

// record adds a change that began at call. Its outcome is known, or it isn't.
func (r *transfers) record(worker int, call int64, c change, unknown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if unknown {
		r.unsure = append(r.unsure, unsure{len(r.ops), len(r.lives) - 1})
	}
	r.ops = append(r.ops,
		porcupine.Operation{ClientId: worker, Call: call, Return: r.time(), Input: c, Output: unknown})
}

func (r *transfers) counts(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[what]++
}

// account is a document.
type account struct {
	ID     int   `bson:"_id"`
	V      int32 `bson:"v"`
	Amount int   `bson:"amount"`
}

// reads returns what a reader of all documents has read, and fails the test if an amount was made or lost.
func (r *transfers) reads(what string, ds []account) change {
	sum, there := 0, 0
	c := change{reads: map[int]int32{}}
	for n := range slots {
		c.reads[n] = 0
	}
	for _, d := range ds {
		c.reads[d.ID] = d.V
		if sum += d.Amount; d.ID >= accounts {
			there++
		}
	}
	if sum != accounts*amount || there != 1 {
		r.t.Errorf("%s: the sum is %d, not %d, and %d seats are taken, not 1: %v", what, sum, accounts*amount, there,
			ds)
	}
	return c
}

// trader executes operations one after the other.
type trader struct {
	*transfers
	n   int
	cl  *mongo.Client
	rnd *rand.Rand
}

// action is one kind of operation: a transaction, or something else. do returns errNothing if it has no effect.
type action struct {
	name        string
	transaction bool
	do          func(w *trader, ctx context.Context, c *change) error
}

var actions = []action{
	{"transfer", true, (*trader).transfer}, {"transfer", true, (*trader).transfer},
	{"transfer", true, (*trader).transfer}, {"seat", true, (*trader).seat},
	{"snapshot", true, (*trader).snapshot}, {"snapshot", true, (*trader).snapshot},
	{"snapshot session", false, (*trader).kept}, {"single", false, (*trader).single},
}

var errNothing = errors.New("nothing to do")

// work executes operations until the context ends.
func (w *trader) work(ctx context.Context) {
	s, err := w.cl.StartSession()
	if err != nil {
		w.t.Error(err)
		return
	}
	in := mongo.NewSessionContext(context.WithoutCancel(ctx), s)
	defer s.EndSession(in)
	for ctx.Err() == nil {
		w.one(in, s, actions[w.rnd.IntN(len(actions))])
	}
}

// one executes one operation in a session.
func (w *trader) one(ctx context.Context, s *mongo.Session, a action) {
	c, call := change{reads: map[int]int32{}, writes: map[int]int32{}}, w.time()
	if a.transaction {
		if err := s.StartTransaction(); err != nil {
			w.t.Error(err)
			return
		}
	}
	err := a.do(w, ctx, &c)
	if a.transaction {
		if err != nil || len(c.writes) > 0 && w.rnd.IntN(8) == 0 {
			w.tolerate(a.name, err)
			w.counts(a.name + ": aborted")
			_ = s.AbortTransaction(ctx)
			return
		}
		if err = s.CommitTransaction(ctx); mongo.IsTimeout(err) { // the driver's transaction goes on: repeat it
			again, cancel := context.WithTimeout(ctx, 20*time.Second)
			err = s.CommitTransaction(again)
			cancel()
		}
	}
	if err == nil {
		w.record(w.n, call, c, false)
		w.counts(a.name)
		return
	}
	w.tolerate(a.name, err)
	if len(c.writes) == 0 || refused(err) {
		w.counts(a.name + ": refused")
		return
	}
	w.record(w.n, call, c, true)
	w.counts(a.name + ": unknown")
}

// refused reports whether an error says that nothing was written.
func refused(err error) bool {
	var e mongo.CommandError
	return errors.As(err, &e) && (e.Code == 112 || e.Code == 251) && !e.HasErrorLabel("UnknownTransactionCommitResult")
}

// answered reports whether an error is one of the server, and not of the way to it.
func answered(err error) bool {
	var e mongo.ServerError
	var c mongo.CommandError
	return errors.As(err, &e) && !e.HasErrorLabel("NetworkError") && !(errors.As(err, &c) && c.Code == 0)
}

// tolerate fails the test for an error of a server that neither a kill nor another transaction explains.
func (r *transfers) tolerate(what string, err error) {
	switch {
	case err == nil || errors.Is(err, errNothing):
		return
	case !answered(err):
		time.Sleep(5 * time.Millisecond) // there is no server
		return
	}
	var e mongo.ServerError
	errors.As(err, &e)
	for _, code := range []int{
		112, // another transaction has written the document
		251, // the transaction was lost with the server
		246, // the snapshot was
		89,  // the outcome of a commit isn't known
	} {
		if e.HasErrorCode(code) {
			return
		}
	}
	r.t.Errorf("%s: %v", what, err)
}

// coll returns the collection of a document. Neighbours are in different ones, and each document has a shard key value
// of its own: its _id.
func coll(cl *mongo.Client, n int) *mongo.Collection {
	return cl.Database(database).Collection([]string{"even", "odd"}[n%2])
}

// all reads all documents of both collections.
func all(ctx context.Context, cl *mongo.Client) ([]account, error) {
	var out []account
	for n := range 2 {
		cur, err := coll(cl, n).Find(ctx, bson.M{})
		if err != nil {
			return nil, err
		}
		var ds []account
		if err := cur.All(ctx, &ds); err != nil {
			return nil, err
		}
		out = append(out, ds...)
	}
	return out, nil
}

// look reads a document.
func (w *trader) look(ctx context.Context, n int, c *change) (d account, err error) {
	err = coll(w.cl, n).FindOne(ctx, bson.M{"_id": n}).Decode(&d)
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = nil
	}
	if err == nil {
		c.reads[n] = d.V
	}
	return d, err
}

// transfer moves an amount between two accounts.
func (w *trader) transfer(ctx context.Context, c *change) error {
	from := w.rnd.IntN(accounts)
	to := (from + 1 + w.rnd.IntN(accounts-1)) % accounts
	for _, n := range []int{from, to} {
		if _, err := w.look(ctx, n, c); err != nil {
			return err
		}
	}
	v, sum := w.version.Add(1), 1+w.rnd.IntN(9)
	for n, by := range map[int]int{from: -sum, to: sum} {
		set := bson.M{"$inc": bson.M{"amount": by}, "$set": bson.M{"v": v}}
		if _, err := coll(w.cl, n).UpdateOne(ctx, bson.M{"_id": n}, set); err != nil {
			return err
		}
		c.writes[n] = v
	}
	return nil
}

// seat deletes the document of the seat that is taken, and inserts that of another one.
func (w *trader) seat(ctx context.Context, c *change) error {
	to := accounts + w.rnd.IntN(seats)
	taken := -1
	for n := accounts; n < slots; n++ {
		switch d, err := w.look(ctx, n, c); {
		case err != nil:
			return err
		case d.V != 0 && taken >= 0:
			w.t.Errorf("the seats %d and %d are taken", taken, n)
		case d.V != 0:
			taken = n
		}
	}
	switch {
	case taken == to:
		return errNothing
	case taken < 0:
		w.t.Error("no seat is taken")
		return errNothing
	}
	v := w.version.Add(1)
	if _, err := coll(w.cl, to).InsertOne(ctx, account{ID: to, V: v}); err != nil {
		return err
	}
	c.writes[to] = v
	if _, err := coll(w.cl, taken).DeleteOne(ctx, bson.M{"_id": taken}); err != nil {
		return err
	}
	c.writes[taken] = 0
	delete(c.reads, 2*accounts+seats-taken-to) // the third one may change, like all that is only read
	return nil
}

// snapshot reads all documents.
func (w *trader) snapshot(ctx context.Context, c *change) error {
	ds, err := all(ctx, w.cl)
	if err == nil {
		*c = w.reads("a transaction", ds)
	}
	return err
}

// kept reads all documents at the time of a snapshot session.
func (w *trader) kept(_ context.Context, c *change) error {
	s, err := w.cl.StartSession(options.Session().SetSnapshot(true))
	if err != nil {
		return err
	}
	ctx := mongo.NewSessionContext(context.Background(), s)
	defer s.EndSession(ctx)
	ds, err := all(ctx, w.cl)
	if err == nil {
		*c = w.reads("a snapshot session", ds)
	}
	return err
}

// single gives a document another version outside of a transaction.
func (w *trader) single(ctx context.Context, c *change) error {
	n := w.rnd.IntN(accounts)
	d, err := w.look(ctx, n, c)
	if err != nil {
		return err
	}
	c.writes[n] = w.version.Add(1)
	set := bson.M{"$set": bson.M{"v": c.writes[n]}}
	res, err := coll(w.cl, n).UpdateOne(ctx, bson.M{"_id": n, "v": d.V}, set)
	if err == nil && res.MatchedCount == 0 { // it had changed
		clear(c.writes)
		return errNothing
	}
	return err
}

// fill writes the documents of the beginning, which is the first change of the history.
func (r *transfers) fill(ctx context.Context, cl *mongo.Client) error {
	c := change{writes: map[int]int32{}}
	for n := range accounts + 1 {
		d := account{ID: n, V: r.version.Add(1)}
		if n < accounts {
			d.Amount = amount
		}
		if _, err := coll(cl, n).InsertOne(ctx, d); err != nil {
			return err
		}
		c.writes[n] = d.V
	}
	r.record(0, 0, c, false)
	return nil
}

// history returns the operations. One whose outcome isn't known ends with the life of the server in which its client
// gave up.
func (r *transfers) history() []porcupine.Operation {
	for _, u := range r.unsure {
		r.ops[u.op].Return = max(r.lives[u.life], r.ops[u.op].Call+1)
	}
	return r.ops
}

// connect returns a client of the address of the MongoDB API, which goes on when the server there is started again
// within this time.
func connect(t *testing.T, addr string, within time.Duration) *mongo.Client {
	t.Helper()
	login := url.UserPassword("localhost", server.WellKnownKey)
	uri := fmt.Sprintf("mongodb://%s@%s/?directConnection=true", login, addr)
	cl, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(within).
		SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = cl.Disconnect(ctx)
	})
	return cl
}

// freeAddress returns an address of this machine with a port that is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// lives runs servers one after the other, for a while, and kills each. In the first one it calls first, and in the last
// one it calls last. Between them it calls killed after each kill.
func lives(t *testing.T, dir, durability, addr string, first, killed, last func()) {
	t.Helper()
	long, every := 4*time.Second, time.Second
	if s := os.Getenv("ORRERY_LINEARIZE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatal("ORRERY_LINEARIZE", s)
		}
		long, every = time.Duration(n)*20*time.Second, 3*time.Second
	}
	for n := range int(long/every) + 1 {
		p := launch(t, dir, durability, addr)
		if n == 0 {
			first()
		}
		if n < int(long/every) {
			time.Sleep(every)
		} else {
			last()
		}
		p.kill()
		killed()
	}
	check(t, dir)
}

// Transactions over documents of several collections and partitions are atomic steps in one history, even if the
// server is killed: what they have read and written, and what snapshots show. A commit without an answer was done
// completely or not at all, one that a driver repeats after the restart is answered by what was done, and an aborted
// transaction leaves nothing. A change stream over all lives has each change once, in the order of each document's
// versions.
func TestTransactions(t *testing.T) {
	for _, durability := range []string{"sync", "relaxed"} {
		t.Run(durability, func(t *testing.T) {
			dir, addr := t.TempDir(), freeAddress(t)
			r := &transfers{t: t, start: time.Now(), count: map[string]int{}, lives: []int64{0}}
			// One learns from the next life what became of its commits. The other doesn't wait.
			patient, hasty := connect(t, addr, 20*time.Second), connect(t, addr, 50*time.Millisecond)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var wg sync.WaitGroup
			var left []account
			stream := &follower{t: t, cl: patient}
			first := func() {
				if durability == "sync" {
					stream.begin()
				}
				if err := r.fill(ctx, patient); err != nil {
					t.Fatal(err)
				}
				for n := range traders {
					w := &trader{transfers: r, n: n, cl: []*mongo.Client{hasty, patient}[n%2]}
					w.rnd = rand.New(rand.NewPCG(uint64(n), uint64(r.start.UnixNano())))
					wg.Go(func() { w.work(ctx) })
				}
			}
			killed := func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.lives[len(r.lives)-1] = r.time()
				r.lives = append(r.lives, 0)
			}
			lives(t, dir, durability, addr, first, killed, func() {
				cancel()
				wg.Wait()
				var err error
				if left, err = all(context.Background(), patient); err != nil {
					t.Error(err)
				}
				if durability == "sync" {
					stream.end()
				}
			})
			r.reads("at the end", left)
			t.Logf("%d lives, %d events, %v", len(r.lives)-1, stream.count, r.count)
			for _, a := range append(actions, action{name: "transfer: aborted"}) {
				if r.count[a.name] < 20 {
					t.Errorf("%s: too few to find anything", a.name)
				}
			}
			if durability != "sync" { // the last moments are lost, but never half of a transaction
				return
			}
			judge(t, "all lives", vectors, map[string][]porcupine.Operation{"the documents": r.history()})
			stream.judge(r.ops)
		})
	}
}

package mongoapi

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
)

// What open transactions have written is counted in the memory of requests. A transaction for which there is none ends,
// and can be run again. While memory is short, idle ones are aborted, and those that a client uses stay.
func TestMemoryOfTransactions(t *testing.T) {
	clk := clock.Fake(time.Unix(1700000000, 0))
	b := budget.New(16<<20, 0)
	s, addr := serve(t, Options{Clock: clk}, b)
	c := connect(t, addr)
	c.ask(bson.D{{Key: "create", Value: "c"}})
	pad := strings.Repeat("x", 1<<20)
	insert := func(session byte, id int, begins bool) (code int32, labels string) {
		d := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id},
			{Key: "p", Value: pad}}}}, {Key: "lsid", Value: bson.D{{Key: "id",
			Value: bson.Binary{Subtype: 4, Data: append(make([]byte, 15), session)}}}},
			{Key: "txnNumber", Value: int64(1)}, {Key: "autocommit", Value: false}}
		if begins {
			d = append(d, bson.E{Key: "startTransaction", Value: true})
		}
		raw, e := c.ask(d)
		return e.Code, raw.Lookup("errorLabels").String()
	}
	n := byte(0)
	for ; n < 40; n++ {
		code, labels := insert(n, int(n), true)
		if code == 0 {
			continue
		}
		if code != 112 || !strings.Contains(labels, "TransientTransactionError") {
			t.Errorf("transaction %d: %d %s", n, code, labels)
		}
		break
	}
	if n < 8 || n == 40 || b.Used() > b.Limit() {
		t.Fatalf("%d transactions of 1 MiB hold %d of %d bytes", n, b.Used(), b.Limit())
	}
	clk.Advance(transactionRest - time.Second)
	if code, _ := insert(0, 100, false); code != 0 && code != 112 {
		t.Errorf("a transaction that is used: %d", code)
	}
	s.abortOld()
	if code, _ := insert(1, 101, false); code == 251 {
		t.Error("one that has rested for a shorter time is aborted")
	}
	clk.Advance(2 * time.Second)
	s.abortOld()
	if code, _ := insert(2, 102, false); code != 251 {
		t.Errorf("one that has rested: %d", code)
	}
	if held := b.Used(); held > 4<<20 {
		t.Errorf("%d bytes are held", held)
	}
	if code, _ := insert(n+1, 103, true); code != 0 {
		t.Errorf("another one: %d", code)
	}
	clk.Advance(transactionLife + time.Second)
	s.abortOld()
	for began := time.Now(); b.Used() > 0 && time.Since(began) < soon; time.Sleep(time.Millisecond) {
	} // a command has its memory until after its reply
	if held := b.Used(); held != 0 {
		t.Errorf("%d bytes are held by none", held)
	}
}

package mongoapi

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/clock"
)

// replyTimes are the times of a reply.
type replyTimes struct {
	Operation bson.Timestamp `bson:"operationTime"`
	Cluster   struct {
		Time      bson.Timestamp `bson:"clusterTime"`
		Signature struct {
			Hash  bson.Binary `bson:"hash"`
			KeyID int64       `bson:"keyId"`
		} `bson:"signature"`
	} `bson:"$clusterTime"`
}

func timesOf(t *testing.T, raw bson.Raw) (out replyTimes) {
	t.Helper()
	if err := bson.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReplyTimes: every reply has the cluster time. A write has a time of its own, and a read the latest one.
func TestReplyTimes(t *testing.T) {
	clk := clock.Fake(time.Unix(1000, 0))
	_, addr := serve(t, Options{Clock: clk}, nil)
	c := connect(t, addr)
	for _, x := range []struct {
		cmd  bson.D
		want bson.Timestamp
	}{
		{bson.D{{Key: "ping", Value: 1}}, bson.Timestamp{T: 1000, I: 1}},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}},
			bson.Timestamp{T: 1000, I: 2}},
		{bson.D{{Key: "find", Value: "c"}}, bson.Timestamp{T: 1000, I: 2}},
		{bson.D{{Key: "nonsense", Value: 1}}, bson.Timestamp{T: 1000, I: 2}},
		{bson.D{{Key: "delete", Value: "c"},
			{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}}},
			bson.Timestamp{T: 1000, I: 3}},
	} {
		raw, _ := c.ask(x.cmd)
		if got := timesOf(t, raw); got.Operation != x.want || got.Cluster.Time != x.want {
			t.Errorf("%v: %+v, want %v", x.cmd, got, x.want)
		}
	}
	clk.Advance(time.Second)
	raw, _ := c.ask(bson.D{{Key: "ping", Value: 1}})
	if got := timesOf(t, raw).Operation; got != (bson.Timestamp{T: 1001, I: 1}) {
		t.Error(got)
	}
}

// TestClusterTimeOfAnotherServer: a client brings a time from a server whose clock is ahead. The next reads after that
// time are answered, and the next write has a later one. A time without the account's signature is refused.
func TestClusterTimeOfAnotherServer(t *testing.T) {
	ahead, behind := newTestServer(t, Options{Auth: true, Clock: clock.Fake(time.Unix(2000, 0))}),
		newTestServer(t, Options{Auth: true, Clock: clock.Fake(time.Unix(1000, 0))})
	const sent = 2000<<32 | 7
	if err := ahead.times.advance(sent, ahead.times.sign(2000), time.Unix(2000, 0)); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	for _, x := range []struct {
		name string
		t    uint64
		hash []byte
		code int32
	}{
		{"no signature", sent, nil, 204},
		{"the signature of another second", sent, ahead.times.sign(1999), 204},
		{"signed, and too far in the future", (1000 + 366*86400) << 32, ahead.times.sign(1000 + 366*86400), 205},
		{"signed", sent, ahead.times.sign(2000), 0},
		{"known, so that the signature doesn't matter", sent - 1, nil, 0},
	} {
		var code int32
		if err := behind.times.advance(x.t, x.hash, now); err != nil {
			code = err.Code
		}
		if code != x.code {
			t.Errorf("%s: code %d, want %d", x.name, code, x.code)
		}
	}
	if got := behind.times.tick(now, false); got != sent {
		t.Errorf("a read has %x", got)
	}
	if got := behind.times.tick(now, true); got != sent+1 {
		t.Errorf("a write has %x", got)
	}
	other := clusterClock{}
	other.init("localhost", "b3RoZXI=", true)
	if string(other.sign(2000)) == string(ahead.times.sign(2000)) {
		t.Error("two keys give the same signature")
	}
}

// TestWrongClusterTime: a command with a time that isn't signed fails after the login; before it the time is ignored.
func TestWrongClusterTime(t *testing.T) {
	_, addr := serve(t, Options{Auth: true}, nil)
	c := connect(t, addr)
	wrong := bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1<<32 - 1}}}}
	raw, e := c.ask(bson.D{{Key: "hello", Value: 1}, wrong})
	if e.Code != 0 || timesOf(t, raw).Operation.T == 1<<32-1 {
		t.Error(raw)
	}
	c.login()
	if _, e := c.ask(bson.D{{Key: "ping", Value: 1}, wrong}); e.Code != 204 {
		t.Error(e)
	}
	if _, e := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "readConcern",
		Value: bson.D{{Key: "afterClusterTime", Value: bson.Timestamp{T: 1<<32 - 1}}}}}); e.Code != 72 {
		t.Error(e)
	}
}

// TestLastWrite: hello tells the time of the last write.
func TestLastWrite(t *testing.T) {
	_, addr := serve(t, Options{Clock: clock.Fake(time.Unix(1000, 0))}, nil)
	raw, _ := connect(t, addr).ask(bson.D{{Key: "hello", Value: 1}})
	var got struct {
		LastWrite struct {
			OpTime struct{ Ts bson.Timestamp }
			Date   bson.DateTime `bson:"lastWriteDate"`
		} `bson:"lastWrite"`
	}
	if err := bson.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if w := got.LastWrite; w.OpTime.Ts != (bson.Timestamp{T: 1000, I: 1}) || w.Date != 1000*1000 {
		t.Error(w)
	}
}

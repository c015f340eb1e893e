package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// frame puts a header before the rest of a message. A length of 0 is replaced by the actual length.
func frame(op int32, length int32, rest []byte) []byte {
	if length == 0 {
		length = int32(16 + len(rest))
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(length))
	b = binary.LittleEndian.AppendUint32(b, 7)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(op))
	return append(b, rest...)
}

// msg returns an OP_MSG with one document.
func msg(doc []byte) []byte { return frame(2013, 0, append([]byte{0, 0, 0, 0, 0}, doc...)) }

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// nested returns a document with n nested documents or arrays.
func nested(name string, kind byte, n int) []byte {
	head := 4 + 1 + len(name) + 1
	total := n*(head+1) + 5
	b := make([]byte, 0, total)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(total-i*(head+1)))
		b = append(append(append(b, kind), name...), 0)
	}
	b = append(b, 5, 0, 0, 0, 0)
	return append(b, make([]byte, n)...)
}

// TestMongoFrames sends malformed frames. The server replies or closes the connection in time, and serves others.
func TestMongoFrames(t *testing.T) {
	g := start(t, false)
	ping := encode(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "shop"}})
	list := [][]byte{
		frame(2013, -1, nil), frame(2013, 15, nil), frame(2013, 16, nil), frame(2013, math.MaxInt32, ping),
		frame(2013, 48_000_001, ping), frame(2013, 17, []byte{0}),
		frame(2013, 0, []byte{0, 0, 0, 0}), frame(2013, 0, []byte{0xff, 0xff, 0xff, 0xff, 0}),
		frame(2013, 0, append([]byte{1, 0, 0, 0, 0}, ping...)), frame(2013, 0, append([]byte{0, 0, 0, 0, 9}, ping...)),
		frame(2013, 0, []byte{0, 0, 0, 0, 1, 255, 255, 255, 127, 'a', 0}),
		frame(2013, 0, []byte{0, 0, 0, 0, 1, 4, 0, 0, 0}), frame(2012, 0, ping),
		frame(2012, 0, []byte{221, 7, 0, 0, 255, 255, 255, 127, 2, 1, 2, 3}),
		frame(2004, 0, ping), frame(2004, 0, []byte{0, 0, 0, 0, 'a'}),
		frame(2004, 0, append([]byte("\x00\x00\x00\x00admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"), ping...)),
		frame(2001, 0, ping), frame(2002, 0, ping), frame(2006, 0, ping), frame(2007, 0, ping), frame(1, 0, ping),
		frame(0, 0, ping), frame(-5, 0, ping),
		[]byte("GET / HTTP/1.1\r\n\r\n"), []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage"),
		bytes.Repeat([]byte{0xff}, 5000), bytes.Repeat([]byte{0}, 5000),
		msg(nested("a", 3, 100_000)), msg(nested("a", 4, 100_000)), msg(nested("find", 3, 1_000_000)),
	}
	for _, raw := range list {
		g.exchange(t, server.Mongo, raw, 40*time.Millisecond)
	}
	g.serves(t)
}

// TestMongoDamage damages valid commands inside an intact frame. Each gets a reply and the connection stays open. The
// connection ends only if the frame itself is damaged.
func TestMongoDamage(t *testing.T) {
	g := start(t, false)
	rng := rand.New(rand.NewPCG(3, 4))
	cmds := []bson.D{
		{{Key: "find", Value: "items"}, {
			Key: "filter", Value: bson.D{
				{Key: "n", Value: bson.D{{Key: "$gt", Value: 1}, {Key: "$in", Value: bson.A{1, "x"}}}}}},
			{Key: "sort", Value: bson.D{{Key: "n", Value: -1}}}, {Key: "limit", Value: 3}},
		{{Key: "aggregate", Value: "items"},
			{Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "n", Value: 1}}}},
				bson.D{
					{
						Key: "$group", Value: bson.D{
							{Key: "_id", Value: "$n"}, {Key: "s", Value: bson.D{{Key: "$sum", Value: "$n"}}}}}}}},
			{Key: "cursor", Value: bson.D{}}},
		{{Key: "insert", Value: "other"},
			{Key: "documents", Value: bson.A{
				bson.D{{Key: "_id", Value: 1}, {Key: "d", Value: bson.NewDateTimeFromTime(time.Unix(0, 0))},
					{Key: "r", Value: bson.Regex{Pattern: "a", Options: "i"}},
					{Key: "c", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{}}}}}}},
		{{Key: "update", Value: "other"},
			{
				Key: "updates", Value: bson.A{
					bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}},
						{
							Key: "u", Value: bson.D{
								{Key: "$set", Value: bson.D{{Key: "a.b", Value: 1}}},
								{Key: "$push",
									Value: bson.D{{Key: "l", Value: bson.D{{Key: "$each", Value: bson.A{1}}}}}}}},
						{Key: "upsert", Value: true}}}}},
		{{Key: "findAndModify", Value: "other"}, {Key: "query", Value: bson.D{{Key: "_id", Value: 1}}},
			{Key: "update", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}},
			{Key: "new", Value: true}},
		{{Key: "createIndexes", Value: "other"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}}}}},
		{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"},
			{Key: "payload", Value: []byte("n,,n=localhost,r=abcdefgh")}},
		{{Key: "hello", Value: 1}, {Key: "saslSupportedMechs", Value: "admin.localhost"},
			{Key: "speculativeAuthenticate",
				Value: bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-1"},
					{Key: "payload", Value: []byte("n,,n=a,r=b")}}}},
		{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "items"}},
		{{Key: "distinct", Value: "items"}, {Key: "key", Value: "n"}, {Key: "query", Value: bson.D{}}},
	}
	for _, d := range cmds {
		good := encode(t, append(d, bson.E{Key: "$db", Value: "shop"}))
		c := g.dial(t, server.Mongo)
		for range 120 {
			raw := bytes.Clone(good)
			for range 1 + rng.IntN(3) { // never the document's length or its final zero
				raw[4+rng.IntN(len(raw)-5)] = byte(rng.IntN(256))
			}
			if _, err := c.Write(msg(raw)); err != nil {
				t.Fatal(err)
			}
			if _, err := reply(c); err != nil {
				t.Fatalf("%v: %q: %v", d[0], raw, err)
			}
		}
	}
	g.serves(t)
}

// reply reads one message.
func reply(c net.Conn) (bson.Raw, error) {
	_ = c.SetReadDeadline(time.Now().Add(answerTime))
	var h [16]byte
	if _, err := io.ReadFull(c, h[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(h[:])-16)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	if len(b) < 10 {
		return nil, errors.New("a short reply")
	}
	return bson.Raw(b[5:]), bson.Raw(b[5:]).Validate()
}

// wrong returns values of all kinds.
func wrong(t *testing.T) []any {
	return []any{nil, true, int32(-1), int64(math.MaxInt64), math.NaN(), math.Inf(1), -1.5, "", "x", "$x", "a\x00b"[:1],
		"\xff", strings.Repeat("x", 100_000), bson.D{}, bson.D{{Key: "$x", Value: 1}}, bson.D{{Key: "", Value: ""}},
		bson.D{{Key: "a.b", Value: bson.A{}}},
		bson.A{}, bson.A{1}, bson.A{bson.D{}}, bson.A{bson.A{}}, bson.A{nil}, bson.NewObjectID(),
		bson.Binary{Subtype: 4, Data: []byte{1}}, bson.Regex{Pattern: "(", Options: "zz"},
		bson.Regex{Pattern: strings.Repeat("(a{1000})", 3) + "{1000}"},
		bson.MinKey{}, bson.MaxKey{}, bson.Timestamp{T: 1}, bson.NewDecimal128(0x7800000000000000, 0),
		bson.JavaScript("x"), bson.Undefined{}, bson.Raw(nested("a", 3, 90)), bson.Raw(nested("$not", 3, 90)),
		bson.Raw(nested("0", 4, 90))}
}

// TestMongoTypes uses values of every kind in every place of the commands. Each gets a reply. An error has one of the
// server's codes, never that of an internal error.
func TestMongoTypes(t *testing.T) {
	g := start(t, false)
	db := g.Mongo.Database("other")
	names := []string{"filter", "sort", "projection", "skip", "limit", "batchSize", "singleBatch", "hint", "min", "max",
		"let", "collation", "pipeline", "cursor", "query", "key", "documents", "ordered", "updates", "deletes",
		"update", "remove", "new", "fields", "upsert",
		"arrayFilters", "indexes", "index", "name", "mechanism", "payload", "conversationId", "collection", "comment",
		"maxTimeMS", "lsid", "txnNumber", "autocommit", "startTransaction", "readConcern", "writeConcern", "to",
		"cursors", "$db2", "nameOnly", "scale", "verbosity", "validator", "capped", "size", "unique"}
	commands := []string{"find", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify",
		"getMore", "killCursors", "createIndexes", "dropIndexes", "listIndexes", "listCollections", "listDatabases",
		"create", "drop", "dropDatabase", "collMod", "renameCollection",
		"hello", "isMaster", "ping", "buildInfo", "serverStatus", "dbStats", "collStats", "explain", "saslStart",
		"saslContinue", "logout", "endSessions", "startSession", "abortTransaction", "commitTransaction",
		"shardCollection", "enableSharding", "connectionStatus", "whatsmyuri", "getParameter", "hostInfo", "validate",
		"customAction", "nope"}
	values := wrong(t)
	run := func(d bson.D) {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		err := db.RunCommand(ctx, d).Err()
		var ce mongo.CommandError
		if err == nil || errors.As(err, &ce) && ce.Code != 1 && ce.Code != 8 {
			return
		}
		if !errors.As(err, &ce) && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err) {
			return // refused by the driver, or an error of a write
		}
		t.Errorf("%.300v: %v", d, err)
	}
	for _, c := range commands {
		for _, v := range values {
			run(bson.D{{Key: c, Value: v}})
		}
		for i, n := range names {
			run(bson.D{{Key: c, Value: "items"}, {Key: n, Value: values[(i*7+len(c))%len(values)]}})
			run(bson.D{{Key: c, Value: "items"}, {Key: n, Value: values[(i*11+len(c)+5)%len(values)]},
				{Key: names[(i+1)%len(names)], Value: values[i%len(values)]}})
		}
	}
	for _, v := range values {
		for _, op := range operators {
			run(bson.D{{Key: "find", Value: "items"}, {Key: "filter", Value: bson.D{{Key: op, Value: v}}}})
			run(
				bson.D{{Key: "find", Value: "items"},
					{Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: op, Value: v}}}}}})
			run(
				bson.D{{Key: "update", Value: "items"},
					{
						Key: "updates", Value: bson.A{
							bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: op, Value: v}}}}}}})
			run(
				bson.D{{Key: "update", Value: "items"},
					{
						Key: "updates", Value: bson.A{
							bson.D{{Key: "q", Value: bson.D{}},
								{Key: "u", Value: bson.D{{Key: op, Value: bson.D{{Key: "a", Value: v}}}}}}}}})
			run(
				bson.D{{Key: "aggregate", Value: "items"},
					{Key: "pipeline", Value: bson.A{bson.D{{Key: op, Value: v}}}}, {Key: "cursor", Value: bson.D{}}})
			run(
				bson.D{{Key: "aggregate", Value: 1},
					{Key: "pipeline", Value: bson.A{
						bson.D{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}},
						bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: bson.D{{Key: op, Value: v}}}}}}}},
					{Key: "cursor", Value: bson.D{}}})
		}
	}
	g.serves(t)
}

// The operators of filters, updates, stages and expressions.
var operators = strings.Fields("$eq $ne $gt $in $nin $and $or $nor $not $exists $type $regex $mod $all $elemMatch " +
	"$size $expr $where $text $jsonSchema $bitsAllSet $geoWithin $near $comment " +
	"$set $unset $inc $mul $min $max $push $pull $pullAll $addToSet $pop $rename $currentDate $setOnInsert $bit " +
	"$match $project $group $sort $limit $skip $unwind $count $addFields $replaceRoot $lookup $facet $bucket $bucketAuto $sample $out $merge $graphLookup $unionWith $sortByCount $redact $geoNear $changeStream $indexStats $collStats $setWindowFields $fill $densify " +
	"$add $subtract $multiply $divide $abs $pow $exp $ln $sqrt $trunc $round $concat $substr $substrCP $split $strLenCP $toUpper $indexOfCP $replaceAll $regexMatch $regexFindAll $dateToString $dateFromString $dateAdd $dateTrunc $dateFromParts $year $isoWeek " +
	"$cond $ifNull $switch $map $filter $reduce $range $slice $zip $arrayElemAt $concatArrays $reverseArray $sortArray $firstN $objectToArray $arrayToObject $mergeObjects $getField $setField $let $literal $convert $toInt $toDate $toDecimal $toObjectId $setUnion $anyElementTrue $function $rand $x")

// TestMongoHalfMessages: a thousand clients that aren't logged in each send half of the largest allowed message, or
// announce one. They use little memory, and clients that log in are served meanwhile.
func TestMongoHalfMessages(t *testing.T) {
	g := start(t, true)
	before := memory()
	const conns = 1000
	for i := range conns {
		half := append(frame(2013, 32<<10, nil), make([]byte, 16<<10)...)
		if i%2 == 0 {
			half = frame(2013, 48_000_000, make([]byte, 16<<10))
		}
		if _, err := g.dial(t, server.Mongo).Write(half); err != nil && i%2 == 1 {
			t.Fatal(err)
		}
	}
	g.serves(t)
	if held := int64(memory()) - int64(before); held > 96<<20 {
		t.Errorf("%d half messages hold %d MB", conns, held>>20)
	}
}

// TestMongoLeavers: the commands of clients that disconnect end.
func TestMongoLeavers(t *testing.T) {
	g := start(t, false)
	in := any(bson.D{{Key: "$add", Value: bson.A{"$$value", "$$this"}}})
	for range 3 {
		in = bson.D{
			{Key: "$reduce", Value: bson.D{{Key: "input", Value: bson.D{{Key: "$range", Value: bson.A{0, 5000}}}},
				{Key: "initialValue", Value: 0},
				{Key: "in", Value: bson.D{{Key: "$add", Value: bson.A{"$$value", in}}}}}}}
	}
	endless :=
		msg(
			encode(t, bson.D{{Key: "aggregate", Value: 1}, {Key: "$db", Value: "shop"},
				{Key: "cursor", Value: bson.D{}},
				{Key: "pipeline", Value: bson.A{
					bson.D{{Key: "$documents", Value: bson.A{bson.D{}}}},
					bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: in}}}}}}}))
	running := func() (n int) {
		var res struct{ Inprog []struct{ Command bson.D } }
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		if err := g.Mongo.Database("admin").RunCommand(ctx, bson.D{{Key: "currentOp", Value: 1}}).Decode(
			&res); err != nil {
			t.Fatal(err)
		}
		for _, op := range res.Inprog {
			if op.Command[0].Key == "aggregate" {
				n++
			}
		}
		return n
	}
	const clients = 20
	var list []net.Conn
	for range clients {
		c := g.dial(t, server.Mongo)
		if _, err := c.Write(endless); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	for began := time.Now(); running() < clients; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > answerTime {
			t.Fatal("they don't run")
		}
	}
	for _, c := range list {
		_ = c.Close()
	}
	for began := time.Now(); running() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > answerTime {
			t.Fatalf("%d commands run on", running())
		}
	}
	g.serves(t)
}

package sql

import (
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The worked examples of the service's documents on modelling and partitioning.

// P4 and the first example: db, coll, /deviceId, 20,000 RU/s is two partitions; a document is read by its key.
func TestModelDevices(t *testing.T) {
	db := database(t)
	c := container(t, db, byKey("coll", "/deviceId"), 20000)
	fr, err := c.ReadFeedRanges(ctx, nil)
	check(t, err)
	if len(fr) != 2 {
		t.Fatalf("%d partitions, want 2", len(fr))
	}
	_, err = c.CreateItem(ctx, str("XMS-0001"), []byte(`{"id":"XMS-001-FE24C","deviceId":"XMS-0001",`+
		`"metricType":"Temperature","unit":"Celsius","metricValue":46.9}`), nil)
	check(t, err)
	r, err := c.ReadItem(ctx, str("XMS-0001"), "XMS-001-FE24C", nil)
	check(t, err)
	if m := object(t, r.Value); m["metricValue"] != 46.9 || r.RequestCharge != 1 {
		t.Fatalf("%v for %v request units", m, r.RequestCharge)
	}
}

// P2: LAX, AMS and MEL are three logical partitions of one container.
func TestModelLogicalPartitions(t *testing.T) {
	c := container(t, database(t), byKey("airports", "/code"), 0)
	for _, code := range []string{"LAX", "AMS", "MEL"} {
		for _, id := range []string{"1", "2"} {
			_, err := c.CreateItem(ctx, str(code), []byte(`{"id":"`+id+`","code":"`+code+`"}`), nil)
			check(t, err)
		}
	}
	for _, code := range []string{"LAX", "AMS", "MEL"} {
		if rows, _ := query(t, c, "SELECT VALUE c.id FROM c ORDER BY c.id", str(code), nil); !slices.Equal(
			rows, []string{`"1"`, `"2"`}) {
			t.Errorf("%s: %v", code, rows)
		}
	}
}

const person = `{"id":"1","firstName":"Thomas","lastName":"Andersen","addresses":[{"line1":"100 Some Street",` +
	`"line2":"Unit 1","city":"Seattle","state":"WA","zip":98012}],"contactDetails":[{"email":"thomas@andersen.com"},{"phone":"+1 555 555-5555","extension":5555}]}`

// M1: a person with addresses and contact details of different shapes is one write and one read.
func TestModelPerson(t *testing.T) {
	c := container(t, database(t), byKey("people", "/id"), 0)
	_, err := c.CreateItem(ctx, str("1"), []byte(person), nil)
	check(t, err)
	r, err := c.ReadItem(ctx, str("1"), "1", nil)
	check(t, err)
	got, want := object(t, r.Value), object(t, []byte(person))
	for k, v := range want {
		if string(text(t, got[k])) != string(text(t, v)) {
			t.Errorf("%s is %v, want %v", k, got[k], v)
		}
	}
	for q, n := range map[string]int{
		"SELECT * FROM c WHERE c.addresses[0].city = 'Seattle'":                     1,
		"SELECT * FROM c WHERE c.addresses[0].zip = 98012":                          1,
		"SELECT * FROM c WHERE c.contactDetails[1].extension = 5555":                1,
		"SELECT * FROM c WHERE IS_DEFINED(c.contactDetails[0].phone)":               0,
		"SELECT VALUE a.city FROM c JOIN a IN c.addresses":                          1,
		"SELECT VALUE d.email FROM d IN c.contactDetails WHERE IS_DEFINED(d.email)": 1,
	} {
		if rows, _ := query(t, c, q, all, nil); len(rows) != n {
			t.Errorf("%s: %d rows, want %d", q, len(rows), n)
		}
	}
}

// M3: a portfolio refers to stocks by their ids.
func TestModelPortfolio(t *testing.T) {
	c := container(t, database(t), byKey("stocks", "/id"), 0)
	for id, body := range map[string]string{
		"p": `{"id":"p","firstName":"Thomas","holdings":[{"numberHeld":100,"stockId":1},{"numberHeld":50,"stockId":2}]}`,
		"1": `{"id":"1","symbol":"zaza","open":1,"high":2,"low":0.5,"vol":11970000,"mkt-cap":42000000,"pe":5.89}`,
		"2": `{"id":"2","symbol":"xcxc","open":89,"high":93.24,"low":88.87,"vol":2970200,"mkt-cap":1005000,"pe":75.82}`,
	} {
		_, err := c.CreateItem(ctx, str(id), []byte(body), nil)
		check(t, err)
	}
	rows, _ := query(t, c, `SELECT VALUE c.symbol FROM c WHERE c["mkt-cap"] > 2000000 AND c.low < 1`, all, nil)
	if !slices.Equal(rows, []string{`"zaza"`}) {
		t.Errorf("%v", rows)
	}
	rows, _ = query(t, c, "SELECT VALUE h.stockId FROM c JOIN h IN c.holdings WHERE h.numberHeld >= 100", all, nil)
	if !slices.Equal(rows, []string{"1"}) {
		t.Errorf("%v", rows)
	}
}

// M3: books refer to their publisher.
func TestModelPublisher(t *testing.T) {
	c := container(t, database(t), byKey("books", "/pub-id"), 0)
	for _, b := range []string{`{"id":"1","name":"Azure Cosmos DB 101","pub-id":"mspress"}`,
		`{"id":"2","name":"Azure Cosmos DB for RDBMS Users","pub-id":"mspress"}`} {
		_, err := c.CreateItem(ctx, str("mspress"), []byte(b), nil)
		check(t, err)
	}
	if rows, _ := query(t, c, `SELECT * FROM c WHERE c["pub-id"] = "mspress"`, all, nil); len(rows) != 2 {
		t.Errorf("%v", rows)
	}
}

// M6: a book and its reviews share a logical partition. A type property distinguishes them.
func TestModelBookAndReviews(t *testing.T) {
	c := container(t, database(t), byKey("library", "/bookId"), 0)
	for _, b := range []string{
		`{"id":"b1","name":"Azure Cosmos DB 101","bookId":"b1","type":"book"}`,
		`{"id":"r1","content":"This book is awesome","bookId":"b1","type":"review"}`,
		`{"id":"r2","content":"Best book ever!","bookId":"b1","type":"review"}`,
		`{"id":"b2","name":"Azure Cosmos DB for RDBMS Users","bookId":"b2","type":"book"}`,
	} {
		_, err := c.CreateItem(ctx, str(object(t, []byte(b))["bookId"].(string)), []byte(b), nil)
		check(t, err)
	}
	for q, n := range map[string]int{"SELECT * FROM c": 3, "SELECT * FROM c WHERE c.type = 'review'": 2,
		"SELECT * FROM c WHERE c.type = 'book'": 1} {
		if rows, _ := query(t, c, q, str("b1"), nil); len(rows) != n {
			t.Errorf("%s: %d rows, want %d", q, len(rows), n)
		}
	}
}

// M5: a new book and its author's countOfBooks change together or not at all.
func TestModelCountOfBooks(t *testing.T) {
	c := container(t, database(t), byKey("authors", "/author"), 0)
	_, err := c.CreateItem(ctx, str("a1"),
		[]byte(`{"id":"a1","author":"a1","name":"Thomas Andersen","countOfBooks":3}`), nil)
	check(t, err)
	for i, ok := range []bool{true, false} { // in the second round the book exists already
		b := c.NewTransactionalBatch(str("a1"))
		b.CreateItem([]byte(`{"id":"b4","author":"a1","name":"Learn about Azure Cosmos DB"}`), nil)
		b.ReplaceItem("a1", []byte(`{"id":"a1","author":"a1","name":"Thomas Andersen","countOfBooks":`+
			string(rune('4'+i))+`}`), nil)
		r, err := c.ExecuteTransactionalBatch(ctx, b, nil)
		check(t, err)
		if r.Success != ok {
			t.Fatalf("run %d: %+v", i, r)
		}
	}
	r, err := c.ReadItem(ctx, str("a1"), "a1", nil)
	check(t, err)
	if n := object(t, r.Value)["countOfBooks"]; n != 4.0 {
		t.Fatalf("countOfBooks is %v", n)
	}
}

// M7: many to many by arrays of ids on both sides.
func TestModelAuthorsAndBooks(t *testing.T) {
	c := container(t, database(t), byKey("library", "/id"), 0)
	for _, b := range []string{
		`{"id":"a1","name":"Thomas Andersen","books":["b1","b2","b3"]}`,
		`{"id":"a2","name":"William Wakefield","books":["b1","b4"]}`,
		`{"id":"b1","name":"Azure Cosmos DB 101","authors":["a1","a2"]}`, `{"id":"b2","authors":["a1"]}`,
		`{"id":"b3","authors":["a1"]}`, `{"id":"b4","authors":["a2"]}`,
	} {
		_, err := c.CreateItem(ctx, str(object(t, []byte(b))["id"].(string)), []byte(b), nil)
		check(t, err)
	}
	rows, _ := query(t, c, "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.authors, 'a1') ORDER BY c.id", all, nil)
	if !slices.Equal(rows, []string{`"b1"`, `"b2"`, `"b3"`}) {
		t.Errorf("%v", rows)
	}
	rows, _ = query(t, c, "SELECT VALUE c.name FROM c WHERE ARRAY_CONTAINS(c.books, 'b4')", all, nil)
	if !slices.Equal(rows, []string{`"William Wakefield"`}) {
		t.Errorf("%v", rows)
	}
}

// M2: an item above the limit is refused, and the previous version stays.
func TestModelItemLimit(t *testing.T) {
	c := container(t, database(t), byKey("posts", "/id"), 0)
	_, err := c.CreateItem(ctx, str("1"), []byte(`{"id":"1","name":"What's new in the coolest Cloud",`+
		`"recentComments":[{"id":1},{"id":2},{"id":3}]}`), nil)
	check(t, err)
	comments := make([]item, 0, 30000)
	for i := range 30000 {
		comments = append(comments, item{"id": i, "author": "anon", "comment": "something useful, I'm sure, and quite a bit of it"})
	}
	_, err = c.ReplaceItem(ctx, str("1"), "1", text(t, item{"id": "1", "comments": comments}), nil)
	refused(t, err, 413, "RequestEntityTooLarge")
	r, err := c.ReadItem(ctx, str("1"), "1", &azcosmos.ItemOptions{})
	check(t, err)
	if len(object(t, r.Value)["recentComments"].([]any)) != 3 {
		t.Fatalf("%s", r.Value)
	}
}

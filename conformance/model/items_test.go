package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/conformance/harness"
)

const person = `{"id":"1","firstName":"Thomas","lastName":"Andersen","addresses":[{"line1":"100 Some Street",` +
	`"line2":"Unit 1","city":"Seattle","state":"WA","zip":98012}],"contactDetails":[{"email":"thomas@andersen.com"},{"phone":"+1 555 555-5555","extension":5555}]}`

// M1: a person with addresses and contact details of different shapes is one write and one read in every API.
func TestM1Person(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "people", 0, "/id")
	create(t, c, "id", person)
	r, err := c.ReadItem(bg, str("1"), "1", nil)
	ok(t, err)
	has(t, r.Value, person)
	coll := s.Mongo.Database(db.ID()).Collection("people")
	n, err := coll.CountDocuments(bg, bson.D{
		{Key: "addresses.city", Value: "Seattle"}, {Key: "contactDetails.extension", Value: 5555}})
	if n != 1 || err != nil {
		t.Errorf("by Mongo: %d %v", n, err)
	}
	if vs, err := harness.Submit(s.Gremlin(t, db.ID(), "people"),
		"g.V('1').values('firstName', 'lastName').fold()"); err != nil || fmt.Sprint(vs) != "[[Thomas Andersen]]" {
		t.Errorf("by Gremlin: %v %v", vs, err)
	}
	e, err := s.Tables.NewClient(db.ID()+".people").GetEntity(bg, "1", "1", nil)
	ok(t, err)
	has(t, e.Value, `{"firstName":"Thomas","contactDetails":"[{\"email\":\"thomas@andersen.com\"},`+
		`{\"phone\":\"+1 555 555-5555\",\"extension\":5555}]"}`)
}

// M2: an item above the limit (2 MB) is refused by each API with a clear error of its own, and nothing is lost.
func TestM2ItemLimit(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "posts", 0, "/id")
	create(t, c, "id", `{"id":"1","name":"What's new in the coolest Cloud","recentComments":[{"id":1},{"id":2},`+
		`{"id":3}]}`)
	body := `{"id":"1","comments":[` + strings.Repeat(`{"author":"anon","comment":"something useful, I'm sure"},`,
		40000) + `{}]}`
	_, err := c.ReplaceItem(bg, str("1"), "1", []byte(body), nil)
	refused(t, err, 413)
	ops := azcosmos.PatchOperations{}
	ops.AppendSet("/comments", strings.Repeat("x", 2<<20))
	_, err = c.PatchItem(bg, str("1"), "1", ops, nil)
	refused(t, err, 413)
	r, err := c.ReadItem(bg, str("1"), "1", nil)
	ok(t, err)
	has(t, r.Value, `{"name":"What's new in the coolest Cloud","recentComments":[{"id":1},{"id":2},{"id":3}]}`)

	table := s.Tables.NewClient("posts")
	_, err = table.CreateTable(bg, nil)
	ok(t, err)
	_, err = table.AddEntity(bg, []byte(`{"PartitionKey":"1","RowKey":"1","Name":"short"}`), nil)
	ok(t, err)
	var e strings.Builder
	e.WriteString(`{"PartitionKey":"1","RowKey":"1"`)
	for i := range 80 {
		fmt.Fprintf(&e, `,"C%d":"%s"`, i, strings.Repeat("x", 32<<10))
	}
	_, err = table.UpdateEntity(bg, []byte(e.String()+"}"), nil)
	if re := refused(t, err, 400); re.ErrorCode != "EntityTooLarge" {
		t.Errorf("%v", err)
	}
	got, err := table.GetEntity(bg, "1", "1", nil)
	ok(t, err)
	has(t, got.Value, `{"Name":"short"}`)
}

// M2: a blog post contains its newest comments. Items with 100 comments each refer to it by postId.
func TestM2Comments(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "blog", 0, "/postId")
	create(t, c, "postId", `{"id":"post","postId":"1","name":"What's new in the coolest Cloud",`+
		`"recentComments":[{"id":1,"author":"anon"},{"id":2,"author":"bob"},{"id":3,"author":"jane"}]}`)
	for page := range 2 {
		var list []string
		for i := range 100 {
			list = append(list, fmt.Sprintf(`{"id":%d,"author":"a%d","comment":"more goodness"}`, 4+100*page+i, i%10))
		}
		create(t, c, "postId", fmt.Sprintf(`{"id":"comments-%d","postId":"1","comments":[%s]}`, page,
			strings.Join(list, ",")))
	}
	same(t, harness.Query(t, c, str("1"), "SELECT VALUE COUNT(1) FROM p JOIN c IN p.comments WHERE c.author = 'a3'"),
		"[20]")
	same(t, harness.Query(t, c, str("1"), "SELECT VALUE ARRAY_LENGTH(c.recentComments) FROM c WHERE c.id = 'post'"),
		"[3]")
}

const (
	zaza = `{"id":"1","symbol":"zaza","open":1,"high":2,"low":0.5,"vol":11970000,"mkt-cap":42000000,"pe":5.89}`
	xcxc = `{"id":"2","symbol":"xcxc","open":89,"high":93.24,"low":88.87,"vol":2970200,"mkt-cap":1005000,"pe":75.82}`
)

// M3: a portfolio refers to stocks, and books to their publisher, by plain values that aren't checked.
func TestM3References(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	stocks := harness.Container(t, db, "stocks", 0, "/id")
	create(t, stocks, "id", `{"id":"p","firstName":"Thomas","holdings":[{"numberHeld":100,"stockId":1},`+
		`{"numberHeld":50,"stockId":2},{"numberHeld":1,"stockId":99}]}`, zaza, xcxc)
	same(
		t, harness.Query(t, stocks, all, `SELECT VALUE h.stockId FROM c JOIN h IN c.holdings WHERE h.numberHeld >= 50`),
		"[1,2]")
	same(
		t,
		harness.Query(
			t, stocks, all, `SELECT c.symbol, c["mkt-cap"] FROM c WHERE c["mkt-cap"] > 2000000 AND c.low < 1`),
		`[{"symbol":"zaza","mkt-cap":42000000}]`)
	_, err := stocks.DeleteItem(bg, str("1"), "1", nil)
	ok(t, err) // the weak link stays
	books := harness.Container(t, db, "books", 0, "/pub-id")
	create(t, books, "pub-id", `{"id":"1","name":"Azure Cosmos DB 101","pub-id":"mspress"}`,
		`{"id":"2","name":"Azure Cosmos DB for RDBMS Users","pub-id":"mspress"}`,
		`{"id":"1","name":"Another","pub-id":"other"}`)
	same(t, harness.Query(t, books, all, `SELECT VALUE c.name FROM c WHERE c["pub-id"] = "mspress" ORDER BY c.name`),
		`["Azure Cosmos DB 101","Azure Cosmos DB for RDBMS Users"]`)
}

// M4: JOIN unfolds one or several arrays of one item, and never joins items.
func TestM4Join(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "people", 0, "/id")
	create(t, c, "id", person, `{"id":"2","addresses":[{"city":"Oslo"},{"city":"Bergen"}],`+
		`"contactDetails":[{"phone":"1"},{"phone":"2"}]}`)
	same(t, harness.Query(t, c, all, "SELECT VALUE a.city FROM c JOIN a IN c.addresses WHERE c.id = '2'"),
		`["Oslo","Bergen"]`)
	// 1*2 + 2*2, not 3*4
	same(t, harness.Query(t, c, all, "SELECT VALUE COUNT(1) FROM c JOIN a IN c.addresses JOIN d IN c.contactDetails"),
		"[6]")
}

// M5: a new book and its author's countOfBooks change in one transaction.
func TestM5CountOfBooks(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "authors", 0, "/author")
	create(t, c, "author", `{"id":"a1","author":"a1","name":"Thomas Andersen","countOfBooks":3}`)
	add := func(book string, count int) bool {
		b := c.NewTransactionalBatch(str("a1"))
		b.CreateItem([]byte(fmt.Sprintf(`{"id":%q,"author":"a1"}`, book)), nil)
		ops := azcosmos.PatchOperations{}
		ops.AppendIncrement("/countOfBooks", 1)
		b.PatchItem("a1", ops, nil)
		r, err := c.ExecuteTransactionalBatch(bg, b, nil)
		ok(t, err)
		same(t, harness.Query(t, c, str("a1"), "SELECT VALUE c.countOfBooks FROM c WHERE c.id = 'a1'"),
			fmt.Sprintf("[%d]", count))
		return r.Success
	}
	if !add("b4", 4) || add("b4", 4) || !add("b5", 5) {
		t.Error("the second b4 must be refused, the others not")
	}
}

// M6: books and reviews are in the same container, with a type property, and in the same logical partition by bookId.
func TestM6Types(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "library", 0, "/bookId")
	create(t, c, "bookId",
		`{"id":"b1","name":"Azure Cosmos DB 101","bookId":"b1","type":"book"}`,
		`{"id":"r1","content":"This book is awesome","bookId":"b1","type":"review"}`,
		`{"id":"r2","content":"Best book ever!","bookId":"b1","type":"review"}`,
		`{"id":"b2","name":"Azure Cosmos DB for RDBMS Users","bookId":"b2","type":"book"}`)
	same(t, harness.Query(t, c, str("b1"), "SELECT VALUE c.content FROM c WHERE c.type = 'review' ORDER BY c.id"),
		`["This book is awesome","Best book ever!"]`)
	same(t, harness.Query(t, c, all, "SELECT c.type, COUNT(1) AS n FROM c GROUP BY c.type"),
		`[{"type":"book","n":2},{"type":"review","n":2}]`)
}

// M7: authors and books contain each other's ids. The hybrid form has a copy of name and picture next to the id.
func TestM7ManyToMany(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "library", 0, "/id")
	create(t, c, "id",
		`{"id":"a1","name":"Thomas Andersen","books":["b1","b2","b3"],"countOfBooks":3,"images":[{"thumbnail":"http://contoso.com/a1.png"},{"profile":"http://contoso.com/a1-large.png"}]}`,
		`{"id":"a2","name":"William Wakefield","books":["b1","b4"],"countOfBooks":2}`,
		`{"id":"b1","name":"Azure Cosmos DB 101","authors":[{"id":"a1","name":"Thomas Andersen","thumbnailUrl":"http://contoso.com/a1.png"},{"id":"a2","name":"William Wakefield","thumbnailUrl":"http://contoso.com/a2.png"}]}`,
		`{"id":"b2","name":"Azure Cosmos DB for RDBMS Users","authors":["a1"]}`,
		`{"id":"b3","name":"Taking over the world one JSON doc at a time","authors":["a1"]}`,
		`{"id":"b4","name":"Learn about Azure Cosmos DB","authors":["a2"]}`)
	same(t, harness.Query(t, c, all, "SELECT VALUE c.name FROM c WHERE ARRAY_CONTAINS(c.books, 'b4')"),
		`["William Wakefield"]`)
	same(t, harness.Query(t, c, all, "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.authors, 'a1') OR "+
		"ARRAY_CONTAINS(c.authors, {id: 'a1'}, true) ORDER BY c.id"), `["b1","b2","b3"]`)
	same(t, harness.Query(t, c, all, "SELECT VALUE a.thumbnailUrl FROM c JOIN a IN c.authors WHERE c.id = 'b1' AND "+
		"a.name = 'Thomas Andersen'"), `["http://contoso.com/a1.png"]`)
	n, err := s.Mongo.Database(db.ID()).Collection("library").CountDocuments(bg, bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "authors", Value: "a1"}}, bson.D{{Key: "authors.id", Value: "a1"}}}}})
	if n != 3 || err != nil {
		t.Errorf("by Mongo: %d %v", n, err)
	}
	if vs, err := harness.Submit(s.Gremlin(t, db.ID(), "library"), "g.V().has('books', 'b4').values('name')"); err !=
		nil || fmt.Sprint(vs) != "[William Wakefield]" {
		t.Errorf("by Gremlin: %v %v", vs, err)
	}
}

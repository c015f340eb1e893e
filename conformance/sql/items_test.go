package sql

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestItemLife(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	made, err := c.CreateItem(ctx, str("a"),
		[]byte(`{"id":"1","pk":"a","n":1,"list":[1,"x",null,true,1.5,{"y":[]}]}`), nil)
	check(t, err)
	if made.RawResponse.StatusCode != 201 || made.RequestCharge <= 0 || made.ActivityID == "" ||
		made.SessionToken == nil {
		t.Fatalf("%+v", made)
	}
	m := object(t, made.Value)
	if m["_etag"] != string(made.ETag) || len(m["_rid"].(string)) != 24 || m["_attachments"] != "attachments/" ||
		m["_ts"].(float64) < 1e9 {
		t.Fatalf("%v", m)
	}
	_, err = c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), nil)
	refused(t, err, 409, "Conflict")

	read, err := c.ReadItem(ctx, str("a"), "1", nil)
	check(t, err)
	if string(read.Value) != string(made.Value) || read.ETag != made.ETag {
		t.Fatalf("read %s, created %s", read.Value, made.Value)
	}
	put, err := c.ReplaceItem(ctx, str("a"), "1", []byte(`{"id":"1","pk":"a","n":2}`), nil)
	check(t, err)
	if p := object(t, put.Value); p["n"] != 2.0 || p["_rid"] != m["_rid"] || put.ETag == made.ETag {
		t.Fatalf("%v", p)
	}
	up, err := c.UpsertItem(ctx, str("a"), []byte(`{"id":"1","pk":"a","n":3}`), nil)
	check(t, err)
	if up.RawResponse.StatusCode != 200 {
		t.Fatal(up.RawResponse.StatusCode)
	}
	up, err = c.UpsertItem(ctx, str("a"), []byte(`{"id":"2","pk":"a"}`), nil)
	check(t, err)
	if up.RawResponse.StatusCode != 201 {
		t.Fatal(up.RawResponse.StatusCode)
	}
	del, err := c.DeleteItem(ctx, str("a"), "1", nil)
	check(t, err)
	if del.RawResponse.StatusCode != 204 {
		t.Fatal(del.RawResponse.StatusCode)
	}
	_, err = c.ReadItem(ctx, str("a"), "1", nil)
	refused(t, err, 404, "NotFound")
	_, err = c.DeleteItem(ctx, str("a"), "1", nil)
	refused(t, err, 404, "NotFound")
	_, err = c.ReplaceItem(ctx, str("a"), "1", []byte(`{"id":"1","pk":"a"}`), nil)
	refused(t, err, 404, "NotFound")
}

// Without EnableContentResponseOnWrite the client requests minimal replies and gets no body.
func TestMinimalReplies(t *testing.T) {
	cred, err := azcosmos.NewKeyCredential(accountKey)
	check(t, err)
	cl, err := azcosmos.NewClientWithKey(endpoint, cred, nil)
	check(t, err)
	db := database(t)
	container(t, db, byKey("c", "/pk"), 0)
	c, err := cl.NewContainer(db.ID(), "c")
	check(t, err)
	r, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), nil)
	check(t, err)
	if len(r.Value) != 0 || r.ETag == "" {
		t.Fatalf("%d bytes, etag %q", len(r.Value), r.ETag)
	}
	g, err := c.ReadItem(ctx, str("a"), "1", nil)
	check(t, err)
	if g.ETag != r.ETag {
		t.Fatal("the etag of the write is not the item's")
	}
}

func TestEtags(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	r, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), nil)
	check(t, err)
	stale, fresh := azcore.ETag(`"00000000-0000-0000-0000-000000000000"`), r.ETag
	for _, with := range []*azcosmos.ItemOptions{{IfMatchEtag: &stale}} {
		_, err = c.ReplaceItem(ctx, str("a"), "1", []byte(`{"id":"1","pk":"a"}`), with)
		refused(t, err, 412, "PreconditionFailed")
		_, err = c.UpsertItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), with)
		refused(t, err, 412, "PreconditionFailed")
		_, err = c.DeleteItem(ctx, str("a"), "1", with)
		refused(t, err, 412, "PreconditionFailed")
	}
	_, err = c.ReplaceItem(ctx, str("a"), "1", []byte(`{"id":"1","pk":"a","n":1}`),
		&azcosmos.ItemOptions{IfMatchEtag: &fresh})
	check(t, err)
	_, err = c.DeleteItem(ctx, str("a"), "1", &azcosmos.ItemOptions{IfMatchEtag: &fresh})
	refused(t, err, 412, "PreconditionFailed")
}

func TestPartitionKeyValues(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	for id, k := range map[string]struct {
		json string
		pk   azcosmos.PartitionKey
	}{
		"string":  {`"text"`, str("text")},
		"unicode": {`"\u9c40 \ud83d\ude00"`, str("\u9c40 \U0001F600")},
		"empty":   {`""`, str("")},
		"int":     {`5`, azcosmos.NewPartitionKeyNumber(5)},
		"float":   {`-5.25`, azcosmos.NewPartitionKeyNumber(-5.25)},
		"true":    {`true`, azcosmos.NewPartitionKeyBool(true)},
		"false":   {`false`, azcosmos.NewPartitionKeyBool(false)},
		"null":    {`null`, azcosmos.NullPartitionKey},
	} {
		if _, err := c.CreateItem(ctx, k.pk, []byte(`{"id":"`+id+`","pk":`+k.json+`}`), nil); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		r, err := c.ReadItem(ctx, k.pk, id, nil)
		if err != nil || object(t, r.Value)["id"] != id {
			t.Errorf("%s: %v", id, err)
		}
	}
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"x","pk":"b"}`), nil)
	refused(t, err, 400, "doesn't match")
	_, err = c.CreateItem(ctx, str("a"), []byte(`{"id":"x"}`), nil)
	refused(t, err, 400, "doesn't match")
}

func TestHierarchicalKeys(t *testing.T) {
	c := container(t, database(t), byKey("c", "/tenant", "/user", "/session"), 0)
	for _, s := range []string{"s1", "s2"} {
		pk := str("t1").AppendString("u1").AppendString(s)
		_, err := c.CreateItem(ctx, pk, []byte(`{"id":"1","tenant":"t1","user":"u1","session":"`+s+`"}`), nil)
		check(t, err)
		r, err := c.ReadItem(ctx, pk, "1", nil)
		check(t, err)
		if object(t, r.Value)["session"] != s {
			t.Fatalf("%s", r.Value)
		}
	}
	_, err := c.ReadItem(ctx, str("t1"), "1", nil)
	refused(t, err, 400, "fewer components")
	for n, pk := range map[int]azcosmos.PartitionKey{2: str("t1"), 1: str("t1").AppendString("u1").AppendString("s2"),
		0: str("t2")} {
		if rows, _ := query(t, c, "SELECT * FROM c", pk, nil); len(rows) != n {
			t.Errorf("%d rows, want %d", len(rows), n)
		}
	}
}

func TestItemIDs(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	for _, id := range []string{"Test", "This is a test", " Test", "Test ", "Test  ",
		"WithAllowedSpecial,=.:~+-@()^${}[]!_Chars",
		"BQE1D3PdG4N4bzU9TKaCIM3qc0TVcZ2-Y3jnsRfwdHC1ombkX3F1dot-SG0-UTq9AbgdX3kOWoP6qL6lJqWeKgV3zwWWPZO-t5X0ehJzv9LGkWld07LID2rhWhGT6huBM6Q=",
		"IdEndingWithPercentEncodedWhitespace%20", "WithPercentEncodedSpecialChar%E9%B1%80", "Disallowed?Chars",
		"Disallowed/Chars", `Disallowed\Chars`, "Disallowed#Chars",
		"With\rCarriageReturn", "With\tTab", "With\nLineFeed", "WithUnicode\u9c40"} {
		body := text(t, item{"id": id, "pk": "a"})
		if _, err := c.CreateItem(ctx, str("a"), body, nil); err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		r, err := c.ReadItem(ctx, str("a"), id, nil)
		if err != nil || object(t, r.Value)["id"] != id {
			t.Errorf("read %q: %v", id, err)
			continue
		}
		if _, err = c.ReplaceItem(ctx, str("a"), id, body, nil); err != nil {
			t.Errorf("replace %q: %v", id, err)
		}
		if _, err = c.DeleteItem(ctx, str("a"), id, nil); err != nil {
			t.Errorf("delete %q: %v", id, err)
		}
	}
}

func TestRefusedItems(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	for body, code := range map[string]int{
		``:                              400,
		`{`:                             400,
		`[]`:                            400,
		`"x"`:                           400,
		`{"pk":"a"}`:                    400,
		`{"id":1,"pk":"a"}`:             400,
		`{"id":"","pk":"a"}`:            400,
		`{"id":"x","pk":"a","ttl":0}`:   400,
		`{"id":"x","pk":"a"} trailing`:  400,
		`{"id":"x","pk":"a","v":1e999}`: 400,
		`{"id":"` + strings.Repeat("x", 1024) + `","pk":"a"}`:                                 400,
		`{"id":"x","pk":"a","v":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: 400,
		`{"id":"x","pk":"a","v":"` + strings.Repeat("x", 2<<20) + `"}`:                        413,
	} {
		_, err := c.CreateItem(ctx, str("a"), []byte(body), nil)
		refused(t, err, code, "")
	}
	if rows, _ := query(t, c, "SELECT * FROM c", all, nil); len(rows) != 0 {
		t.Fatalf("a refused item is there: %v", rows)
	}
}

func TestUniqueKeys(t *testing.T) {
	p := byKey("c", "/pk")
	p.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}}
	c := container(t, database(t), p, 0)
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a","email":"x"}`), nil)
	check(t, err)
	_, err = c.CreateItem(ctx, str("a"), []byte(`{"id":"2","pk":"a","email":"x"}`), nil)
	refused(t, err, 409, "Unique index constraint violation")
	_, err = c.CreateItem(ctx, str("b"), []byte(`{"id":"2","pk":"b","email":"x"}`), nil)
	check(t, err)
}

func TestBatch(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	b := c.NewTransactionalBatch(str("a"))
	b.CreateItem([]byte(`{"id":"1","pk":"a","n":1}`), nil)
	b.UpsertItem([]byte(`{"id":"2","pk":"a"}`), nil)
	b.ReadItem("1", nil)
	b.ReplaceItem("1", []byte(`{"id":"1","pk":"a","n":2}`), nil)
	b.DeleteItem("2", nil)
	r, err := c.ExecuteTransactionalBatch(
		ctx, b, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true})
	check(t, err)
	if !r.Success || len(r.OperationResults) != 5 || r.SessionToken == "" {
		t.Fatalf("%+v", r)
	}
	for i, want := range []int32{201, 201, 200, 200, 204} {
		o := r.OperationResults[i]
		if o.StatusCode != want || o.RequestCharge <= 0 || o.ETag == "" && want != 204 {
			t.Errorf("operation %d: %+v, want %d", i, o, want)
		}
	}
	if m := object(t, r.OperationResults[2].ResourceBody); m["n"] != 1.0 {
		t.Errorf("the read inside shows %v", m)
	}
	g, err := c.ReadItem(ctx, str("a"), "1", nil)
	check(t, err)
	if object(t, g.Value)["n"] != 2.0 || g.ETag != r.OperationResults[3].ETag {
		t.Errorf("%s, etag %s, batch said %s", g.Value, g.ETag, r.OperationResults[3].ETag)
	}
}

func TestBatchFails(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"there","pk":"a"}`), nil)
	check(t, err)
	stale := azcore.ETag(`"stale"`)
	for name, x := range map[string]struct {
		add  func(*azcosmos.TransactionalBatch)
		code int32
	}{
		"conflict": {func(b *azcosmos.TransactionalBatch) {
			b.CreateItem([]byte(`{"id":"there","pk":"a"}`), nil)
		}, 409},
		"not found": {func(b *azcosmos.TransactionalBatch) { b.ReadItem("absent", nil) }, 404},
		"etag": {func(b *azcosmos.TransactionalBatch) {
			b.ReplaceItem("there", []byte(`{"id":"there","pk":"a"}`), &azcosmos.TransactionalBatchItemOptions{
				IfMatchETag: &stale})
		}, 412},
		"other key": {func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"x","pk":"b"}`), nil) }, 400},
		"no id":     {func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"pk":"a"}`), nil) }, 400},
	} {
		b := c.NewTransactionalBatch(str("a"))
		b.CreateItem([]byte(`{"id":"new","pk":"a"}`), nil)
		x.add(&b)
		b.DeleteItem("there", nil)
		r, err := c.ExecuteTransactionalBatch(ctx, b, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Success || len(r.OperationResults) != 3 || r.OperationResults[0].StatusCode != 424 ||
			r.OperationResults[1].StatusCode != x.code || r.OperationResults[2].StatusCode != 424 {
			t.Errorf("%s: %+v", name, r)
		}
		_, err = c.ReadItem(ctx, str("a"), "new", nil)
		refused(t, err, 404, "NotFound")
		_, err = c.ReadItem(ctx, str("a"), "there", nil)
		check(t, err)
	}
}

func TestPatch(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a","n":1,"gone":true,"list":[1]}`), nil)
	check(t, err)
	p := azcosmos.PatchOperations{}
	p.AppendAdd("/new", "x")
	p.AppendSet("/n", 5)
	p.AppendIncrement("/n", 2)
	p.AppendReplace("/list", []int{7})
	p.AppendRemove("/gone")
	p.SetCondition("from c where c.n = 1")
	r, err := c.PatchItem(ctx, str("a"), "1", p, nil)
	check(t, err)
	m := object(t, r.Value)
	if m["new"] != "x" || m["n"] != 7.0 || m["gone"] != nil || len(m["list"].([]any)) != 1 ||
		r.RawResponse.StatusCode != 200 {
		t.Fatalf("%v", m)
	}
	_, err = c.PatchItem(ctx, str("a"), "1", p, nil)
	refused(t, err, 412, "PreconditionFailed")

	b := c.NewTransactionalBatch(str("a"))
	q := azcosmos.PatchOperations{}
	q.AppendIncrement("/n", 1)
	b.PatchItem("1", q, nil)
	b.PatchItem("1", q, nil)
	br, err := c.ExecuteTransactionalBatch(ctx, b, nil)
	check(t, err)
	g, err := c.ReadItem(ctx, str("a"), "1", nil)
	check(t, err)
	if !br.Success || object(t, g.Value)["n"] != 9.0 {
		t.Fatalf("%+v %s", br, g.Value)
	}
}

// Many concurrent writers increment one counter: no increment is lost.
func TestPatchRace(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a","n":0}`), nil)
	check(t, err)
	const writers, each = 8, 20
	errs := make(chan error, writers)
	for range writers {
		go func() {
			p := azcosmos.PatchOperations{}
			p.AppendIncrement("/n", 1)
			for range each {
				if _, err := c.PatchItem(ctx, str("a"), "1", p, nil); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		check(t, <-errs)
	}
	r, err := c.ReadItem(ctx, str("a"), "1", nil)
	check(t, err)
	if n := object(t, r.Value)["n"]; n != float64(writers*each) {
		t.Fatalf("%v increments of %d", n, writers*each)
	}
}

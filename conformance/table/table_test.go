package table

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// throughput adds the header that sets a table's throughput, because aztables has no option for it.
type throughput string

func (h throughput) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("x-ms-cosmos-throughput", string(h))
	return r.Next()
}

// TestWorkedExample: the table people is created if absent with throughput 800, and entity (Smith, Ben) is read.
func TestWorkedExample(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		o := s.options()
		o.PerCallPolicies = append(o.PerCallPolicies, throughput("800"))
		cred, err := aztables.NewSharedKeyCredential(account, key)
		ok(t, err)
		svc, err := aztables.NewServiceClientWithSharedKey(s.address(style), cred, o)
		ok(t, err)
		people := svc.NewClient("people")
		_, err = people.CreateTable(bg, nil)
		ok(t, err)
		_, err = people.CreateTable(bg, nil)
		wantCode(t, err, 409, "TableAlreadyExists") // SDKs implement "if absent" with this code
		c, err := s.engine.Container("TablesDB", "people")
		ok(t, err)
		if got := c.Spec().Throughput.Manual; got != 800 {
			t.Errorf("throughput %d, want 800", got)
		}
		_, err = people.AddEntity(
			bg,
			entity(t, map[string]any{"PartitionKey": "Smith", "RowKey": "Ben", "Email": "Ben@contoso.com",
				"PhoneNumber": "425-555-0102"}), nil)
		ok(t, err)
		if e := get(t, people, "Smith", "Ben"); e["Email"] != "Ben@contoso.com" || e["PartitionKey"] != "Smith" ||
			e["RowKey"] != "Ben" {
			t.Errorf("got %v", e)
		}
	})
}

func TestTables(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		svc := s.service(t, style)
		for _, name := range []string{"beta", "alpha", "Gamma"} {
			_, err := svc.CreateTable(bg, name, nil)
			ok(t, err)
		}
		names := func(o *aztables.ListTablesOptions) (out []string, pages int) {
			for p := svc.NewListTablesPager(o); p.More(); pages++ {
				page, err := p.NextPage(bg)
				ok(t, err)
				for _, tb := range page.Tables {
					out = append(out, *tb.Name)
				}
			}
			return out, pages
		}
		if got, _ := names(nil); !slices.Equal(got, []string{"Gamma", "alpha", "beta"}) {
			t.Errorf("all: %v", got)
		}
		if got, pages := names(&aztables.ListTablesOptions{Top: ptr(int32(1))}); len(got) != 3 || pages != 3 {
			t.Errorf("page by page: %v in %d pages", got, pages)
		}
		if got, _ := names(&aztables.ListTablesOptions{Filter: ptr("TableName eq 'beta'")}); !slices.Equal(
			got, []string{"beta"}) {
			t.Errorf("filter: %v", got)
		}
		_, err := svc.DeleteTable(bg, "beta", nil)
		ok(t, err)
		_, err = svc.DeleteTable(bg, "beta", nil)
		wantCode(t, err, 404, "ResourceNotFound")
		_, err = svc.CreateTable(bg, "x", nil)
		wantCode(t, err, 400, "OutOfRangeInput")
		_, err = svc.NewClient("beta").GetEntity(bg, "p", "r", nil)
		wantCode(t, err, 404, "TableNotFound")
	})
}

// TestTypes: values of every Edm type survive a round trip through the client's typed entity.
func TestTypes(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "types")
		when := time.Date(2024, 3, 4, 5, 6, 7, 123456700, time.UTC)
		in := aztables.EDMEntity{
			Entity: aztables.Entity{PartitionKey: "p", RowKey: "r"},
			Properties: map[string]any{
				"Bool": true, "Int32": int32(-5), "Int64": aztables.EDMInt64(1 << 60), "Double": 1.5, "Whole": 2.0, "String": "größe \"x\"",
				"Binary": aztables.EDMBinary{0, 1, 255},
				"Guid":   aztables.EDMGUID("6f1ed002-ab55-4d5a-b7ee-3ff5ef60ba1a"),
				"When":   aztables.EDMDateTime(when),
			},
		}
		b, err := in.MarshalJSON()
		ok(t, err)
		_, err = c.AddEntity(bg, b, nil)
		ok(t, err)
		r, err := c.GetEntity(bg, "p", "r", nil)
		ok(t, err)
		var out aztables.EDMEntity
		ok(t, out.UnmarshalJSON(r.Value))
		for name, want := range in.Properties {
			got := out.Properties[name]
			if name == "When" {
				if g := time.Time(got.(aztables.EDMDateTime)); !g.Equal(when) {
					t.Errorf("%s: got %v, want %v", name, g, when)
				}
				continue
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v (%T), want %v (%T)", name, got, got, want, want)
			}
		}
		if out.ETag == "" || time.Time(out.Timestamp).IsZero() {
			t.Errorf("etag %q, timestamp %v", out.ETag, time.Time(out.Timestamp))
		}
	})
}

func TestWrites(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "writes")
		add := func(m map[string]any) error {
			m["PartitionKey"] = "p"
			_, err := c.AddEntity(bg, entity(t, m), nil)
			return err
		}
		ok(t, add(map[string]any{"RowKey": "1", "a": 1, "b": 1}))
		wantCode(t, add(map[string]any{"RowKey": "1"}), 409, "EntityAlreadyExists")

		merge := map[string]any{"PartitionKey": "p", "RowKey": "1", "b": 2, "c": 3}
		u, err := c.UpdateEntity(bg, entity(t, merge), &aztables.UpdateEntityOptions{
			UpdateMode: aztables.UpdateModeMerge})
		ok(t, err)
		if e := get(t, c, "p", "1"); e["a"] != 1.0 || e["b"] != 2.0 || e["c"] != 3.0 {
			t.Errorf("merge: %v", e)
		}
		replace := entity(t, map[string]any{"PartitionKey": "p", "RowKey": "1", "z": 9})
		stale := u.ETag
		_, err = c.UpdateEntity(bg, replace, &aztables.UpdateEntityOptions{
			UpdateMode: aztables.UpdateModeReplace, IfMatch: &stale})
		ok(t, err)
		if e := get(t, c, "p", "1"); e["a"] != nil || e["z"] != 9.0 {
			t.Errorf("replace: %v", e)
		}
		_, err = c.UpdateEntity(bg, replace, &aztables.UpdateEntityOptions{
			UpdateMode: aztables.UpdateModeReplace, IfMatch: &stale})
		wantCode(t, err, 412, "UpdateConditionNotSatisfied")
		_, err = c.DeleteEntity(bg, "p", "1", &aztables.DeleteEntityOptions{IfMatch: &stale})
		wantCode(t, err, 412, "UpdateConditionNotSatisfied")

		absent := entity(t, map[string]any{"PartitionKey": "p", "RowKey": "2", "n": 1})
		for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
			_, err = c.UpdateEntity(bg, absent, &aztables.UpdateEntityOptions{UpdateMode: mode})
			wantCode(t, err, 404, "ResourceNotFound")
		}
		_, err = c.UpsertEntity(bg, absent, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
		ok(t, err)
		_, err = c.UpsertEntity(bg, entity(t, map[string]any{"PartitionKey": "p", "RowKey": "2", "m": 1}),
			&aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		ok(t, err)
		if e := get(t, c, "p", "2"); e["n"] != nil || e["m"] != 1.0 {
			t.Errorf("insert or replace: %v", e)
		}
		_, err = c.DeleteEntity(bg, "p", "2", nil)
		ok(t, err)
		_, err = c.DeleteEntity(bg, "p", "2", nil)
		wantCode(t, err, 404, "ResourceNotFound")
		_, err = c.GetEntity(bg, "p", "2", nil)
		wantCode(t, err, 404, "ResourceNotFound")
	})
}

// TestKeys: keys with characters that need escapes in addresses.
func TestKeys(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "keys")
		for _, k := range []string{"", " ", "a b", "ä€😀", "100%", "a+b", "a,b", "(x)", "a=b&c", "{}[]", "\"q\"",
			"a%20b", "."} {
			_, err := c.AddEntity(bg, entity(t, map[string]any{"PartitionKey": "p" + k, "RowKey": k, "v": k}), nil)
			ok(t, err)
			if e := get(t, c, "p"+k, k); e["v"] != k {
				t.Errorf("%q: %v", k, e)
			}
			_, err = c.DeleteEntity(bg, "p"+k, k, nil)
			ok(t, err)
		}
		for _, k := range []string{"a/b", "a\\b", "a#b", "a?b", "a\u0001", "a\u0085"} {
			_, err := c.AddEntity(bg, entity(t, map[string]any{"PartitionKey": "p", "RowKey": k}), nil)
			wantCode(t, err, 400, "OutOfRangeInput")
		}
	})
}

// TestQuotes: aztables doubles quotes in the keys of typed entities in bodies, but not in the addresses of
// transactions. The address decides. A quote in it that can't end its key is part of the key.
func TestQuotes(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "quotes")
		typed, err := aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: "O'Brien", RowKey: "'1'"},
			Properties: map[string]any{"n": int32(1)}}.MarshalJSON()
		ok(t, err)
		plain := entity(t, map[string]any{"PartitionKey": "O'Brien", "RowKey": "it's 2", "n": 2})
		_, err = c.SubmitTransaction(bg, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeInsertReplace, Entity: typed},
			{ActionType: aztables.TransactionTypeInsertMerge, Entity: plain},
		}, nil)
		ok(t, err)
		_, err = c.UpsertEntity(bg, plain, nil)
		ok(t, err)
		for i, rk := range []string{"'1'", "it's 2"} {
			if e := get(t, c, "O'Brien", rk); e["n"] != float64(i+1) || e["RowKey"] != rk {
				t.Errorf("%s: %v", rk, e)
			}
		}
		if keys, _ := list(t, c, &aztables.ListEntitiesOptions{Filter: ptr("PartitionKey eq 'O''Brien'")}); len(
			keys) != 2 {
			t.Errorf("filter: %v", keys)
		}
	})
}

func TestQueries(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "queries")
		for i := range 60 {
			_, err := c.AddEntity(
				bg,
				entity(t, map[string]any{"PartitionKey": fmt.Sprintf("p%d", i%3), "RowKey": fmt.Sprintf("%03d", i),
					"n": i, "even": i%2 == 0, "half": float64(i) + 0.5, "name": fmt.Sprintf("it's %d", i)}), nil)
			ok(t, err)
		}
		for filter, want := range map[string]int{
			"":                                   60,
			"PartitionKey eq 'p1'":               20,
			"PartitionKey eq 'p1' and n lt 10":   3,
			"n ge 10 and n lt 15":                5,
			"even and PartitionKey ne 'p0'":      20,
			"not even":                           30,
			"half gt 57.5":                       2,
			"name eq 'it''s 7'":                  1,
			"RowKey ge '055' or RowKey eq '001'": 6,
			"n eq 5L":                            0, // n is Int32
			"PartitionKey gt 'p0' and PartitionKey lt 'p2'": 20,
		} {
			if got, _ := list(t, c, &aztables.ListEntitiesOptions{Filter: &filter}); len(got) != want {
				t.Errorf("%s: %d entities, want %d: %v", filter, len(got), want, got)
			}
		}
		keys, pages := list(t, c, &aztables.ListEntitiesOptions{
			Filter: ptr("PartitionKey eq 'p2'"), Top: ptr(int32(7))})
		if len(keys) != 20 || pages != 3 || !slices.IsSorted(keys) {
			t.Errorf("pages of 7: %d keys in %d pages: %v", len(keys), pages, keys)
		}
		all, pages := list(t, c, &aztables.ListEntitiesOptions{Top: ptr(int32(11))})
		slices.Sort(all)
		if len(slices.Compact(all)) != 60 || pages != 6 {
			t.Errorf("pages of 11: %d keys in %d pages", len(all), pages)
		}
		p := c.NewListEntitiesPager(&aztables.ListEntitiesOptions{
			Filter: ptr("RowKey eq '007'"), Select: ptr("n,missing"), Format: ptr(aztables.MetadataFormatNone)})
		page, err := p.NextPage(bg)
		ok(t, err)
		if len(page.Entities) != 1 || string(page.Entities[0]) != `{"n":7}` {
			t.Errorf("select: %s", page.Entities)
		}
		_, err = c.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: ptr("n eq")}).NextPage(bg)
		wantCode(t, err, 400, "InvalidInput")
		_, err = c.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: ptr("startswith(name,'x')")}).NextPage(bg)
		wantCode(t, err, 501, "NotImplemented")
	})
}

func TestTransactions(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "txs")
		e := func(rk string, n int) []byte {
			return entity(t, map[string]any{"PartitionKey": "p", "RowKey": rk, "n": n})
		}
		var hundred []aztables.TransactionAction
		for i := range 100 {
			hundred = append(hundred, aztables.TransactionAction{
				ActionType: aztables.TransactionTypeAdd, Entity: e(fmt.Sprintf("%03d", i), i)})
		}
		_, err := c.SubmitTransaction(bg, hundred, nil)
		ok(t, err)
		_, err = c.SubmitTransaction(bg, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeUpdateMerge,
				Entity: entity(t, map[string]any{"PartitionKey": "p", "RowKey": "000", "m": 1})},
			{ActionType: aztables.TransactionTypeUpdateReplace, Entity: e("001", 100)},
			{ActionType: aztables.TransactionTypeDelete, Entity: e("002", 0)},
			{ActionType: aztables.TransactionTypeInsertReplace, Entity: e("new", 1)},
			{ActionType: aztables.TransactionTypeInsertMerge, Entity: e("newer", 1)},
		}, nil)
		ok(t, err)
		if m := get(t, c, "p", "000"); m["n"] != 0.0 || m["m"] != 1.0 {
			t.Errorf("merged: %v", m)
		}
		_, err = c.GetEntity(bg, "p", "002", nil)
		wantCode(t, err, 404, "ResourceNotFound")

		_, err = c.SubmitTransaction(bg, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeDelete, Entity: e("003", 0)},
			{ActionType: aztables.TransactionTypeAdd, Entity: e("004", 0)}, // exists
		}, nil)
		wantCode(t, err, 202, "EntityAlreadyExists")
		get(t, c, "p", "003") // it still exists
		if keys, _ := list(t, c, nil); len(keys) != 101 {
			t.Errorf("%d entities, want 101", len(keys))
		}
	})
}

func TestCredentials(t *testing.T) {
	s := start(t)
	wrong, err := aztables.NewSharedKeyCredential(account, "AAAA")
	ok(t, err)
	svc, err := aztables.NewServiceClientWithSharedKey(s.address("root"), wrong, s.options())
	ok(t, err)
	_, err = svc.CreateTable(bg, "people", nil)
	wantCode(t, err, 403, "AuthenticationFailed")

	none, err := aztables.NewServiceClientWithNoCredential(s.address("root"), s.options())
	ok(t, err)
	_, err = none.CreateTable(bg, "people", nil)
	wantCode(t, err, 401, "NoAuthenticationInformation")
}

// TestSAS: account and table signatures that the client makes itself.
func TestSAS(t *testing.T) {
	s := start(t)
	c := s.table(t, "root", "sas")
	_, err := c.AddEntity(bg, entity(t, map[string]any{"PartitionKey": "b", "RowKey": "1"}), nil)
	ok(t, err)
	_, err = c.AddEntity(bg, entity(t, map[string]any{"PartitionKey": "c", "RowKey": "1"}), nil)
	ok(t, err)
	cred, err := aztables.NewSharedKeyCredential(account, key)
	ok(t, err)
	now := time.Now()
	acc, err := aztables.AccountSASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: now.Add(time.Hour), Services: "t",
		Permissions:   (&aztables.AccountSASPermissions{Read: true, List: true}).String(),
		ResourceTypes: (&aztables.AccountSASResourceTypes{Object: true, Container: true, Service: true}).String(),
	}.Sign(cred)
	ok(t, err)
	svc, err := aztables.NewServiceClientWithNoCredential(s.address("root")+"/?"+acc.Encode(), s.options())
	ok(t, err)
	if keys, _ := list(t, svc.NewClient("sas"), nil); len(keys) != 2 {
		t.Errorf("account SAS: %v", keys)
	}
	_, err = svc.CreateTable(bg, "other", nil)
	wantCode(t, err, 403, "AuthorizationPermissionMismatch")

	tab, err := aztables.SASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: now.Add(time.Hour), TableName: "sas", StartPartitionKey: "b", StartRowKey: "0", EndPartitionKey: "b", EndRowKey: "9",
		Permissions: (&aztables.SASPermissions{Read: true, Add: true}).String(),
	}.Sign(cred)
	ok(t, err)
	// aztables signs the range but omits it in the address.
	one, err := aztables.NewClientWithNoCredential(s.address("root")+"/sas?"+tab+"&spk=b&srk=0&epk=b&erk=9",
		s.options())
	ok(t, err)
	if keys, _ := list(t, one, nil); len(keys) != 1 {
		t.Errorf("table SAS with a range: %v", keys)
	}
	_, err = one.AddEntity(bg, entity(t, map[string]any{"PartitionKey": "b", "RowKey": "2"}), nil)
	ok(t, err)
	_, err = one.AddEntity(bg, entity(t, map[string]any{"PartitionKey": "z", "RowKey": "2"}), nil)
	wantCode(t, err, 403, "AuthorizationPermissionMismatch")
	_, err = one.DeleteEntity(bg, "b", "1", nil)
	wantCode(t, err, 403, "AuthorizationPermissionMismatch")
}

// TestAccessPolicies: a table's access control list, and a signature whose permissions come from it.
func TestAccessPolicies(t *testing.T) {
	eachStyle(t, func(t *testing.T, s *server, style string) {
		c := s.table(t, style, "acl")
		expiry := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		_, err := c.SetAccessPolicy(bg, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{
			{ID: ptr("readers"), AccessPolicy: &aztables.AccessPolicy{Expiry: &expiry, Permission: ptr("r")}},
		}})
		ok(t, err)
		r, err := c.GetAccessPolicy(bg, nil)
		ok(t, err)
		if len(r.SignedIdentifiers) != 1 || *r.SignedIdentifiers[0].ID != "readers" ||
			*r.SignedIdentifiers[0].AccessPolicy.Permission != "r" ||
			!r.SignedIdentifiers[0].AccessPolicy.Expiry.Equal(expiry) {
			t.Errorf("got %+v", r.SignedIdentifiers)
		}
		six := make([]*aztables.SignedIdentifier, 6)
		for i := range six {
			six[i] = &aztables.SignedIdentifier{
				ID: ptr(fmt.Sprint(i)), AccessPolicy: &aztables.AccessPolicy{
					Expiry: &expiry, Start: &expiry, Permission: ptr("r")}}
		}
		if _, err = c.SetAccessPolicy(bg, &aztables.SetAccessPolicyOptions{TableACL: six}); err == nil {
			t.Error("six identifiers: no error")
		}
	})
}

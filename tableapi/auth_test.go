package tableapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const now = "Mon, 04 Mar 2024 05:06:07 GMT" // the time of newServer's clock

func signature(text string) string {
	m := hmac.New(sha256.New, testKey)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// answer sends one request and returns status and error code.
func answer(s *Server, method, target string, header map[string]string) (int, string) {
	r := httptest.NewRequest(method, target, nil)
	r.RequestURI = target
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Header().Get("x-ms-error-code")
}

func TestSharedKey(t *testing.T) {
	s, _ := newServer(t, true)
	lite := func(text string) map[string]string {
		return map[string]string{"x-ms-date": now, "Authorization": "SharedKeyLite localhost:" + signature(text)}
	}
	for name, c := range map[string]struct {
		target string
		header map[string]string
		status int
		code   string
	}{
		"lite":        {"/Tables", lite(now + "\n/localhost/Tables"), 200, ""},
		"lite, path":  {"/localhost/Tables", lite(now + "\n/localhost/localhost/Tables"), 200, ""},
		"lite, query": {"/Tables?$top=1", lite(now + "\n/localhost/Tables"), 200, ""},
		"lite, comp":  {"/t?comp=acl&x=y", lite(now + "\n/localhost/t?comp=acl"), 404, "TableNotFound"},
		"escaped path": {"/t(PartitionKey='a%20b',RowKey='%C3%A4')",
			lite(now + "\n/localhost/t(PartitionKey='a%20b',RowKey='%C3%A4')"), 404, "TableNotFound"},
		"other resource": {"/Tables", lite(now + "\n/localhost/Other"), 403, "AuthenticationFailed"},
		"other date":     {"/Tables", lite("x\n/localhost/Tables"), 403, "AuthenticationFailed"},
		"no credentials": {"/Tables", nil, 401, "NoAuthenticationInformation"},
		"no scheme":      {"/Tables", map[string]string{"Authorization": "x"}, 400, "InvalidAuthenticationInfo"},
		"unknown scheme": {"/Tables", map[string]string{"Authorization": "Basic eDp5"}, 400,
			"InvalidAuthenticationInfo"},
		"no colon": {"/Tables", map[string]string{"Authorization": "SharedKey localhost"}, 400,
			"InvalidAuthenticationInfo"},
		"bearer": {"/Tables", map[string]string{"Authorization": "Bearer x"}, 403, "AuthenticationFailed"},
		"no date": {"/Tables", map[string]string{"Authorization": "SharedKeyLite localhost:" + signature("")},
			403, "AuthenticationFailed"},
		"other account": {
			"/Tables", map[string]string{
				"x-ms-date": now, "Authorization": "SharedKeyLite x:" + signature(now+"\n/x/Tables")}, 403,
			"AuthenticationFailed"},
		"not base64": {
			"/Tables", map[string]string{"x-ms-date": now, "Authorization": "SharedKeyLite localhost:?"}, 403,
			"AuthenticationFailed"},
		"full": {
			"/Tables", map[string]string{
				"x-ms-date": now, "Authorization": "SharedKey localhost:" +
					signature("GET\n\n\n"+now+"\n/localhost/Tables")}, 200, ""},
		"full, type, MD5": {
			"/Tables", map[string]string{
				"Date": now, "Content-Type": "a/b", "Content-MD5": "m", "Authorization": "SharedKey localhost:" +
					signature("GET\nm\na/b\n"+now+"\n/localhost/Tables")}, 200, ""},
		"skew of 16 min": {
			"/Tables", map[string]string{
				"x-ms-date": "Mon, 04 Mar 2024 04:50:06 GMT", "Authorization": "SharedKeyLite localhost:" +
					signature("Mon, 04 Mar 2024 04:50:06 GMT\n/localhost/Tables")}, 403, "AuthenticationFailed"},
		"skew of 14 min": {
			"/Tables", map[string]string{
				"x-ms-date": "Mon, 04 Mar 2024 04:52:07 GMT", "Authorization": "SharedKeyLite localhost:" +
					signature("Mon, 04 Mar 2024 04:52:07 GMT\n/localhost/Tables")}, 200, ""},
	} {
		if status, code := answer(s, "GET", c.target, c.header); status != c.status || code != c.code {
			t.Errorf("%s: got %d %s, want %d %s", name, status, code, c.status, c.code)
		}
	}
}

// sas signs the parameters as an account SAS, or as a table SAS if they have tn, and returns the query string.
func sas(v url.Values) string {
	var text string
	if tn := v.Get("tn"); tn != "" {
		text = strings.Join([]string{v.Get("sp"), v.Get("st"), v.Get("se"), "/table/localhost/" + strings.ToLower(tn),
			v.Get("si"), v.Get("sip"),
			v.Get("spr"), v.Get("sv"), v.Get("spk"), v.Get("srk"), v.Get("epk"), v.Get("erk")}, "\n")
	} else {
		text = strings.Join([]string{testAccount, v.Get("sp"), v.Get("ss"), v.Get("srt"), v.Get("st"), v.Get("se"),
			v.Get("sip"), v.Get("spr"),
			v.Get("sv"), ""}, "\n")
	}
	v.Set("sig", signature(text))
	return v.Encode()
}

func TestSAS(t *testing.T) {
	s, clk := newServer(t, false)
	const acl = "<SignedIdentifiers><SignedIdentifier><Id>all</Id>" +
		"<AccessPolicy><Expiry>2024-03-05T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>" +
		"<SignedIdentifier><Id>old</Id><AccessPolicy><Expiry>2024-03-01T00:00:00Z</Expiry></AccessPolicy>" +
		"</SignedIdentifier></SignedIdentifiers>"
	for _, in := range []string{"POST /Tables\n~\n{\"TableName\":\"one\"}",
		"POST /one\n~\n{\"PartitionKey\":\"b\",\"RowKey\":\"5\"}"} {
		if out := wire(t, s, in); !strings.HasPrefix(out, "201") {
			t.Fatal(out)
		}
	}
	if out := wire(t, s, "PUT /one?comp=acl\n~\n"+acl); !strings.HasPrefix(out, "204") {
		t.Fatal(out)
	}
	s.o.Auth = true
	account := func(kv ...string) url.Values {
		v := url.Values{"sv": {"2019-02-02"}, "ss": {"t"}, "srt": {"sco"}, "sp": {"rwdlacu"}, "se": {"2024-03-05T00:00:00Z"}}
		for i := 0; i < len(kv); i += 2 {
			v.Set(kv[i], kv[i+1])
		}
		return v
	}
	table := func(kv ...string) url.Values {
		v := url.Values{"sv": {"2019-02-02"}, "tn": {"One"}, "sp": {"raud"}, "se": {"2024-03-05T00:00:00Z"}}
		for i := 0; i < len(kv); i += 2 {
			v.Set(kv[i], kv[i+1])
		}
		return v
	}
	const key = "(PartitionKey='b',RowKey='5')"
	for name, c := range map[string]struct {
		method, path string
		v            url.Values
		status       int
		code         string
	}{
		"account":                {"GET", "/one()", account(), 200, ""},
		"account, tables":        {"GET", "/Tables", account("srt", "c", "sp", "l"), 200, ""},
		"account, blobs only":    {"GET", "/one()", account("ss", "b"), 403, "AuthorizationServiceMismatch"},
		"account, no objects":    {"GET", "/one()", account("srt", "sc"), 403, "AuthorizationResourceTypeMismatch"},
		"account, no containers": {"GET", "/Tables", account("srt", "o"), 403, "AuthorizationResourceTypeMismatch"},
		"account, no read":       {"GET", "/one()", account("sp", "wdlacu"), 403, "AuthorizationPermissionMismatch"},
		"account, no delete": {"DELETE", "/Tables('one')", account("sp", "rwlacu"), 403,
			"AuthorizationPermissionMismatch"},
		"expired":          {"GET", "/one()", account("se", "2024-03-04T05:00:00Z"), 403, "AuthenticationFailed"},
		"not yet":          {"GET", "/one()", account("st", "2024-03-04T06:00:00Z"), 403, "AuthenticationFailed"},
		"https only":       {"GET", "/one()", account("spr", "https"), 403, "AuthorizationProtocolMismatch"},
		"here":             {"GET", "/one()", account("sip", "192.0.2.0-192.0.2.9"), 200, ""},
		"elsewhere":        {"GET", "/one()", account("sip", "10.0.0.1"), 403, "AuthorizationSourceIPMismatch"},
		"table":            {"GET", "/one" + key, table(), 200, ""},
		"table, other":     {"GET", "/two" + key, table(), 404, "TableNotFound"},
		"table, no tables": {"GET", "/Tables", table(), 403, "AuthorizationPermissionMismatch"},
		"table, no read":   {"GET", "/one" + key, table("sp", "aud"), 403, "AuthorizationPermissionMismatch"},
		"table, in range":  {"GET", "/one" + key, table("spk", "b", "srk", "5", "epk", "b", "erk", "5"), 200, ""},
		"table, before": {"GET", "/one" + key, table("spk", "b", "srk", "6"), 403,
			"AuthorizationPermissionMismatch"},
		"table, behind": {"GET", "/one" + key, table("epk", "b", "erk", "4"), 403,
			"AuthorizationPermissionMismatch"},
		"table, whole partition": {"GET", "/one" + key, table("spk", "b", "epk", "b"), 200, ""},
		"policy":                 {"GET", "/one" + key, table("si", "all", "sp", "", "se", ""), 200, ""},
		"policy, no add": {"POST", "/one", table("si", "all", "sp", "", "se", ""), 403,
			"AuthorizationPermissionMismatch"},
		"policy, twice":   {"GET", "/one" + key, table("si", "all", "se", ""), 403, "AuthenticationFailed"},
		"policy, expired": {"GET", "/one" + key, table("si", "old", "se", ""), 403, "AuthenticationFailed"},
		"policy, missing": {"GET", "/one" + key, table("si", "none", "sp", "", "se", ""), 403,
			"AuthenticationFailed"},
		"policy of an account":  {"GET", "/one" + key, account("si", "none"), 200, ""},
		"table, row keys alone": {"GET", "/one" + key, table("srk", "9"), 403, "AuthenticationFailed"},
		"table, last row alone": {"GET", "/one" + key, table("erk", "1"), 403, "AuthenticationFailed"},
		"table, empty key":      {"GET", "/one" + key, table("epk", "", "erk", "1"), 403, "AuthenticationFailed"},
		"no protocol":           {"GET", "/one()", account("spr", "none"), 403, "AuthenticationFailed"},
		"http alone":            {"GET", "/one()", account("spr", "http"), 403, "AuthenticationFailed"},
		"both protocols":        {"GET", "/one()", account("spr", "https,http"), 200, ""},
		"no ACL by SAS":         {"GET", "/one", account("comp", "acl"), 403, "AuthorizationPermissionMismatch"},
	} {
		status, code := answer(s, c.method, c.path+"?"+sas(c.v), nil)
		if status != c.status || code != c.code {
			t.Errorf("%s: got %d %s, want %d %s", name, status, code, c.status, c.code)
		}
	}
	v := account()
	q := strings.Replace(sas(v), "sp=rwdlacu", "sp=rwdlac", 1)
	if status, code := answer(s, "GET", "/one()?"+q, nil); status != 403 || code != "AuthenticationFailed" {
		t.Errorf("changed after signing: got %d %s", status, code)
	}
	for _, twice := range []string{"sig=" + url.QueryEscape("x"), "se=2024-03-05T00%3A00%3A00Z", "sp=r",
		"spr=https", "Sig=x"} {
		if status, code := answer(s, "GET", "/one()?"+sas(account("spr", "https,http"))+"&"+twice, nil); status !=
			403 || code != "AuthenticationFailed" {
			t.Errorf("with a second %s: got %d %s", twice, status, code)
		}
	}
	clk.Advance(24 * time.Hour)
	if status, _ := answer(s, "GET", "/one()?"+sas(account()), nil); status != http.StatusForbidden {
		t.Errorf("a day later: got %d", status)
	}
}

// TestSASOfOlderVersions: what is signed of a table grew twice ("Create a service SAS"): the service's name on
// 2015-02-21, addresses and protocols on 2015-04-05.
func TestSASOfOlderVersions(t *testing.T) {
	s, _ := newServer(t, false)
	for _, in := range []string{"POST /Tables\n~\n{\"TableName\":\"one\"}",
		"POST /one\n~\n{\"PartitionKey\":\"b\",\"RowKey\":\"5\"}"} {
		if out := wire(t, s, in); !strings.HasPrefix(out, "201") {
			t.Fatal(out)
		}
	}
	s.o.Auth = true
	const expiry = "2024-03-05T00:00:00Z"
	const (
		first  = "r\n\n" + expiry + "\n/localhost/one\n\n%s\n\n\n\n"
		second = "r\n\n" + expiry + "\n/table/localhost/one\n\n%s\n\n\n\n"
		third  = "r\n\n" + expiry + "\n/table/localhost/one\n\n\n\n%s\n\n\n\n"
	)
	for version, text := range map[string]string{"2012-02-12": first, "2013-08-15": first, "2014-02-14": first,
		"2015-02-21": second, "2015-04-05": third, "2015-07-08": third, "2019-02-02": third} {
		for _, other := range []string{first, second, third} {
			status := http.StatusForbidden
			if other == text {
				status = http.StatusOK
			}
			v := url.Values{"sv": {version}, "tn": {"One"}, "sp": {"r"}, "se": {expiry},
				"sig": {signature(fmt.Sprintf(other, version))}}
			if got, _ := answer(s, "GET", "/one()?"+v.Encode(), nil); got != status {
				t.Errorf("%s, signed %q: got %d, want %d", version, other, got, status)
			}
		}
	}
}

// TestFormOfRefusals: who asks for JSON gets the code of a refusal as JSON, with and without metadata. Who asks for
// XML, or for nothing, gets it as XML.
func TestFormOfRefusals(t *testing.T) {
	s, _ := newServer(t, true)
	for accept, json := range map[string]bool{"": false, "*/*": false, "application/xml": false,
		"application/atom+xml,application/xml": false, "application/json": true,
		"application/json;odata=nometadata": true, "application/json; odata=minimalmetadata": true} {
		r := httptest.NewRequest("GET", "/Tables", nil)
		r.RequestURI = "/Tables"
		r.Header.Set("Authorization", "SharedKeyLite localhost:"+signature("something else"))
		r.Header.Set("X-Ms-Date", now)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		body := w.Body.String()
		start := `<?xml version="1.0" encoding="utf-8"?><Error><Code>AuthenticationFailed</Code>`
		if json {
			start = `{"odata.error":{"code":"AuthenticationFailed","message":{"lang":"en-US","value":"Server failed`
		}
		if w.Code != http.StatusForbidden || !strings.HasPrefix(body, start) || w.Header().Get("Server") == "" ||
			strings.Contains(w.Header().Get("Content-Type"), "json") != json {
			t.Errorf("Accept %q: got %d %s %s", accept, w.Code, w.Header().Get("Content-Type"), body)
		}
	}
}

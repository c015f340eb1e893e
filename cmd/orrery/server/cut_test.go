package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A reply that a test has cut has its status and half of its body. After the write, the item is there.
func TestCutReply(t *testing.T) {
	c := Ephemeral()
	c.TestControls, c.Auth = true, false
	s := start1(t, c)
	docs := "http://" + s.Addr(NoSQL) + "/dbs/d/colls/c/docs"
	send := func(verb, target, body, header string) (code int, text string, err error) {
		r, err := http.NewRequest(verb, target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("x-ms-version", "2018-12-31")
		r.Header.Set("x-ms-documentdb-partitionkey", `["p"]`)
		if header != "" {
			r.Header.Set("x-orrery-fault", header)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return res.StatusCode, string(b), err
	}
	newDatabase(t, s, "d")
	for _, step := range []struct {
		target, body string
		cut          bool
		half         string // with which the body begins, and is cut
	}{
		{"http://" + s.Addr(NoSQL) + "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/p"],"kind":"Hash"}}`, false,
			`{"id":"c",`},
		{docs, `{"id":"1","p":"p"}`, true, `{"id":"1",`},
		{docs, `{"id":"2","p":"p"}`, false, `{"id":"2",`},
		{"http://" + s.Addr(Table) + "/localhost/Tables", `{"TableName":"things"}`, true, `{"odata.metadata":`},
	} {
		header := ""
		if step.cut {
			header = "cut"
		}
		code, text, err := send("POST", step.target, step.body, header)
		cut := errors.Is(err, io.ErrUnexpectedEOF)
		if cut != step.cut || code != 201 || !strings.HasPrefix(text, step.half) {
			t.Errorf("%s %s: %d %q %v", step.target, step.body, code, text, err)
		}
	}
	if code, text, err := send("GET", docs+"/1", "", ""); code != 200 || err != nil {
		t.Errorf("the item: %d %s %v", code, text, err)
	}
	if code, text, err := send("GET", docs+"/none", "", "cut"); err == nil {
		t.Errorf("the reply of an error: %d %q", code, text)
	}
}

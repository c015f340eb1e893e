package mongoapi

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHTTP: a browser or a probe is told that it asks the wrong port, and the connection ends.
func TestHTTP(t *testing.T) {
	_, addr := serve(t, Options{Auth: true}, nil)
	c := connect(t, addr)
	_ = c.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(text), "MongoDB over HTTP") {
		t.Errorf("%v, %q, %v", res.Status, text, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

// TestNamesOfOtherAPIs: databases of another API whose names differ only in case are both used.
func TestNamesOfOtherAPIs(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	for _, name := range []string{"shop", "Shop"} {
		if _, err := s.eng.EnsureDatabase(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int32{"shop": 0, "Shop": 0, "SHOP": 13297} {
		code, _ := c.inDatabase(name, `{"insert":"c","documents":[{"_id":1}]}`).Lookup("code").Int32OK()
		if code != want {
			t.Errorf("%s: %d, want %d", name, code, want)
		}
	}
}

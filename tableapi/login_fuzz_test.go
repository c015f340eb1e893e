package tableapi

import (
	"net/http/httptest"
	"testing"
)

// FuzzLogin: a header or shared access signature that wasn't made with the key isn't accepted and doesn't make the
// server panic.
func FuzzLogin(f *testing.F) {
	date := "Mon, 04 Mar 2024 05:06:07 GMT"
	for _, a := range []string{"", "SharedKey localhost:AAAA", "SharedKeyLite localhost:", "SharedKey :",
		"Bearer x", "\xff"} {
		f.Add(a, date, "")
	}
	for _, q := range []string{"sv=2019-02-02&tn=data&sp=r&se=2099-01-01T00:00:00Z&sig=AAAA",
		"sv=2019-02-02&ss=t&srt=sco&sp=rwdl&se=2099-01-01T00:00:00Z&sip=1.2.3.4-5.6.7.8&spr=https&sig=AAAA",
		"si=a&tn=data&sv=2019-02-02&sig=",
		"sv=2019-02-02&tn=data&sp=r&st=x&se=y&spk=a&srk=b&epk=c&erk=d&sig=%ff"} {
		f.Add("", date, q)
	}
	s, _ := newServer(f, true)
	f.Fuzz(func(t *testing.T, authorization, date, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RequestURI = "/data()?" + query
		r.URL.Path, r.URL.RawQuery = "/data()", query
		r.Header["Authorization"], r.Header["X-Ms-Date"] = []string{authorization}, []string{date}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code < 400 || w.Code >= 500 {
			t.Fatalf("%q %q %q: %d %s", authorization, date, query, w.Code, w.Body)
		}
	})
}

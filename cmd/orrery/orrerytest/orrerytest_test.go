package orrerytest

import (
	"net/http"
	"testing"
	"time"
)

// A server and an account serve at once: the first request to each HTTP port gets an answer of its API.
func TestStart(t *testing.T) {
	s := Start(t)
	a := s.Account(t)
	if a.Name == s.Name || a.Key == s.Key || a.NoSQL.Endpoint == s.NoSQL.Endpoint {
		t.Errorf("an account is %s at %s, the server's %s at %s", a.Name, a.NoSQL.Endpoint, s.Name, s.NoSQL.Endpoint)
	}
	for _, url := range []string{s.Admin + "alive", s.NoSQL.Endpoint, a.NoSQL.Endpoint, a.Table.Endpoint + "/Tables"} {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == http.StatusNotFound || r.StatusCode >= 500 {
			t.Errorf("%s: %s", url, r.Status)
		}
	}
}

// A server is ready in 20 ms: from the call to the answer of /ready. The limit is five times that. On a machine that
// does other work too a start may take any time, so one of many has to keep the limit.
func TestStartTime(t *testing.T) {
	const limit, most = 100 * time.Millisecond, 50
	fastest := time.Hour
	for i := 0; i < most && fastest > limit; i++ {
		began := time.Now()
		s := Start(t)
		for code := 0; code != http.StatusOK; {
			r, err := http.Get(s.Admin + "ready")
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			code = r.StatusCode
		}
		fastest = min(fastest, time.Since(began))
	}
	t.Logf("ready in %v", fastest)
	if fastest > limit {
		t.Errorf("the fastest of %d starts took %v", most, fastest)
	}
}

// What expires is gone when Advance returns, and a frozen clock stands still.
func TestClock(t *testing.T) {
	s := Start(t)
	s.Freeze()
	before := s.self.Engine().Clock().Now()
	s.Advance(time.Hour)
	if got := s.self.Engine().Clock().Now().Sub(before); got != time.Hour {
		t.Errorf("the frozen clock moved by %v", got)
	}
	s.Run()
	if got := s.self.Engine().Clock().Now().Sub(before); got < time.Hour || got > time.Hour+time.Minute {
		t.Errorf("the running clock is %v ahead", got)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s := New()
		s.Close()
	}
}

func BenchmarkAccount(b *testing.B) {
	s := Start(b)
	for b.Loop() {
		a, err := s.self.AddAccount(s.name(b))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.self.RemoveAccount(b.Context(), a.Account()); err != nil {
			b.Fatal(err)
		}
	}
}

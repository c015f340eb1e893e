package tikvkv

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// A commit asks for the timestamp of the next one, in both protocols, unless its keys are in several regions. Writers
// that don't expect another write don't ask.
func TestCommitsLeaveATimestamp(t *testing.T) {
	for name, o := range map[string]Options{"one phase": {}, "two phases": {TwoPhase: true}} {
		t.Run(name, func(t *testing.T) {
			m := newMock(t)
			e, _ := m.openFaulty(o)
			// write writes ten times, and more often until enough commits have left one: whether the timestamp
			// comes before the answer of the commit is a matter of the processors.
			write := func(enough int, followed bool, keys ...string) (left int) {
				for n := 0; n < 10 || left < enough && n < 500; n++ {
					batch := &kv.Batch{Followed: followed}
					for _, k := range keys {
						batch.Put([]byte(k), []byte(fmt.Sprint(n)))
					}
					w, err := e.Write(bg, batch, nil)
					if err != nil {
						t.Fatal(err)
					}
					f, ok := w.(kv.Follower)
					if !ok {
						continue
					}
					s, _ := f.After(bg)
					if s == nil {
						continue
					}
					left++
					if v, err := s.Get(nil, []byte(keys[0])); err != nil || string(v) != fmt.Sprint(n) {
						t.Errorf("the snapshot after commit %d has %q, %v", n, v, err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
				return left
			}
			if n := write(5, true, "a", "b", "z"); n < 5 {
				t.Errorf("%d of 500 commits have left a timestamp", n)
			}
			if n := write(0, false, "a", "b", "z"); n > 0 {
				t.Errorf("%d of 10 commits that nobody follows have left a timestamp", n)
			}
			if err := e.Presplit(bg, [][]byte{[]byte("k")}); err != nil {
				t.Fatal(err)
			}
			write(0, true, "a", "z") // the client learns of the two regions
			if n := write(0, true, "a", "z"); n > 0 {
				t.Errorf("%d of 10 commits in two regions have left a timestamp", n)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

package deadline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/yield"
)

// key is the key of a value in a context.
type key struct{}

func TestDeadline(t *testing.T) {
	parent, leave := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	at := time.Now()
	make := func(in time.Duration) *Context {
		return &Context{Context: parent, At: time.Now().Add(in), Clock: clock.New()}
	}

	passed := make(-time.Second)
	for range 2 {
		if err := passed.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-passed.Done()
	}
	far := make(time.Hour)
	if at2, ok := far.Deadline(); !ok || at2.Before(at.Add(time.Minute)) || far.Err() != nil || far.timed != nil {
		t.Fatal("a look at it has started its timer, or it has ended")
	}
	if far.Value(key{}) != "value" {
		t.Fatal("no values of the parent")
	}
	soon := make(30 * time.Millisecond)
	child, cancel := context.WithCancel(soon)
	defer cancel()
	select {
	case <-child.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("it never ends")
	}
	if !errors.Is(soon.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(child), context.DeadlineExceeded) ||
		child.Value(key{}) != "value" {
		t.Fatal(soon.Err(), context.Cause(child))
	}
	none := &Context{Context: parent}
	if _, ok := none.Deadline(); ok || none.Err() != nil || none.Value(key{}) != "value" ||
		none.Done() != parent.Done() {
		t.Fatal("without a deadline it isn't its parent")
	}
	waited := make(time.Hour)
	heard := waited.Done()
	leave()
	<-heard
	for _, d := range []*Context{far, waited, none} {
		if !errors.Is(d.Err(), context.Canceled) {
			t.Fatal(d.Err())
		}
	}
	ended := make(time.Hour)
	ended.Done()
	ended.End()
	<-ended.Done()
}

// place counts how often its request gives it up.
type place int

func (p *place) Leave() bool { *p++; return false }
func (p *place) Return()     {}

// TestPlace: the place is the request's own, and else that of the context that it began with.
func TestPlace(t *testing.T) {
	var outer, own place
	parent := yield.With(context.Background(), &outer)
	for _, c := range []*Context{{Context: parent, Place: &own}, {Context: parent}} {
		if err := yield.While(c, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if outer != 1 || own != 1 {
		t.Fatal("given up", outer, own)
	}
}

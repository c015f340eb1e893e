package rest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// key is the key of a value in a context.
type key struct{}

func TestDeadline(t *testing.T) {
	parent, leave := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	at := time.Now()
	make := func(in time.Duration) *deadline {
		return &deadline{Context: parent, at: time.Now().Add(in), clock: clock.New()}
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
	waited := make(time.Hour)
	heard := waited.Done()
	leave()
	<-heard
	for _, d := range []*deadline{far, waited} {
		if !errors.Is(d.Err(), context.Canceled) {
			t.Fatal(d.Err())
		}
	}
	ended := make(time.Hour)
	ended.Done()
	ended.end()
	<-ended.Done()
}

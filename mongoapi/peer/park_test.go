package peer

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A parked command goes on when it is woken, when it is killed, when the time is over, when the client sends something
// and when the client leaves.
func TestPark(t *testing.T) {
	const long = time.Minute
	for name, c := range map[string]struct {
		wait time.Duration
		do   func(c *Conn, wake func(), client net.Conn)
		left bool  // some of the time is left
		gone bool  // the client has left
		err  error // of the command's context
	}{
		"woken":  {long, func(_ *Conn, wake func(), _ net.Conn) { wake() }, true, false, nil},
		"over":   {time.Millisecond, func(*Conn, func(), net.Conn) {}, false, false, nil},
		"killed": {long, func(c *Conn, _ func(), _ net.Conn) { c.Kill(1, ErrKilled) }, true, false, ErrKilled},
		"a message": {long, func(_ *Conn, _ func(), client net.Conn) { _, _ = client.Write([]byte("x")) }, false, false,
			nil},
		"client left": {long, func(_ *Conn, _ func(), client net.Conn) { _ = client.Close() }, true, true, ErrLeft},
		"shutdown":    {long, func(c *Conn, _ func(), _ net.Conn) { c.Finish() }, false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			client, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			nc, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			p := New(nc, Defaults, nil)
			ctx, _ := p.Begin(false)
			stopped := false
			left, ok := p.Park(c.wait, func(wake func()) func() {
				go c.do(p, wake, client)
				return func() { stopped = true }
			})
			if left > 0 != c.left || ok == c.gone || !stopped {
				t.Errorf("%v is left, the client is there: %v", left, ok)
			}
			if got := context.Cause(ctx); !errors.Is(got, c.err) {
				t.Errorf("the command's context says %v, want %v", got, c.err)
			}
		})
	}
}

// A command that is watched already can be parked, and one without anything to wait for goes on at once.
func TestParkWatched(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	p := New(a, Defaults, nil)
	p.Begin(false)
	p.Look(0)
	p.Look(0) // watched from now on
	if left, ok := p.Park(time.Minute, func(wake func()) func() { return nil }); left < time.Second || !ok {
		t.Errorf("%v is left, the client is there: %v", left, ok)
	}
	if left, ok := p.Park(time.Minute, func(wake func()) func() {
		p.Look(time.Nanosecond) // a wait isn't a long command
		wake()
		return func() {}
	}); left < time.Second || !ok {
		t.Errorf("%v is left, the client is there: %v", left, ok)
	}
	if !p.End() {
		t.Error("the connection is over")
	}
}

// lateConn is a connection whose first read is interrupted, and notices that late.
type lateConn struct {
	net.Conn
	reads atomic.Int32
	late  chan struct{}
}

func (c *lateConn) Read(b []byte) (int, error) {
	first := c.reads.Add(1) == 1
	n, err := c.Conn.Read(b)
	if first {
		<-c.late
	}
	return n, err
}

// While Park waits for the end of a watch the server's watcher doesn't begin another one: two goroutines would read the
// connection, and Park wouldn't end.
func TestParkIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		nc := &lateConn{Conn: a, late: make(chan struct{})}
		p := New(nc, Defaults, nil)
		p.Begin(false)
		p.Look(0)
		p.Look(0) // watched from now on
		synctest.Wait()
		ended := make(chan bool)
		go func() {
			left, here := p.Park(time.Minute, func(wake func()) func() {
				wake()
				return func() {}
			})
			ended <- here && left == time.Minute
		}()
		synctest.Wait() // for the watch
		p.Look(0)
		p.Look(0)
		synctest.Wait()
		if n := nc.reads.Load(); n != 1 {
			t.Errorf("%d reads have begun", n)
		}
		close(nc.late)
		if !<-ended {
			t.Error("the wait has not ended at once")
		}
		if !p.End() {
			t.Error("the connection is over")
		}
	})
}

// A connection whose command is parked, or that is idle, isn't looked at again until its command goes on or another one
// begins. Then it stirs, once.
func TestLookAtParked(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	stirred := 0
	p := New(server, Defaults, func() { stirred++ })
	look := func(what string, active, quiet bool, want int) {
		t.Helper()
		if got, again := p.Look(0); got != active || again == quiet || stirred != want {
			t.Errorf("%s: active %v, again %v, stirred %d times", what, got, again, stirred)
		}
	}
	p.Begin(false)
	look("a command", true, false, 1)
	p.Park(time.Minute, func(wake func()) func() {
		look("a parked command", false, true, 1)
		look("a parked command, again", false, true, 1)
		wake()
		return func() {}
	})
	look("the command goes on", true, false, 2)
	p.End()
	p.Begin(false)
	p.End()
	look("another command has ended", true, true, 2)
	look("idle", false, true, 2)
	p.Begin(false)
	look("a third command", true, false, 3)
	p.End()
}

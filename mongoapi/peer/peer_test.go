package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// short are limits that a test can wait for. Longer ones are used where a busy machine must be fast enough.
var (
	short = Limits{
		Login: 150 * time.Millisecond,
		Idle:  300 * time.Millisecond,
		Stall: 200 * time.Millisecond,
		Small: 32 << 10,
	}
	longer = Limits{Login: time.Second, Idle: time.Second, Stall: 1500 * time.Millisecond, Small: 32 << 10}
)

// soon is a time within which an expected event has certainly happened.
const soon = 10 * time.Second

// pair is a Conn and its client.
func pair(t *testing.T, l Limits) (*Conn, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := New(nc, l, nil)
	t.Cleanup(func() { c.Close(); _ = client.Close() })
	return c, client
}

// tlsPair is a pair that uses TLS.
func tlsPair(t *testing.T, l Limits) (*Conn, net.Conn) {
	t.Helper()
	certs := httptest.NewTLSServer(nil)
	defer certs.Close()
	plain, client := pair(t, l)
	c := New(tls.Server(plain.nc, certs.TLS), l, nil)
	t.Cleanup(c.Close)
	pool := x509.NewCertPool()
	pool.AddCert(certs.Certificate())
	return c, tls.Client(client, &tls.Config{RootCAs: pool, ServerName: "example.com"})
}

// message returns a message of n bytes; all bytes after the header are x.
func message(n int, x byte) []byte {
	b := bytes.Repeat([]byte{x}, n)
	binary.LittleEndian.PutUint32(b, uint32(n))
	binary.LittleEndian.PutUint32(b[4:], 1)
	binary.LittleEndian.PutUint32(b[8:], 0)
	binary.LittleEndian.PutUint32(b[12:], wire.OpMsg)
	return b
}

func TestReadGivesWholeMessages(t *testing.T) {
	c, client := pair(t, longer)
	var sent [][]byte
	for i, n := range []int{16, 17, 1000, 20 << 10, 300 << 10, 40, 3 << 20} {
		sent = append(sent, message(n, byte(i)))
	}
	go func() { _, _ = client.Write(bytes.Join(sent, nil)) }()
	var buf []byte
	for _, want := range sent {
		h, got, err := c.Read(buf, Rules{})
		if err != nil || int(h.Length) != len(want) || !bytes.Equal(got, want) {
			t.Fatalf("a message of %d: %d bytes, %v", len(want), len(got), err)
		}
		buf = got
	}
}

func TestReadRefusesLengths(t *testing.T) {
	for _, x := range []struct {
		length uint32
		login  bool
	}{{15, false}, {0, true}, {wire.MaxMessage + 1, false}, {1 << 31, false}, {32<<10 + 1, true}} {
		c, client := pair(t, short)
		head := message(16, 0)
		binary.LittleEndian.PutUint32(head, x.length)
		_, _ = client.Write(head)
		if _, _, err := c.Read(nil, Rules{Login: x.login}); err != wire.ErrMalformed {
			t.Errorf("a length of %d: %v", x.length, err)
		}
	}
}

// TestReadHoldsWhatWasSent: an announced length uses neither memory nor budget.
func TestReadHoldsWhatWasSent(t *testing.T) {
	const conns, sent = 20, 100 << 10
	half := message(sent, 0)
	binary.LittleEndian.PutUint32(half, wire.MaxMessage)
	errs := make(chan error, conns)
	b := budget.New(1<<40, 0)
	var clients []net.Conn
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range conns {
		c, client := pair(t, Limits{Login: soon, Idle: soon, Stall: soon, Small: 1 << 10})
		clients = append(clients, client)
		go func() {
			mem := b.Open("message")
			_, _, err := c.Read(nil, Rules{Mem: mem})
			mem.Close()
			errs <- err
		}()
		if _, err := client.Write(half); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); b.Used() < conns*sent/2; time.Sleep(time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("the budget knows of %d bytes of %d", b.Used(), conns*sent)
		}
	}
	time.Sleep(50 * time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&during)
	if per := int64(during.HeapAlloc-before.HeapAlloc) / conns; per > 4*sent || b.Used() > 4*conns*sent {
		t.Errorf("%d bytes that were sent hold %d, and %d of the budget", sent, per, b.Used()/conns)
	}
	for _, c := range clients {
		_ = c.Close()
	}
	for range conns {
		if err := <-errs; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a half message: %v", err)
		}
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes of the budget are left over", b.Used())
	}
}

// TestReadDeadlines: before a login, a client that sends nothing, or not everything, is disconnected. A slow one that
// makes progress isn't. Time passes only while everybody waits, so each limit is exact.
func TestReadDeadlines(t *testing.T) {
	whole := message(30<<10, 0)
	for _, x := range []struct {
		name  string
		rules Rules
		send  func(client net.Conn)
		cut   time.Duration // when the connection is cut; 0: it isn't
	}{
		{"silence at first", Rules{Login: true, First: short.Login}, func(net.Conn) {}, short.Login},
		{"half a header", Rules{}, func(c net.Conn) { _, _ = c.Write(whole[:7]) }, short.Stall},
		{"half a message", Rules{}, func(c net.Conn) { _, _ = c.Write(whole[:7000]) }, short.Stall},
		{"a slow message before a login", Rules{Login: true}, func(c net.Conn) {
			trickle(c, whole, 1<<10, short.Login/20)
		}, short.Login},
		{"a message that comes too slowly", Rules{}, func(c net.Conn) {
			trickle(c, whole, window/4, short.Stall/4+time.Millisecond)
		}, short.Stall},
		{"a slow message", Rules{}, func(c net.Conn) {
			trickle(c, whole, window/4, short.Stall/4-time.Millisecond)
		}, 0},
		{"a silent client that has logged in", Rules{}, func(c net.Conn) {
			time.Sleep(3 * short.Idle / 2)
			_, _ = c.Write(whole)
		}, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				c := New(server, short, nil)
				var sender sync.WaitGroup
				sender.Go(func() { x.send(client) })
				began := time.Now()
				_, _, err := c.Read(nil, x.rules)
				took := time.Since(began)
				c.Close()
				sender.Wait()
				if x.cut == 0 && err != nil ||
					x.cut > 0 && (!errors.Is(err, os.ErrDeadlineExceeded) || took != x.cut) {
					t.Errorf("%v after %v, want it to be cut off after %v", err, took, x.cut)
				}
			})
		})
	}
}

func trickle(c net.Conn, b []byte, n int, every time.Duration) {
	for len(b) > 0 {
		if _, err := c.Write(b[:min(n, len(b))]); err != nil {
			return
		}
		b = b[min(n, len(b)):]
		time.Sleep(every)
	}
}

// TestReadRefusesWithoutMemory: a message without memory is skipped, and the next one is processed.
func TestReadRefusesWithoutMemory(t *testing.T) {
	for _, x := range []struct {
		name string
		bud  *budget.Budget
		code status.Code
	}{
		{"more than one message may have", budget.New(1<<30, 100<<10), status.MemoryLimit},
	} {
		c, client := pair(t, longer)
		go func() { _, _ = client.Write(append(message(1<<20, 1), message(50, 2)...)) }()
		mem := x.bud.Open("message")
		var refused *Refused
		h, start, err := c.Read(nil, Rules{Mem: mem})
		if !errors.As(err, &refused) || !status.Is(err, x.code) || h.RequestID != 1 || len(start) < wire.HeaderSize+4 {
			t.Fatalf("%s: %v", x.name, err)
		}
		mem.Close()
		if _, got, err := c.Read(nil, Rules{Mem: mem}); err != nil || len(got) != 50 {
			t.Fatalf("%s: the next message: %d bytes, %v", x.name, len(got), err)
		}
		mem.Close()
	}
}

// TestReadWaitsForMemory: a message waits until another request releases its memory.
func TestReadWaitsForMemory(t *testing.T) {
	b := budget.New(1<<20, 0)
	other := b.Open("other")
	if err := other.Grow(1 << 20); err != nil {
		t.Fatal(err)
	}
	c, client := pair(t, Limits{Login: soon, Idle: soon, Stall: soon, Small: 1 << 10})
	go func() { _, _ = client.Write(message(200<<10, 1)) }()
	done := make(chan error)
	mem := b.Open("message")
	go func() { _, _, err := c.Read(nil, Rules{Mem: mem}); done <- err }()
	select {
	case err := <-done:
		t.Fatalf("without memory: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	other.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mem.Close()
}

// watched runs a command until two Looks have found it.
func watched(t *testing.T, c *Conn) context.Context {
	t.Helper()
	ctx, ok := c.Begin(false)
	if !ok {
		t.Fatal("the connection is to end")
	}
	for range 2 {
		if active, _ := c.Look(0); !active {
			t.Fatal("a command that runs is not seen")
		}
	}
	return ctx
}

func TestCommandEndsWhenItsClientLeaves(t *testing.T) {
	c, client := pair(t, short)
	ctx := watched(t, c)
	_ = client.Close()
	select {
	case <-ctx.Done():
	case <-time.After(soon):
		t.Fatal("the command goes on")
	}
	if err := context.Cause(ctx); err != ErrLeft || !c.Left() {
		t.Errorf("ended by %v", err)
	}
	if c.End() {
		t.Error("the connection goes on")
	}
}

// TestCommandForWhichNobodyWaits: a client that expects no reply may disconnect. Its messages are processed.
func TestCommandForWhichNobodyWaits(t *testing.T) {
	c, client := pair(t, short)
	if _, err := client.Write(append(message(100, 1), message(200, 2)...)); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	for _, n := range []int{100, 200} {
		if _, got, err := c.Read(nil, Rules{}); err != nil || len(got) != n {
			t.Fatalf("%d bytes of %d, %v", len(got), n, err)
		}
		ctx, _ := c.Begin(true)
		for range 3 {
			c.Look(0)
		}
		time.Sleep(20 * time.Millisecond)
		if ctx.Err() != nil || !c.End() {
			t.Fatal("it was ended")
		}
	}
}

// TestWatchLosesNothing: data that arrives while a command is watched is read afterwards, repeatedly.
func TestWatchLosesNothing(t *testing.T) {
	t.Run("plain", func(t *testing.T) { c, client := pair(t, longer); watchLosesNothing(t, c, client) })
	t.Run("TLS", func(t *testing.T) {
		c, client := tlsPair(t, Limits{Login: soon, Idle: soon, Stall: soon, Small: 1 << 10})
		first := message(20, 1)
		go func() { _, _ = client.Write(first) }()
		if _, got, err := c.Read(nil, Rules{}); err != nil || !bytes.Equal(got, first) {
			t.Fatal(err)
		}
		watchLosesNothing(t, c, client)
		ctx := watched(t, c)
		_ = client.Close()
		<-ctx.Done()
	})
}

func watchLosesNothing(t *testing.T, c *Conn, client net.Conn) {
	var buf []byte
	for i := range 50 {
		ctx := watched(t, c)
		want := message(100+i*400, byte(i))
		sent := make(chan struct{})
		go func() { defer close(sent); _, _ = client.Write(want) }()
		if i%2 == 0 {
			<-sent
		}
		if !c.End() || ctx.Err() != nil {
			t.Fatal("the connection is to end")
		}
		_, got, err := c.Read(buf, Rules{})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("message %d: %d bytes, %v", i, len(got), err)
		}
		buf = got
		<-sent
	}
}

// TestLookFindsNothing: a quick command isn't watched, and a connection without a command costs nothing.
func TestLookFindsNothing(t *testing.T) {
	c, _ := pair(t, short)
	for range 5 {
		if _, ok := c.Begin(false); !ok || !c.End() {
			t.Fatal("the connection is to end")
		}
		if active, again := c.Look(1); !active || again {
			t.Error("a command that ran is not seen")
		}
		if active, _ := c.Look(1); active {
			t.Error("a connection at rest is seen")
		}
	}
	if c.watch != nil || c.ctx.Err() != nil {
		t.Error("a quick command was watched")
	}
}

func TestCommandThatTakesTooLong(t *testing.T) {
	c, _ := pair(t, short)
	ctx, _ := c.Begin(false)
	const most = 50 * time.Millisecond
	began := time.Now()
	for ctx.Err() == nil {
		c.Look(most)
		if time.Since(began) > soon {
			t.Fatal("it goes on")
		}
	}
	if took := time.Since(began); context.Cause(ctx) != ErrTooLong || took < most {
		t.Errorf("ended by %v after %v", context.Cause(ctx), took)
	}
	if !c.End() {
		t.Fatal("the connection is to end")
	}
	if ctx, ok := c.Begin(false); !ok || ctx.Err() != nil {
		t.Error("the next command has no context of its own")
	}
}

func TestKill(t *testing.T) {
	c, _ := pair(t, short)
	first, _ := c.Begin(false)
	seq, _ := c.Running()
	c.End()
	c.Kill(seq, ErrKilled)
	second, _ := c.Begin(false)
	c.Kill(seq, ErrKilled) // too late
	if second.Err() != nil || first.Err() != nil {
		t.Fatal("a late kill has hit the next command")
	}
	seq, ok := c.Running()
	if c.Kill(seq, ErrKilled); !ok || context.Cause(second) != ErrKilled {
		t.Fatalf("ended by %v", context.Cause(second))
	}
}

// TestWriteToWhoNeverReads: neither a large reply nor many small ones occupy a connection forever.
func TestWriteToWhoNeverReads(t *testing.T) {
	for _, n := range []int{64 << 20, 1000} {
		c, _ := pair(t, short)
		done := make(chan error, 1)
		go func() {
			for {
				if _, ok := c.Begin(false); !ok {
					done <- errors.New("the connection is to end")
					return
				}
				if err := c.Write(make([]byte, n)); err != nil {
					done <- err
					return
				}
				c.End()
			}
		}()
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			c.Look(0)
			select {
			case err := <-done:
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("answers of %d bytes: %v", n, err)
				}
			default:
				if time.Since(began) < soon {
					continue
				}
				t.Fatalf("answers of %d bytes wait for ever", n)
			}
			break
		}
	}
}

// TestWriteToASlowReader: a slow reader gets everything.
func TestWriteToASlowReader(t *testing.T) {
	c, client := pair(t, longer)
	const n = 12 << 20
	got := make(chan int)
	go func() {
		total, b := 0, make([]byte, 256<<10)
		for total < n {
			time.Sleep(10 * time.Millisecond)
			m, err := io.ReadFull(client, b[:min(len(b), n-total)])
			if total += m; err != nil {
				break
			}
		}
		got <- total
	}()
	c.Begin(false)
	began := time.Now()
	err := c.Write(make([]byte, n))
	if total := <-got; err != nil || total != n {
		t.Fatalf("%d of %d bytes in %v: %v", total, n, time.Since(began), err)
	}
	c.End()
}

func TestFinish(t *testing.T) {
	c, client := pair(t, short)
	c.Begin(false)
	c.Finish()
	if err := c.Write([]byte("answer")); err != nil {
		t.Fatalf("the answer of a command that ran: %v", err)
	}
	if c.End() {
		t.Error("the connection goes on")
	}
	b := make([]byte, 6)
	if _, err := io.ReadFull(client, b); err != nil {
		t.Error(err)
	}
	idle, client := pair(t, short)
	idle.Finish()
	if _, err := client.Read(b); err == nil {
		t.Error("an idle connection goes on")
	}
}

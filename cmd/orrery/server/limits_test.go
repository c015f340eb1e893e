package server

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/internal/testlog"
)

func TestMemoryOfRequestsAndProcess(t *testing.T) {
	for _, tc := range []struct {
		memory, cache  int
		requests, soft int64 // MiB
	}{{0, 144, 112, 512}, {256, 144, 112, 512}, {0, 256, 112, 736}, {2048, 1024, 1024, 4096}, {48, 16, 32, 304}} {
		c := Default()
		c.MemoryMB, c.CacheMB = tc.memory, tc.cache
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		if b := c.newBudget(); b.Limit() != tc.requests<<20 || c.memoryLimit() != tc.soft<<20 {
			t.Errorf("%d with a cache of %d: requests %d, process %d", tc.memory, tc.cache, b.Limit()>>20,
				c.memoryLimit()>>20)
		}
	}
	c := Default()
	if one := c.newBudget().Open("sort"); one.Grow(57<<20) == nil || one.Grow(55<<20) != nil {
		t.Error("one request may not hold half of what all may")
	}
}

func TestTheUsersMemoryLimitStays(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	c := Default()
	t.Setenv("GOMEMLIMIT", "1GiB")
	c.LimitMemory()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("limit %d", got)
	}
	_ = os.Unsetenv("GOMEMLIMIT")
	c.LimitMemory()
	if got := debug.SetMemoryLimit(-1); got != 512<<20 {
		t.Errorf("limit %d", got)
	}
}

// A door accepts MaxConnections connections and reports refused ones. When one ends, the next is accepted.
func TestMaxConnections(t *testing.T) {
	var log testlog.Lines
	s := guardedServer(t, func(c *Config) {
		c.MaxConnections, c.Logger = 3, slog.New(slog.NewTextHandler(&log, nil))
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections() // of the probes
	for _, door := range []string{NoSQL, Table, Gremlin, Mongo, Admin} {
		var open []net.Conn
		for deadline := time.Now().Add(10 * time.Second); len(open) < 3 ||
			s.door(door).conns.Counts().Open < 3; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", door, s.door(door).conns.Counts())
			}
			if len(open) < 3 {
				open = append(open, dialWire(t, s.Addr(door)).Conn)
			}
		}
		one := dialWire(t, s.Addr(door))
		one.closed()
		for _, c := range open {
			_ = c.Close()
		}
		if door == Mongo {
			continue
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			w := dialWire(t, s.Addr(door))
			_, _ = io.WriteString(w, "GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if w.reply() != 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no room", door)
			}
		}
	}
	if n := strings.Count(log.String(), "as many connections as it may"); n != 5 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

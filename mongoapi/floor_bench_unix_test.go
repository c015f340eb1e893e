//go:build unix

package mongoapi

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// floorClient is the environment variable that makes this binary the client of BenchmarkFloor: the message that it
// sends, in base64.
const floorClient = "ORRERY_TEST_FLOOR"

// BenchmarkFloor compares a find by _id of a document of 1 KB over the wire with a server that reads a message of
// the same length and sends the same reply without looking at it, both in this process, in turns of a second, with 8
// connections of another process. The metrics are the processor time of a request, by getrusage, in both servers, and
// the requests per second as a part of those of the bare server.
func BenchmarkFloor(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := newServerWithin(b, Options{}, budget.New(256<<20, 0))
	go func() { _ = s.Serve(ln) }()
	c := benchConn(s, nil)
	insert := opMsg(b, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{
		{Key: "_id", Value: 1}, {Key: "text", Value: strings.Repeat("x", 1000)}}}}})
	find := opMsg(b, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "limit", Value: int64(1)}, {Key: "singleBatch", Value: true}})
	var m wire.Msg
	var reply []byte
	for _, msg := range [][]byte{insert, find} {
		if reply, err = c.answer(nil, wire.Header{OpCode: wire.OpMsg}, msg, &m); err != nil {
			b.Fatal(err)
		}
	}
	endBench(c)
	bare := bareServer(b, len(find), reply)

	in, out := startBenchClient(b, floorClient, base64.StdEncoding.EncodeToString(find))
	turn := func(addr string) (cpu time.Duration, n int) {
		before := cpuTime()
		if _, err := fmt.Fprintln(in, addr); err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Fscanln(out, &n); err != nil {
			b.Fatal(err)
		}
		return cpuTime() - before, n
	}
	var ours, floor time.Duration
	var asked, echoed int
	for b.Loop() {
		cpu, n := turn(ln.Addr().String())
		ours, asked = ours+cpu, asked+n
		cpu, n = turn(bare)
		floor, echoed = floor+cpu, echoed+n
	}
	us := func(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }
	b.ReportMetric(us(ours, asked), "µs-cpu")
	b.ReportMetric(us(floor, echoed), "µs-floor")
	b.ReportMetric(float64(asked)/float64(echoed), "share")
	b.ReportMetric(0, "ns/op")
}

// bareServer answers every message of a length with the same reply, and returns its address.
func bareServer(b *testing.B, length int, reply []byte) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				br, msg := bufio.NewReader(c), make([]byte, length)
				for {
					if _, err := io.ReadFull(br, msg); err != nil {
						return
					}
					if _, err := c.Write(reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// askAgain reads addresses from the standard input. It sends the message to each for a second, with 8 connections, and
// prints how many replies there were.
func askAgain(text string) error {
	msg, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		var n atomic.Int64
		var all sync.WaitGroup
		failed := make(chan error, 8)
		for range cap(failed) {
			all.Go(func() {
				c, err := net.Dial("tcp", lines.Text())
				if err != nil {
					failed <- err
					return
				}
				defer c.Close()
				buf := make([]byte, 4096)
				for ctx.Err() == nil {
					if _, err = c.Write(msg); err == nil {
						_, err = io.ReadFull(c, buf[:wire.HeaderSize])
					}
					var h wire.Header
					if err == nil {
						h, err = wire.ParseHeader(buf[:wire.HeaderSize], wire.MaxMessage)
					}
					if err == nil {
						_, err = io.ReadFull(c, buf[wire.HeaderSize:h.Length])
					}
					if err != nil {
						failed <- err
						return
					}
					n.Add(1)
				}
			})
		}
		all.Wait()
		cancel()
		if len(failed) > 0 {
			return <-failed
		}
		fmt.Println(n.Load())
	}
	return nil
}

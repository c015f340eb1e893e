//go:build unix

package mongoapi

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// idleClient is the environment variable that makes this binary the client of BenchmarkIdleStreams: its address and the
// number of its streams.
const idleClient = "ORRERY_TEST_IDLE_STREAMS"

// TestMain runs the tests, or is the client of a benchmark, whose processor time must not count.
func TestMain(m *testing.M) {
	for name, client := range map[string]func(string) error{idleClient: watchIdly, floorClient: askAgain} {
		if text := os.Getenv(name); text != "" {
			if err := client(text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// BenchmarkIdleStreams measures what 1,000 change streams without events cost the server, in percent of one core: its
// processor time, by getrusage, less that of the same server without streams. The clients are another process.
func BenchmarkIdleStreams(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := newServerWithin(b, Options{}, budget.New(256<<20, 0))
	go func() { _ = s.Serve(ln) }()
	const streams = 1000
	none := cpuShare(3 * time.Second)
	_, out := startBenchClient(b, idleClient, ln.Addr().String()+" "+strconv.Itoa(streams))
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.ReportMetric(100*(cpuShare(5*time.Second)-none), "%core")
		b.ReportMetric(0, "ns/op")
	}
}

// startBenchClient starts this program as the client of a benchmark, which a variable makes of it, and returns its
// input and output. It ends with its input, at the latest with the benchmark.
func startBenchClient(b *testing.B, variable, value string) (in io.Writer, out io.Reader) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	return stdin, stdout
}

// cpuShare returns the processor time that this process uses in each second of a duration, in seconds.
func cpuShare(d time.Duration) float64 {
	before, begun := cpuTime(), time.Now()
	time.Sleep(d)
	return float64(cpuTime()-before) / float64(time.Since(begun))
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchIdly opens streams and asks each for more, until the standard input ends.
func watchIdly(text string) error {
	var addr string
	var streams int
	if _, err := fmt.Sscan(text, &addr, &streams); err != nil {
		return err
	}
	ask := func(c net.Conn, buf []byte, msg []byte) (bson.Raw, error) {
		if _, err := c.Write(msg); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, buf[:wire.HeaderSize]); err != nil {
			return nil, err
		}
		h, err := wire.ParseHeader(buf[:wire.HeaderSize], wire.MaxMessage)
		if err != nil {
			return nil, err
		}
		_, err = io.ReadFull(c, buf[wire.HeaderSize:h.Length])
		return bson.Raw(buf[wire.HeaderSize+5 : h.Length]), err
	}
	var open sync.WaitGroup
	failed := make(chan error, streams)
	for i := range streams {
		open.Add(1)
		go func() {
			failed <- func() error {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					open.Done()
					return err
				}
				buf := make([]byte, 4096)
				common := bson.D{{Key: "lsid", Value: sessionID(string(rune('a' + i%26)))}, {Key: "$db", Value: "db"}}
				r, err := ask(c, buf, rawMsg(nil, append(bson.D{{Key: "aggregate", Value: "c"},
					{Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}},
					{Key: "cursor", Value: bson.D{}}}, common...)))
				open.Done()
				if err != nil {
					return err
				}
				more := rawMsg(nil, append(bson.D{{Key: "getMore", Value: r.Lookup("cursor", "id").Int64()},
					{Key: "collection", Value: "c"}}, common...))
				for err == nil {
					if r, err = ask(c, buf, more); err == nil && r.Lookup("ok").Double() != 1 {
						err = fmt.Errorf("%s", r)
					}
				}
				return err
			}()
		}()
	}
	open.Wait()
	_, _ = os.Stdout.Write([]byte{1})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return <-failed
}

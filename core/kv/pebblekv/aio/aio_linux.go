package aio

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/aio_abi.h.
const (
	opSync     = 2
	opSyncData = 3
	flagResult = 1 // resultFD is signalled at the end
)

// control is struct iocb: one request. What has no name here stays zero: a mark of the request, flags of reads and
// writes, a priority, and what is read or written.
type control struct {
	_        [2]uint64
	op       uint16
	_        int16
	fd       uint32
	_        [4]uint64
	options  uint32
	resultFD uint32
}

// event is struct io_event: how one request ended. Before the result are the request's mark and its address.
type event struct {
	_      [2]uint64
	result int64
	_      int64
}

// queue is a context of the kernel for one request at a time, and the event counter that it signals.
type queue struct {
	ctx     uintptr
	counter *os.File
	fd      uint32
}

// queues are those that are free. A sync that finds none is made by the caller: so many at once are rare.
var queues = sync.OnceValue(func() chan *queue {
	const most = 4
	c := make(chan *queue, most)
	for range most {
		q, err := newQueue()
		if err != nil {
			break
		}
		c <- q
	}
	return c
})

func newQueue() (*queue, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	q := &queue{counter: os.NewFile(uintptr(fd), "eventfd"), fd: uint32(fd)}
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&q.ctx)), 0); e != 0 {
		q.counter.Close()
		return nil, e
	}
	return q, nil
}

// Sync is fsync, or fdatasync if only the data matters. done is false if the kernel didn't take the request; then
// nothing has happened.
func Sync(fd uintptr, data bool) (done bool, err error) { return within(fd, data, time.Time{}) }

// within is Sync with an error if there is no end until a time; the zero time is never.
func within(fd uintptr, data bool, until time.Time) (done bool, err error) {
	var q *queue
	select {
	case q = <-queues():
	default:
		return false, nil
	}
	c := &control{op: opSync, fd: uint32(fd), options: flagResult, resultFD: q.fd}
	name := "fsync"
	if data {
		c.op, name = opSyncData, "fdatasync"
	}
	n, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, q.ctx, 1, uintptr(unsafe.Pointer(&c)))
	runtime.KeepAlive(c)
	if e != 0 || n != 1 {
		queues() <- q
		return false, nil
	}
	result, err := q.wait(until)
	if err != nil {
		return true, os.NewSyscallError(name, err) // q isn't used again, because a request may be in it
	}
	queues() <- q
	if result < 0 {
		return true, os.NewSyscallError(name, syscall.Errno(-result))
	}
	return true, nil
}

// wait waits for the request in q. The read of the counter is the runtime's, so no thread waits.
func (q *queue) wait(until time.Time) (result int64, err error) {
	var count [8]byte
	if !until.IsZero() {
		if err := q.counter.SetReadDeadline(until); err != nil {
			return 0, err
		}
		defer q.counter.SetReadDeadline(time.Time{})
	}
	if _, err := q.counter.Read(count[:]); err != nil {
		return 0, err
	}
	for {
		var ev event
		n, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, q.ctx, 1, 1, uintptr(unsafe.Pointer(&ev)), 0, 0)
		switch {
		case e == syscall.EINTR:
		case e != 0:
			return 0, e
		case n == 1:
			return ev.result, nil
		}
	}
}

// probeTime is how long Available waits for the end of a sync. A sandbox may take a request and never tell its end.
const probeTime = 2 * time.Second

// Available reports whether the kernel takes syncs: Linux since 4.18, unless a sandbox refuses the calls.
var Available = sync.OnceValue(func() bool {
	dir, err := os.Open("/")
	if err != nil {
		return false
	}
	defer dir.Close()
	done, err := within(dir.Fd(), true, time.Now().Add(probeTime))
	return done && err == nil
})

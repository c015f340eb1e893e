package pebblekv

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// failure ends the process when the store can't continue: the log isn't on disk, the manifest may be incomplete, or the
// disk doesn't respond. If it continued, it could acknowledge data that is lost. A panic isn't enough, because the
// request's server could recover it.
type failure struct {
	once sync.Once
	end  func(error)
}

// now ends the process. It never returns, so no caller takes the failed operation for done. If a test has replaced the
// end, the goroutine blocks.
func (f *failure) now(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	f.once.Do(func() { f.end(err) })
	select {}
}

// recovered is deferred around calls of Pebble that panic when the log fails, while Pebble holds its locks.
func (f *failure) recovered() {
	if r := recover(); r != nil {
		f.now("%v", r)
	}
}

// lastWords is how long writing the reason may take: the log may be a file on the failed disk.
const lastWords = time.Second

// endProcess is the default end of a failure. Without a logger the reason is written to standard error.
func endProcess(log *slog.Logger) func(error) {
	return func(err error) {
		said := make(chan struct{})
		go func() {
			defer close(said)
			if log == nil {
				fmt.Fprintln(os.Stderr, "orrery: the store failed, the process ends:", err)
				return
			}
			log.Error("The store failed, the process ends", "error", err)
		}()
		select {
		case <-said:
		case <-time.After(lastWords):
		}
		os.Exit(1)
	}
}

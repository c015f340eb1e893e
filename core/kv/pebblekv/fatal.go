package pebblekv

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// failure ends the process when the store can't continue: a log that isn't on disk, a manifest that may be incomplete,
// a disk that doesn't respond. To continue could acknowledge data that is lost. A panic isn't enough, because the
// server of the request could recover it.
type failure struct {
	once sync.Once
	end  func(error)
}

// now ends the process. It doesn't return, so that no caller takes the failed operation for done. If a test has
// replaced the end, the goroutine blocks.
func (f *failure) now(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	f.once.Do(func() { f.end(err) })
	select {}
}

// recovered is deferred where Pebble is called with its locks taken: it panics there when the log fails.
func (f *failure) recovered() {
	if r := recover(); r != nil {
		f.now("%v", r)
	}
}

// lastWords is how long the reason may take to be written: it may go to a file on the disk that failed.
const lastWords = time.Second

// endProcess is what a failure does by default. Without a logger the reason goes to the standard error.
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

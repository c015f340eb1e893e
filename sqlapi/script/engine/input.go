package engine

import (
	"bufio"
	"os"
	"sync"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// input has the server's frames. When it ends, the server is gone, and so is the process.
type input struct {
	mu sync.Mutex // of r
	r  *bufio.Reader
}

// next returns the next frame.
func (in *input) next() wire.Frame {
	in.mu.Lock()
	defer in.mu.Unlock()
	f, err := wire.Read(in.r)
	if err != nil {
		os.Exit(0)
	}
	return f
}

// watch waits for the end of the input beside a run, which reads nothing while it computes. What comes before the end
// stays for next, which waits until then.
func (in *input) watch() {
	if !in.mu.TryLock() {
		return // somebody waits for it already
	}
	go func() {
		defer in.mu.Unlock()
		if _, err := in.r.Peek(1); err != nil {
			os.Exit(0)
		}
	}()
}

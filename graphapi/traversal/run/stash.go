package run

import (
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
)

// stash is the memory of a step that can write what it keeps to temporary files, such as order(). A small state is
// charged to the request's account, as that of all other steps. A larger one gets an account of its own, whose memory
// is given back by writing. The user sets write, and says with hold what it is about to keep.
//
// Example: an order() keeps traversers of 1 KB. The first 32 are charged to the request. Then the stash opens an
// account. When that has used up its share, hold calls write: the step sorts its traversers, writes them as a run, and
// forgets them. The traversers that follow are gathered in memory again.
//
// A step keeps its state in memory, and is refused above one request's share, where it may not write: the server has no
// place for files, or the traversal changes the graph. Then elements in memory must be shared: what property() changes
// in one of them is seen by select().
type stash struct {
	what  string       // names the use of the memory in errors
	write func() error // nil: it can't be written
	x     *exec
	own   bool            // it has its own account
	acct  *budget.Account // its own; nil if there is no budget
	n     int             // values
	bytes int64
	files []interface{ Close() } // that were written
	err   error                  // of write
}

// ownAccount is the number of bytes from which on a stash has its own account.
const ownAccount = 32 << 10

// files is what a request needs for temporary files.
type files struct {
	space *spill.Space // nil: none may be written
	early bool         // for tests: each value is written before the next one is kept
	keeps *carrier
	all   []*stash // those that have opened an account
}

// mayWrite reports whether the request may write its state to files.
func (x *exec) mayWrite() bool { return x.files.space != nil && !x.writes }

// carrier returns the encoder of the request's values.
func (x *exec) carrier() *carrier {
	if x.files.keeps == nil {
		x.files.keeps = &carrier{x: x}
	}
	return x.files.keeps
}

// close removes all files of the request and returns the memory.
func (f *files) close() {
	for _, s := range f.all {
		s.closeFiles()
		s.acct.Close()
	}
	f.all = nil
}

// hold counts n values with the given total of bytes, before they are kept. It may call write.
func (s *stash) hold(x *exec, n int, bytes int64) error {
	s.x = x
	if !s.own {
		may := s.write != nil && x.mayWrite()
		if !may || s.bytes+bytes <= ownAccount && !x.files.early {
			err := x.mem.grow(n, bytes)
			if err == nil || !may {
				if err == nil {
					s.n, s.bytes = s.n+n, s.bytes+bytes
				}
				return err
			}
		}
		s.open()
	}
	if n > maxHeld {
		return tooMuch()
	}
	if x.files.early || x.mem.n+n > maxHeld {
		s.spill()
	}
	if err := s.acct.Grow(bytes); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	s.n, s.bytes, x.mem.n = s.n+n, s.bytes+bytes, x.mem.n+n
	return nil
}

// open gives the stash its own account.
func (s *stash) open() {
	s.own, s.acct = true, s.x.mem.budget.Open(s.what)
	s.acct.Spills()
	s.acct.OnSpill(s.spill)
	s.x.files.all = append(s.x.files.all, s)
	s.acct.Take(s.bytes)
	s.x.mem.acct.Shrink(s.bytes)
}

// spill writes the state to files. Its error is that of the next hold.
func (s *stash) spill() {
	if s.err != nil || s.n == 0 {
		return
	}
	if err := s.write(); err != nil {
		s.err = s.x.cause(err)
	}
	s.release()
}

// flush writes the rest of a state of which a part was written.
func (s *stash) flush() error {
	s.spill()
	return s.err
}

// drop uncounts n values.
func (s *stash) drop(n int, bytes int64) {
	if n, bytes = min(n, s.n), min(bytes, s.bytes); !s.own {
		s.x.mem.shrink(n, bytes)
	} else {
		s.x.mem.n -= n
		s.acct.Shrink(bytes)
	}
	s.n, s.bytes = s.n-n, s.bytes-bytes
}

// release uncounts everything.
func (s *stash) release() {
	if s.n > 0 || s.bytes > 0 {
		s.drop(s.n, s.bytes)
	}
}

// reset prepares the stash for another input. The account stays, and is closed at the end of the request.
func (s *stash) reset() {
	s.closeFiles()
	s.release()
	s.acct.Rest()
	s.err = nil
}

func (s *stash) closeFiles() {
	for _, f := range s.files {
		f.Close()
	}
	s.files = nil
}

// wrote ends a write of rows to files, which have the given number of bytes now. It tells the profile of the step.
func (s *stash) wrote(rows int, bytes int64) error {
	if s.x.probe != nil {
		s.x.probe.spilled.add(int64(rows), bytes)
	}
	return s.x.carrier().err
}

// spilled is what a step has written to temporary files. bytes is the most that its files have had.
type spilled struct{ runs, rows, bytes int64 }

func (s *spilled) add(rows, bytes int64) {
	s.runs, s.rows, s.bytes = s.runs+1, s.rows+rows, max(s.bytes, bytes)
}

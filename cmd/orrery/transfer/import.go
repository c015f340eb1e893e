package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/few"
)

// Import writes the rows of a Reader to Targets.
//
// One goroutine reads rows and puts them into batches, one for each place; Workers send them. One batch for each worker
// is prepared ahead, because a server's group commit answers several workers at the same moment. Memory is bounded by
// the batches in flight. Every row has a number; the state is the number below which all rows are done:
//
//	rows 0..99 sent and acknowledged, 100..199 in flight, 200..299 acknowledged, 300..350 in an open batch
//	-> the state says 100; after a kill the rows from 100 on are sent again
type Import struct {
	Open     func(ctx context.Context, place string) (Target, error) // the target of a place; called once for each
	Change   func(*Row) error                                        // changes a row before it is prepared; may be nil
	Keep     bool                                                    // rows with an identity that exists are left out
	Dry      bool                                                    // everything but the writing
	MaxBad   int64                                                   // with more bad rows the import ends
	Workers  int
	State    string // file; "" = none is kept
	BadFile  string
	Progress func(rows int64) // called now and then; may be nil

	Start *State // to go on from; nil = the beginning
	Job   State  // Job and Input of a state
}

// Report is what an import has done.
type Report struct {
	Rows    int64 `json:"rows"`    // of the input
	Skipped int64 `json:"skipped"` // of them, those that an earlier run has done
	Written int64 `json:"written"`
	Kept    int64 `json:"kept"` // left out, because the target has the identity
	Bad     int64 `json:"bad"`
}

// errTooManyBad ends an import.
var errTooManyBad = errors.New("too many rows are bad")

// How often the state is saved: saving takes at most a twentieth of the time, because the syncs of its file may make
// those of the server's log wait.
const (
	saveEvery = 200 * time.Millisecond
	savePause = 20
)

// run is a running import.
type run struct {
	*Import
	ctx   context.Context
	stop  context.CancelCauseFunc
	work  chan *Batch
	clock *clock.Clock

	mu      sync.Mutex
	report  Report
	digests map[int64]uint64 // of the rows before each batch that isn't done, by the number of its first row
	next    int64            // the number of the next row
	digest  uint64           // of all rows before it
	busy    bool             // row next-1 is being put into a batch; the digest before it is busyAt
	busyAt  uint64
	bad     []numbered // bad rows that the file doesn't have yet
	saveAt  time.Time  // the earliest time of the next save
	saving  bool       // a save is running: only it uses the next two
	badRows BadRows
	badDone int64

	flight sync.WaitGroup // batches that were given to workers
	saver  sync.WaitGroup
	edges  bool // edges are being read

	open map[string]*Batch
	to   map[string]Target
	hash *xxhash.Digest
	free chan *Batch
}

// numbered is a bad row with its number.
type numbered struct {
	n   int64
	bad Bad
}

// Run imports all rows of a reader. The report is valid with an error too.
func (im *Import) Run(ctx context.Context, in Reader) (Report, error) {
	n := max(1, im.Workers)
	r := &run{Import: im, work: make(chan *Batch, n), digests: map[int64]uint64{}, open: map[string]*Batch{},
		to: map[string]Target{}, hash: xxhash.New(), free: make(chan *Batch, 2*n+1), clock: clock.New()}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.badRows.Path = im.BadFile
	if s := im.Start; s != nil {
		r.badRows.Size, r.badDone, r.report.Bad = s.BadSize, s.Bad, s.Bad
	}
	var workers sync.WaitGroup
	for range n {
		workers.Go(r.worker)
	}
	err := r.read(in)
	close(r.work)
	workers.Wait()
	r.saver.Wait()
	if cause := context.Cause(r.ctx); cause != nil {
		err = cause
	}
	return r.report, errors.Join(err, r.save(err == nil), r.showRest())
}

// skip reads the rows that an earlier run has done, and checks that they are the same.
func (r *run) skip(in Reader) error {
	if r.Start == nil || r.Start.Rows == 0 {
		return nil
	}
	var row Row
	for r.next < r.Start.Rows {
		err := in.Next(&row)
		var bad *Bad
		switch {
		case errors.As(err, &bad):
			r.count(bad.Text)
		case err == io.EOF:
			return fmt.Errorf("%s has fewer rows than were imported before: it has changed", r.Job.Input)
		case err != nil:
			return err
		default:
			r.count(row.bytes())
		}
		if r.next%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
	}
	if r.digest != r.Start.Digest {
		return fmt.Errorf("the first %d rows of %s are not those that were imported before: it has changed",
			r.Start.Rows, r.Job.Input)
	}
	r.report.Rows, r.report.Skipped = r.next, r.next
	return nil
}

// count gives the next row its number.
func (r *run) count(content []byte) (n int64) {
	_, _ = r.hash.Write(content)
	n = r.next
	r.next, r.digest = n+1, r.hash.Sum64()
	return n
}

// read reads all rows into batches.
func (r *run) read(in Reader) error {
	if err := r.skip(in); err != nil {
		return err
	}
	var row Row
	for r.ctx.Err() == nil {
		err := in.Next(&row)
		if err == io.EOF {
			return r.flush()
		}
		var bad *Bad
		if err != nil && !errors.As(err, &bad) {
			return errors.Join(err, r.flush())
		}
		r.mu.Lock()
		before := r.digest
		content := row.bytes()
		if bad != nil {
			content = bad.Text
		}
		n := r.count(content)
		r.busy, r.busyAt = true, before
		r.report.Rows++
		r.mu.Unlock()
		if bad == nil {
			err = r.take(&row, n, before)
		}
		if bad != nil {
			err = r.refuse(n, *bad)
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.busy = false
		r.mu.Unlock()
		if r.Progress != nil && n%512 == 0 {
			r.Progress(n)
		}
	}
	return nil
}

// take puts a row into the batch of its place.
func (r *run) take(row *Row, n int64, before uint64) error {
	if r.Change != nil {
		if err := r.Change(row); err != nil {
			return r.refuse(n, Bad{Line: row.Line, Place: row.Place, Reason: err.Error(), Text: row.bytes()})
		}
	}
	if row.Kind == Edge && !r.edges { // an edge is completed from its ends, so they are written before
		if err := r.flush(); err != nil {
			return err
		}
		r.flight.Wait()
		r.edges = true
	}
	t, err := r.target(row.Place)
	if err != nil {
		return err
	}
	b := r.open[row.Place]
	if b == nil {
		select {
		case b = <-r.free:
			*b = Batch{Buf: b.Buf[:0], Rows: b.Rows[:0], target: t, n0: n}
		default:
			b = &Batch{target: t, n0: n}
		}
		r.open[row.Place] = b
		r.mu.Lock()
		r.digests[n] = before
		r.mu.Unlock()
	}
	had := len(b.Rows)
	if err := t.Prepare(b, row, n); err != nil {
		return r.refuse(n, Bad{Line: row.Line, Place: row.Place, Reason: err.Error(), Text: row.bytes()})
	}
	for i := had; i < len(b.Rows); i++ {
		b.Rows[i].n = n
	}
	if t.Full(b) {
		return r.send(row.Place)
	}
	if len(r.open) > 1 && n%4096 == 0 {
		return r.sendOld(n)
	}
	return nil
}

// oldest is how many rows behind the present one an open batch may begin. An older one holds back the state.
const oldest = 20_000

// sendOld sends the batches that hold back the state.
func (r *run) sendOld(n int64) error {
	for place, b := range r.open {
		if n-b.n0 > oldest {
			if err := r.send(place); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) target(place string) (Target, error) {
	t := r.to[place]
	if t == nil {
		var err error
		if t, err = r.Open(r.ctx, place); err != nil {
			return nil, err
		}
		r.to[place] = t
	}
	return t, nil
}

func (r *run) flush() error {
	for place := range r.open {
		if err := r.send(place); err != nil {
			return err
		}
	}
	return nil
}

// send gives the open batch of a place to a worker.
func (r *run) send(place string) error {
	b := r.open[place]
	delete(r.open, place)
	r.flight.Add(1)
	select {
	case r.work <- b:
	case <-r.ctx.Done():
		r.flight.Done()
	}
	return nil
}

// worker sends batches until there are no more.
func (r *run) worker() {
	for b := range r.work {
		if r.ctx.Err() == nil {
			if err := r.write(b); err != nil {
				r.stop(err)
			}
		}
		r.flight.Done()
	}
}

// write sends a batch until each of its rows is written, left out or bad.
func (r *run) write(b *Batch) error {
	rows := make([]int, len(b.Rows))
	for i := range rows {
		rows[i] = i
	}
	var written, kept int64
	var exist []int
	for replace := false; len(rows) > 0 && !r.Dry; {
		var later []int
		var refused error
		wait, err := b.target.Write(r.ctx, b, rows, replace, func(row int, v Verdict, reason string) {
			switch {
			case v == Written:
				written++
			case v == Exists && r.Keep:
				kept++
			case v == Exists:
				exist = append(exist, row)
			case v == Later:
				later = append(later, row)
			default:
				s := &b.Rows[row]
				refused = errors.Join(refused, r.refuse(s.n, Bad{Line: s.Line, Reason: reason,
					Text: slices.Clone(b.Part(s.Body))}))
			}
		})
		if err = errors.Join(err, refused); err != nil {
			return err
		}
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-r.ctx.Done():
				return r.ctx.Err()
			}
		}
		if rows = later; len(rows) == 0 {
			rows, exist, replace = exist, nil, true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Written += written
	r.report.Kept += kept
	delete(r.digests, b.n0)
	select {
	case r.free <- b:
	default:
	}
	if !r.saving && r.clock.Now().After(r.saveAt) {
		r.saving = true
		r.saver.Go(r.saveAside)
	}
	return nil
}

// saveAside saves the state while rows are read and sent.
func (r *run) saveAside() {
	began := r.clock.Now()
	if err := r.save(false); err != nil {
		r.stop(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.saving, r.saveAt = false, now.Add(max(saveEvery, savePause*now.Sub(began)))
}

// refuse keeps a bad row.
func (r *run) refuse(n int64, bad Bad) error {
	bad.Cut()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, numbered{n, bad})
	if r.report.Bad++; r.report.Bad > r.MaxBad {
		r.stop(fmt.Errorf("%w: %d; the last is line %d: %s", errTooManyBad, r.report.Bad, bad.Line, bad.Reason))
	}
	return nil
}

// done returns the number below which all rows are done, and the digest of these rows.
func (r *run) done() (int64, uint64) {
	n, digest := r.next, r.digest
	if r.busy {
		n, digest = n-1, r.busyAt
	}
	for first, d := range r.digests {
		if first < n {
			n, digest = first, d
		}
	}
	return n, digest
}

// save writes the bad rows that are done to their file, and then the state. whole says that there are no more rows.
// The lock isn't held while it writes, so only one save may run.
func (r *run) save(whole bool) error {
	r.mu.Lock()
	n, digest := r.done()
	if r.Start != nil && n < r.Start.Rows { // not even the rows of the former run are read again
		r.mu.Unlock()
		return nil
	}
	few.Sort(r.bad, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	front := 0
	for front < len(r.bad) && r.bad[front].n < n {
		front++
	}
	done := r.bad[:front:front]
	r.bad = r.bad[front:]
	r.mu.Unlock()
	for i := range done {
		if err := r.badRows.Add(&done[i].bad); err != nil {
			return err
		}
		r.badDone++
	}
	if err := r.badRows.Sync(); err != nil {
		return err
	}
	if r.State == "" || r.Dry {
		return nil
	}
	s := r.Job
	s.Rows, s.Digest, s.Bad, s.BadSize, s.Whole = n, digest, r.badDone, r.badRows.Size, whole
	return s.Save(r.State)
}

// showRest appends the bad rows behind those that are done to the file, for the user: the state doesn't count them,
// and a run that goes on cuts them off.
func (r *run) showRest() (err error) {
	size := r.badRows.Size
	for _, b := range r.bad {
		err = errors.Join(err, r.badRows.Add(&b.bad))
	}
	r.badRows.Size = size
	return errors.Join(err, r.badRows.Close())
}

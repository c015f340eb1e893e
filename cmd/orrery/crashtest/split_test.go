package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/histories"
)

const (
	splitEnv = childEnv + "_SPLITS" // set: the child splits and merges partitions all the time

	ballast    = 2000 // items of 1 KB that no writer changes, so that a copy has something to do
	mostParts  = 12
	partitionT = 10000 // RU/s of one partition
)

// changePartitions splits and merges the partitions of a container, and raises its throughput, so that kills interrupt
// copies, changes of the map and resizes.
func changePartitions(ctx context.Context, eng *core.Engine, c *core.Container) {
	// Every other child begins with a resize: a child lives for a few copies only.
	for n := 4 + rand.IntN(2); ; n = rand.IntN(10) {
		parts := c.Known()
		id := parts[rand.IntN(len(parts))].ID
		var err error
		switch {
		case len(parts) >= mostParts: // the throughput may need them all
			if err = provide(ctx, eng, c, 1); err == nil {
				err = c.MergePartitions(ctx, id)
			}
		case n < 4:
			err = c.MergePartitions(ctx, id)
		case n == 4:
			err = provide(ctx, eng, c, len(parts)+2)
		default:
			err = c.SplitPartition(ctx, id)
		}
		// The last partition can't be merged, nor one that the throughput needs. A resize may have replaced the one
		// that was chosen.
		if err != nil && !status.Is(err, status.BadRequest) && !status.Is(err, status.NotFound) {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
}

// provide gives a container the throughput of so many partitions. Those that it lacks are then made in the background.
func provide(ctx context.Context, eng *core.Engine, c *core.Container, partitions int) error {
	spec := c.Spec().Clone()
	spec.Throughput = core.Throughput{Manual: partitionT * partitions}
	_, err := eng.ReplaceContainer(ctx, database, coll, spec)
	return err
}

// addBallast creates the ballast, as items of one more writer, unless it is there.
func addBallast(ctx context.Context, c *core.Container) error {
	if n, err := c.Count(ctx); err != nil || n >= ballast {
		return err
	}
	pad := strings.Repeat("x", 900)
	for from := 0; from < ballast; from += 100 {
		ws := make([]core.Write, 100)
		for i := range ws {
			n := from + i
			text := fmt.Appendf(nil, `{"id":"ballast-%d-%d","pk":"%d","n":0,"pad":%q}`, writers, n, n, pad)
			d, err := doc.FromJSON(nil, text, doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				return err
			}
			ws[i] = core.Write{Kind: core.Upsert, Doc: d}
		}
		if err := histories.Import(ctx, c, ws); err != nil {
			return err
		}
	}
	return nil
}

// A process whose partitions are split, merged and resized while clients write is killed repeatedly. After each kill
// every acknowledged operation is there, the checker finds nothing, nothing is left of copies that were cut off, and a
// resize goes on although no request uses the container.
func TestKilledSplitsLoseNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	at := make([]int, writers)
	total, copies, resizes, unchanged := 0, 0, 0, 0
	met := func() bool { return copies > 0 && resizes > 0 }
	kill := 0
	for ; kill < kills(t) || !met() && kill < 4*kills(t); kill++ {
		// On a slow machine, on which the kills have met nothing yet, the children live longer.
		lives := time.Duration(50+r.IntN(250)) * time.Millisecond * time.Duration(1+kill/kills(t))
		acked := runChild(t, dir, at, []string{splitEnv + "=1"}, lives, nil)
		for w := range at {
			total += acked[w] - at[w]
		}
		var left leftOver
		if at, left = verifySplits(t, dir, acked); left.copying {
			copies++
		}
		if left.ballast < unchanged {
			t.Errorf("%d items of ballast, %d before", left.ballast, unchanged)
		}
		unchanged = left.ballast
		if left.resizing {
			resizes++
		}
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Logf("%d operations acknowledged; of %d kills %d met a copy, and %d a resize", total, kill, copies, resizes)
	if total < kill*writers || !met() {
		t.Error("the kills came when nothing happened: this tests nothing")
	}
}

// leftOver is what a kill has left.
type leftOver struct {
	copying, resizing bool // it has interrupted a copy, or a resize
	ballast           int  // items
}

// verifySplits compares the store with the writers' histories. It returns the next step of each writer.
func verifySplits(t *testing.T, dir string, acked []int) (next []int, left leftOver) {
	t.Helper()
	ctx := context.Background()
	e, err := pebblekv.Open(dir, pebblekv.Options{MemTableMB: 1})
	if err != nil {
		t.Fatal(err)
	}
	eng, err := core.Open(ctx, e, core.Options{})
	if err != nil {
		t.Fatal(errors.Join(err, e.Close()))
	}
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	resizing := func() bool {
		is, err := eng.Resizing(context.Background(), database, coll)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	left = leftOver{copying: eng.DropsLeft() > 0, resizing: resizing()}
	for begun := time.Now(); eng.DropsLeft() > 0 || resizing(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("%d removals are left, resizing %v", eng.DropsLeft(), resizing())
		}
	}
	if problems, err := eng.Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("check: %v %s", err, strings.Join(problems, "\n"))
	}
	c, err := eng.Container(database, coll)
	if err != nil {
		t.Fatal(err)
	}
	found, err := histories.Found(ctx, c, writers+1)
	if err != nil {
		t.Fatal(err)
	}
	next = make([]int, writers)
	for w := range next {
		if next[w], err = histories.Steps(w, found[w], acked[w], acked[w]+1); err != nil {
			t.Error(err)
		}
	}
	left.ballast = len(found[writers])
	return next, left
}

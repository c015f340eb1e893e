package pebblekv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/internal/race"
)

// One wrong byte is found at any place, and two wrong bytes aren't taken for one.
func TestOneByteOff(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	sum := masked(crc32.Checksum(b, castagnoli))
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= byte(1 + r.IntN(255))
		if !oneByteOff(c, sum) {
			t.Fatalf("byte %d", i)
		}
		c[(i+7)%len(c)] ^= 0x5a
		if oneByteOff(c, sum) {
			t.Fatalf("bytes %d and %d", i, (i+7)%len(c))
		}
	}
}

// logOf writes n batches into a store in memory, stops as if the process were killed, and returns the newest log.
func logOf(t *testing.T, n int) (fs *vfs.MemFS, path string, num uint32) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	db, err := pebble.Open("db", &pebble.Options{FS: mem, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := db.Set(fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte{byte(i) | 1}, 700),
			pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	fs = mem.CrashClone(vfs.CrashCloneCfg{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := partsOf(fs, "db")
	if err != nil {
		t.Fatal(err)
	}
	l := p.logs[len(p.logs)-1]
	return fs, fs.PathJoin("db", l.name), uint32(l.num)
}

func fileBytes(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil && len(b) > 0 {
		t.Fatal(err)
	}
	return b
}

// Every flipped byte of a log's records is damage. A log that is cut anywhere ends like after a crash. So does a log
// with zeros from a sector's beginning to the end.
func TestLogEndings(t *testing.T) {
	race.Alone(t)
	const n = 90
	fs, path, num := logOf(t, n)
	b := fileBytes(t, fs, path)
	scan := func(b []byte) (e ending, records int) {
		r := &recordFile{f: bytes.NewReader(b), size: int64(len(b)), num: num}
		e, err := r.scan(false, func(int64, []byte) error { records++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return e, records
	}
	whole, records := scan(b)
	if whole.how != endOpen || records < n {
		t.Fatalf("%+v, %d records", whole, records)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		at := rnd.IntN(int(whole.at))
		c := bytes.Clone(b)
		c[at] ^= byte(1 + rnd.IntN(255))
		if e, k := scan(c); e.how != endDamaged && k != records {
			t.Fatalf("flip at %d of %d: %+v after %d records", at, whole.at, e, k)
		}
		if e, k := scan(b[:at]); e.how == endDamaged || e.how == endClosed && at > 0 {
			t.Fatalf("cut at %d: %+v after %d records", at, e, k)
		}
		c = bytes.Clone(b)
		from := at &^ (tornSector - 1)
		clear(c[from:])
		e, k := scan(c)
		if e.how == endDamaged {
			t.Fatalf("zeros from %d: %+v", from, e)
		}
		if kept, same := scan(c[:e.at]); kept.how == endTorn || same != k {
			t.Fatalf("zeros from %d: %+v after %d records; its first %d bytes: %+v after %d", from, e, k, e.at, kept,
				same)
		}
	}
}

// A chunk of which a crash has kept all but one page of 4 KiB is never taken for a chunk that was damaged later, not
// even by chance.
func TestTornChunksAreNotDamaged(t *testing.T) {
	const num, length = 9, 24 << 10
	rnd := rand.New(rand.NewPCG(11, 12))
	r := &recordFile{num: num, size: recordBlock}
	b := make([]byte, recordBlock)
	for round := range race.Fewer(3000, 300) {
		if round%100 == 0 {
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
		}
		at := rnd.IntN(recordBlock - length - syncedHeader)
		h := b[at:]
		binary.LittleEndian.PutUint16(h[4:], length)
		h[6] = 9
		binary.LittleEndian.PutUint32(h[7:], num)
		binary.LittleEndian.PutUint64(h[11:], 0)
		binary.LittleEndian.PutUint32(h, rnd.Uint32()) // the sum of the missing content is as good as random
		lost := b[at/4096*4096+4096*(1+rnd.IntN(length/4096-1)):][:4096]
		kept := bytes.Clone(lost)
		clear(lost)
		if r.wasWhole(b, 0, at) {
			t.Errorf("round %d: damaged", round)
		}
		copy(lost, kept)
	}
}

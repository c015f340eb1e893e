package spill

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
)

var bg = context.Background()

// pair is an element for tests, ordered by key. n identifies it, or is the number of merged elements.
type pair struct {
	key  uint32
	n    uint32
	text string
}

func appendPair(dst []byte, p pair) []byte {
	dst = binary.BigEndian.AppendUint32(dst, p.key)
	return append(binary.BigEndian.AppendUint32(dst, p.n), p.text...)
}

func readPair(b []byte) (pair, error) {
	return pair{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), string(b[8:])}, nil
}

func comparePairs(a, b pair) int { return cmp.Compare(a.key, b.key) }

var apart = Codec[pair]{Append: appendPair, Decode: readPair, Compare: comparePairs}

var counted = Codec[pair]{Append: appendPair, Decode: readPair, Compare: comparePairs,
	Merge: func(a, b pair) (pair, error) {
		a.n += b.n
		return a, nil
	}}

// write writes the pairs as one run.
func write(t *testing.T, r *Runs[pair], ps []pair) error {
	t.Helper()
	ps = slices.Clone(ps)
	slices.SortStableFunc(ps, comparePairs)
	return r.Write(bg, slices.Values(ps))
}

// read returns all elements.
func read[T any](m *Merged[T]) (out []T, err error) {
	for {
		x, ok, err := m.Next()
		if !ok || err != nil {
			return out, err
		}
		out = append(out, x)
	}
}

// space is a space in a directory of the test. At the end it must have no files and no bytes.
func space(t *testing.T, o Options) *Space {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "spill"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { empty(t, s) })
	return s
}

func empty(t *testing.T, s *Space) {
	t.Helper()
	if s.Files() != 0 || s.Used() != 0 {
		t.Errorf("%d files with %d bytes are left", s.Files(), s.Used())
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// Runs are merged in order, and equal elements in the order of their runs, for any number of runs and any size of
// elements. At most fan-in runs are open at a time.
func TestRunsAreMerged(t *testing.T) {
	for _, tc := range []struct {
		runs, each, size int
	}{{1, 10, 10}, {2, 1000, 10}, {31, 50, 200}, {32, 3, 10}, {33, 3, 10}, {200, 20, 10}, {1100, 2, 10},
		{5, 3, 2 << 20}, {3, 0, 0}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			s := space(t, Options{})
			b := budget.New(64<<20, 0)
			acct := b.Open("sort")
			r := NewRuns(s, acct, apart)
			defer acct.Close()
			defer r.Close()
			rnd := rand.New(rand.NewPCG(1, 2))
			var want []pair
			for range tc.runs {
				var ps []pair
				for range tc.each {
					ps = append(ps, pair{rnd.Uint32N(50), uint32(len(want) + len(ps)), strings.Repeat("x", tc.size)})
				}
				want = append(want, ps...)
				if err := write(t, r, ps); err != nil {
					t.Fatal(err)
				}
			}
			slices.SortStableFunc(want, func(a, b pair) int {
				return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.n, b.n))
			})
			for range 2 { // it can be read again
				if len(want) == 0 {
					break
				}
				m, err := r.Merge(bg)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(m.heads); n > r.fanIn() {
					t.Errorf("%d runs are open", n)
				}
				got, err := read(m)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d elements, %v; want %d", len(got), err, len(want))
				}
				m.Close()
				if acct.Used() != 0 {
					t.Errorf("%d bytes are still charged", acct.Used())
				}
			}
		})
	}
}

// Equal elements of several runs are merged into one.
func TestRunsMergeEqualElements(t *testing.T) {
	s := space(t, Options{})
	r := NewRuns(s, nil, counted)
	defer r.Close()
	rnd := rand.New(rand.NewPCG(3, 4))
	want := map[uint32]uint32{}
	for range 100 {
		var ps []pair
		for _, k := range rnd.Perm(40)[:10] {
			ps = append(ps, pair{uint32(k), 1, ""})
			want[uint32(k)]++
		}
		if err := write(t, r, ps); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.Merge(bg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(m)
	if err != nil || len(got) != len(want) || !slices.IsSortedFunc(got, comparePairs) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, p := range got {
		if p.n != want[p.key] {
			t.Errorf("%d of %d, want %d", p.n, p.key, want[p.key])
		}
	}
}

// faulty is a file that fails.
type faulty struct {
	File
	room   *int64 // bytes that can still be written
	damage func(b []byte, at int64)
}

func (f *faulty) WriteAt(b []byte, at int64) (int, error) {
	if *f.room -= int64(len(b)); *f.room < 0 {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

func (f *faulty) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if f.damage != nil {
		f.damage(b[:n], at)
	}
	return n, err
}

// A disk without space is StoreFull wherever it happens: by the disk's error, by the space reserved for the store, by
// the limit of the files. No file is left.
func TestAFullDiskIsRefused(t *testing.T) {
	big := strings.Repeat("x", 1000)
	for name, of := range map[string]func(n int64) Options{
		"disk": func(n int64) Options {
			room := n
			return Options{Wrap: func(f File) File { return &faulty{File: f, room: &room} }}
		},
		"limit": func(n int64) Options { return Options{Limit: n + 1} },
		"room": func(n int64) Options {
			return Options{Room: func() int64 { n -= roomStep; return n }}
		},
	} {
		// 10 MB are written, and 8 again when 32 runs are merged.
		for _, n := range []int64{0, 100 << 10, 5 << 20, 9 << 20} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				s := space(t, of(n))
				r := NewRuns(s, nil, apart)
				defer r.Close()
				var err error
				for i := 0; i < 40 && err == nil; i++ {
					ps := make([]pair, 250)
					for k := range ps {
						ps[k] = pair{uint32(i * k % 97), uint32(k), big}
					}
					err = write(t, r, ps)
				}
				if !status.Is(err, status.StoreFull) {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

// A run that differs from what was written is Corruption, and never other rows.
func TestADamagedRunIsFound(t *testing.T) {
	for at := int64(0); at < 3000; at += 7 {
		room := int64(1 << 40)
		s := space(t, Options{Wrap: func(f File) File {
			return &faulty{File: f, room: &room, damage: func(b []byte, from int64) {
				if at >= from && at < from+int64(len(b)) {
					b[at-from] ^= 0x10
				}
			}}
		}})
		r := NewRuns(s, nil, apart)
		for range 3 {
			ps := make([]pair, 50)
			for k := range ps {
				ps[k] = pair{uint32(k), 1, "some text"}
			}
			if err := write(t, r, ps); err != nil {
				t.Fatal(err)
			}
		}
		m, err := r.Merge(bg)
		if err == nil {
			_, err = read(m)
		}
		if at < r.Bytes() && !status.Is(err, status.Corruption) {
			t.Errorf("byte %d of %d: %v", at, r.Bytes(), err)
		}
		r.Close()
	}
}

// A file that has become shorter is detected too.
func TestAShortRunIsFound(t *testing.T) {
	var last File
	s := space(t, Options{Wrap: func(f File) File { last = f; return f }})
	r := NewRuns(s, nil, apart)
	defer r.Close()
	if err := write(t, r, []pair{{1, 1, strings.Repeat("x", 5000)}}); err != nil {
		t.Fatal(err)
	}
	if err := last.Truncate(2000); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Merge(bg); !status.Is(err, status.Corruption) {
		t.Errorf("the error is %v", err)
	}
}

// A write and a merge end with their context.
func TestRunsEndWithTheContext(t *testing.T) {
	s := space(t, Options{})
	r := NewRuns(s, nil, apart)
	defer r.Close()
	ctx, cancel := context.WithCancel(bg)
	n := 0
	err := r.Write(ctx, func(yield func(pair) bool) {
		for yield(pair{uint32(n), 0, ""}) {
			if n++; n == 5000 {
				cancel()
			}
		}
	})
	if !status.Is(err, status.Timeout) || n > 5000+2*ctxSteps {
		t.Errorf("%v after %d", err, n)
	}
}

// A space with its own directory removes its old files when it is opened, and no others. Where the system allows it,
// files have no name.
func TestASpaceIsEmptiedAtStart(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{prefix + "123" + suffix, "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := func() (out []string) {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			out = append(out, e.Name())
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"notes.txt"}) {
		t.Errorf("left: %v", got)
	}
	r := NewRuns(s, nil, apart)
	defer r.Close()
	if err := write(t, r, []pair{{1, 1, ""}}); err != nil {
		t.Fatal(err)
	}
	if got := names(); runtime.GOOS != "windows" && len(got) != 1 {
		t.Errorf("a file has a name: %v", got)
	}
}

// A Sorter gives the same elements with and without files. Those that it has given don't come again after a spill.
func TestSorter(t *testing.T) {
	var want []pair
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 20_000 {
		want = append(want, pair{rnd.Uint32N(1000), uint32(i), "text"})
	}
	sorted := slices.Clone(want)
	slices.SortStableFunc(sorted, comparePairs)
	for _, tc := range []struct {
		name  string
		bytes int // of an element
		late  bool
		files bool
	}{{"in memory", 10, false, false}, {"in files", 1000, false, true}, {"written late", 10, true, true}} {
		t.Run(tc.name, func(t *testing.T) {
			s := space(t, Options{})
			b := budget.New(8<<20, 0)
			acct := b.Open("sort")
			x := NewSorter(bg, s, acct, apart)
			for _, p := range want {
				if err := x.Add(p, tc.bytes); err != nil {
					t.Fatal(err)
				}
			}
			if err := x.End(bg); err != nil {
				t.Fatal(err)
			}
			var got []pair
			for {
				p, ok, err := x.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if got = append(got, p); tc.late && len(got) == 7777 {
					if err := x.Spill(bg); err != nil {
						t.Fatal(err)
					}
					if x.Held() != 0 {
						t.Errorf("%d bytes are held", x.Held())
					}
				}
			}
			if !slices.Equal(got, sorted) {
				t.Errorf("%d elements", len(got))
			}
			if (s.Written() > 0) != tc.files {
				t.Errorf("%d bytes were written", s.Written())
			}
			x.Close()
			if acct.Close(); b.Used() != 0 {
				t.Errorf("%d bytes are still charged", b.Used())
			}
		})
	}
}

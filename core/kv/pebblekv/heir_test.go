package pebblekv

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log gets its name when the one before it holds what it held, and not otherwise.
func TestAdoptLogs(t *testing.T) {
	const old = "what the old log holds"
	after := ended{"000009", int64(len(old)), 0}
	for _, tc := range []struct {
		name  string
		files map[string]string // 000009.log; old and what Pebble has asked the disk to keep free behind it when absent
		chain bool              // another log behind the heir
		want  string
	}{
		{"whole", nil, false, "000009.log 000010.log"},
		{"whole, two wait", nil, true, "000009.log 000010.log 1000011.log"},
		{"a byte short", map[string]string{"000009.log": old[:len(old)-1]}, true, "000009.log"},
		{"a byte is another", map[string]string{"000009.log": "W" + old[1:]}, false, "000009.log"},
		{"empty", map[string]string{"000009.log": ""}, false, "000009.log"},
		{"gone", map[string]string{"000009.log": "-"}, true, ""},
		{"named already", map[string]string{"000010.log": "new"}, false, "000009.log 000010.log"},
		{"strangers", map[string]string{"heir-": "", "heir-1-2-3": "", "heir-1-2-x-0": "", "heir-1-2-3-x": "", "heir-1-2-+3-0000000000000000": ""}, false,
			"000009.log 000010.log heir- heir-1-2-+3-0000000000000000 heir-1-2-3 heir-1-2-3-x heir-1-2-x-0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			var fs vfs.FS = mem
			put := func(name, text string) {
				f, err := fs.Create("db/"+name, vfs.WriteCategoryUnspecified)
				if err == nil {
					_, err = io.WriteString(f, text)
				}
				if err = errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
			}
			if err := fs.MkdirAll("db", 0o755); err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"000009.log": old + "\x00\x00\x00"}
			files[heir{"000010", sumOf(after, old)}.String()] = "new"
			if tc.chain {
				files[heir{"1000011", sumOf(ended{name: "000010", size: 3}, "new")}.String()] = "newest"
			}
			whole := map[string]ended{"000009.log": sumOf(after, old), "000010.log": sumOf(ended{size: 3}, "new")}
			for name, text := range tc.files {
				files[name] = text
			}
			for name, text := range files {
				if text != "-" {
					put(name, text)
				}
			}
			syncRoot(t, fs)
			for range 2 { // the second time there is nothing to do, whatever becomes of the machine before
				if err := adoptLogs(fs, "db", slog.New(slog.DiscardHandler)); err != nil {
					t.Fatal(err)
				}
				if tc.files == nil {
					fs = mem.CrashClone(vfs.CrashCloneCfg{})
				}
				names, err := fs.List("db")
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(names)
				if got := strings.Join(names, " "); got != tc.want {
					t.Errorf("got %s\nwant %s", got, tc.want)
				}
				for _, log := range names[:max(0, len(names)-1)] { // the last one is as torn as ever
					if e, ok := whole[log]; ok && tc.files == nil {
						if ok, err := intact(fs, "db/"+log, e); !ok || err != nil {
							t.Errorf("%s is torn: %v", log, err)
						}
					}
				}
			}
		})
	}
}

func syncRoot(t testing.TB, fs vfs.FS) {
	t.Helper()
	d, err := fs.OpenDir("")
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sumOf(e ended, text string) ended {
	f := newLateFile(nil, nil, "")
	_, _ = f.sum.Write([]byte(text))
	e.sum = f.sum.Sum64()
	return e
}

// Whatever lies in the directory, what is taken for an heir has the name that is looked for.
func FuzzHeir(f *testing.F) {
	for _, name := range []string{heir{"000010", ended{"000009", 17, 1 << 63}}.String(), "heir-", "heir-1-2-3-x", "heir-1-2-+3-0", "000001.log"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if h, ok := parseHeir(name); ok && h.String() != name {
			t.Errorf("%q is taken for %q", name, h.String())
		}
	})
}

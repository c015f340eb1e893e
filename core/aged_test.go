package core_test

import (
	"bytes"
	"encoding/binary"
	stdjson "encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// age turns a store into what it would be in format 2 before its upgrade has begun: heads of that format, index and
// number entries under the kinds of that format, and no sign of an upgrade. It returns how many entries it has moved.
func age(t testing.TB, eng kv.Engine) (moved int) {
	t.Helper()
	snap := kvtest.Snapshot(t, eng)
	defer snap.Close()
	it, err := snap.Iter([]byte{0}, []byte{0xff})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var b kv.Batch
	for ok := it.First(); ok; ok = it.Next() {
		key, val := it.Key(), it.Value()
		if kind, _, _, ok := keys.ParseMeta(key); ok {
			if kind == keys.MetaAccount {
				b.Put(key, withoutFormat(t, val))
			}
			continue
		}
		slot, kind, ok := keys.ParseSlot(key)
		if !ok {
			continue
		}
		former := keys.KindFormerNumber
		switch kind {
		case keys.KindHead:
			b.Put(key, agedHead(val))
			continue
		case keys.KindIndex:
			former = keys.KindFormerIndex
		case keys.KindNumber:
		default:
			continue
		}
		moved++
		b.Delete(key)
		b.Put(append(keys.AppendPrefix(nil, slot, former), key[keys.PrefixLen:]...), val)
	}
	cm, err := eng.Write(bg, &b, nil)
	if err == nil {
		err = cm.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

// agedHead returns a head in the previous format, see docs/formats.md.
func agedHead(head []byte) []byte {
	out := append([]byte{1}, head[2:2+8*4]...)        // LSN, ticks, items, bytes
	out = append(out, head[2+8*4:2+8*4+4]...)         // version of the policy
	out = binary.BigEndian.AppendUint64(out, 0)       // floor of the log
	out = append(out, 0xff, 0xff, 0xff, 0xff)         // classes
	out = append(out, bytes.Repeat([]byte{0}, 64)...) // elements and cut values
	return append(out, 0)                             // counted paths
}

// withoutFormat removes the format from the account's entry.
func withoutFormat(t testing.TB, val []byte) []byte {
	t.Helper()
	at := bytes.IndexByte(val, '{')
	m := map[string]any{}
	d := stdjson.NewDecoder(bytes.NewReader(val[at:]))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	delete(m, "format")
	b, err := stdjson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(val[:at]), b...)
}

// ageDir ages a closed store, and its identity.
func ageDir(t testing.TB, dir string) {
	t.Helper()
	eng, err := pebblekv.Open(dir, pebblekv.Options{Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		t.Fatal(err)
	}
	age(t, eng)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "identity.json")
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, agedIdentity(t, b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// agedIdentity returns an identity as format 2 stores it.
func agedIdentity(t testing.TB, b []byte) []byte {
	t.Helper()
	var i struct {
		kv.Identity
		Sum string `json:"sum"`
	}
	if err := stdjson.Unmarshal(b, &i); err != nil {
		t.Fatal(err)
	}
	i.Format, i.Sum = 2, ""
	b, err := stdjson.Marshal(i)
	if err == nil {
		i.Sum = fmt.Sprintf("%016x", xxhash.Sum64(b))
		b, err = stdjson.Marshal(i)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

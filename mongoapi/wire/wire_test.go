package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// doc is {"a": 1} with an int32.
var doc = []byte{12, 0, 0, 0, 0x10, 'a', 0, 1, 0, 0, 0, 0}

func msg(flags uint32, sections ...[]byte) []byte {
	b := appendHeader(nil, 7, 0, OpMsg)
	b = binary.LittleEndian.AppendUint32(b, flags)
	for _, s := range sections {
		b = append(b, s...)
	}
	if flags&FlagChecksum != 0 {
		binary.LittleEndian.PutUint32(b, uint32(len(b)+4))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	return EndMsg(b, 0)
}

func body(d []byte) []byte { return append([]byte{0}, d...) }

func seq(name string, docs ...[]byte) []byte {
	b := append([]byte{0, 0, 0, 0}, name...)
	b = append(b, 0)
	for _, d := range docs {
		b = append(b, d...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return append([]byte{1}, b...)
}

func TestParseMsg(t *testing.T) {
	long := append([]byte(nil), doc...)
	long[0] = 99
	broken := msg(FlagChecksum, body(doc))
	broken[20] ^= 1
	for _, c := range []struct {
		name string
		in   []byte
		ok   bool
		docs int // in the sequences
	}{
		{"body", msg(0, body(doc)), true, 0},
		{"sequence before the body", msg(0, seq("documents", doc, doc), body(doc)), true, 2},
		{"checksum", msg(FlagChecksum, body(doc)), true, 0},
		{"wrong checksum", broken, false, 0},
		{"unknown optional bit", msg(1<<20, body(doc)), true, 0},
		{"unknown required bit", msg(1<<5, body(doc)), false, 0},
		{"no body", msg(0, seq("documents", doc)), false, 0},
		{"two bodies", msg(0, body(doc), body(doc)), false, 0},
		{"section of kind 3", msg(0, []byte{3}, body(doc)), false, 0},
		{"document longer than the message", msg(0, body(long)), false, 0},
		{"sequence without name", msg(0, body(doc), []byte{1, 6, 0, 0, 0, 'x', 'y'}), false, 0},
		{"no flags", msg(0)[:16], false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Msg
			err := ParseMsg(c.in, &m)
			if (err == nil) != c.ok {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			n := 0
			for i := range m.Seqs {
				for _, ok := m.Seqs[i].Next(); ok; _, ok = m.Seqs[i].Next() {
					n++
				}
			}
			if !bytes.Equal(m.Body, doc) || n != c.docs {
				t.Fatalf("body %x, %d documents", m.Body, n)
			}
		})
	}
}

func TestParseHeader(t *testing.T) {
	for _, c := range []struct {
		length uint32
		ok     bool
	}{{HeaderSize - 1, false}, {HeaderSize, true}, {MaxMessage, true}, {MaxMessage + 1, false}, {1 << 31, false}} {
		head := appendHeader(nil, 1, 0, OpMsg)
		binary.LittleEndian.PutUint32(head, c.length)
		if h, err := ParseHeader(head, MaxMessage); (err == nil) != c.ok || h.OpCode != OpMsg {
			t.Errorf("a length of %d: %v", c.length, err)
		}
	}
}

func TestParseQuery(t *testing.T) {
	b := appendHeader(nil, 1, 0, OpQuery)
	b = append(b, 4, 0, 0, 0)
	b = append(b, "admin.$cmd\x00"...)
	b = append(b, 0, 0, 0, 0, 1, 0, 0, 0)
	b = EndMsg(append(b, doc...), 0)
	q, err := ParseQuery(b)
	if err != nil || string(q.Collection) != "admin.$cmd" || !bytes.Equal(q.Doc, doc) {
		t.Fatalf("%+v %v", q, err)
	}
	for n := range b {
		if _, err := ParseQuery(b[:n]); err == nil {
			t.Fatalf("cut at %d: no error", n)
		}
	}
}

// FuzzParse: no input makes the parsers panic.
func FuzzParse(f *testing.F) {
	f.Add(msg(0, body(doc), seq("documents", doc, doc)))
	f.Add(msg(FlagChecksum, body(doc)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Msg
		if ParseMsg(b, &m) == nil {
			for i := range m.Seqs {
				for _, ok := m.Seqs[i].Next(); ok; _, ok = m.Seqs[i].Next() {
				}
			}
		}
		_, _ = ParseQuery(b)
	})
}

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// all are the compressors, and noop.
var all = []Compressor{Noop, Snappy, Zlib, Zstd}

// long is an OP_MSG that compressors make shorter.
func long(n int) []byte {
	return msg(0, seq("documents", bytes.Split(bytes.Repeat(append(doc, '|'), n), []byte("|"))[:n]...), body(doc))
}

// wrap returns a message as an OP_COMPRESSED. Noop isn't something that AppendCompressed writes.
func wrap(t testing.TB, m []byte, c Compressor) []byte {
	if c == Noop {
		b := appendHeader(nil, 7, 0, OpCompressed)
		b = binary.LittleEndian.AppendUint32(b, OpMsg)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(m)-HeaderSize))
		return EndMsg(append(append(b, 0), m[HeaderSize:]...), 0)
	}
	out, ok := AppendCompressed(nil, m, c)
	if !ok {
		t.Fatalf("compressor %d: nothing", c)
	}
	return out
}

// unwrap returns the message in an OP_COMPRESSED.
func unwrap(m []byte, most int32) ([]byte, error) {
	h, err := ParseHeader(m, MaxMessage)
	if err != nil {
		return nil, err
	}
	c, err := ParseCompressed(h, m, most)
	if err != nil {
		return nil, err
	}
	return c.Append(make([]byte, 0, c.Header.Length))
}

// TestCompressed: each compressor returns what was compressed, several times and into a buffer with other content.
func TestCompressed(t *testing.T) {
	for _, c := range all {
		for _, n := range []int{100, 5000, 90_000} {
			m := long(n)
			w := wrap(t, m, c)
			got, err := unwrap(w, MaxMessage)
			if err != nil || !bytes.Equal(got, m) {
				t.Fatalf("compressor %d: %d bytes as %d: %d bytes, %v", c, len(m), len(w), len(got), err)
			}
			if c == Noop {
				continue
			}
			behind, ok := AppendCompressed([]byte("before"), m, c)
			if !ok || string(behind[:6]) != "before" || !bytes.Equal(behind[6:], w) {
				t.Errorf("compressor %d: appended to a buffer it is another message", c)
			}
		}
	}
}

// TestCompressedOnlyIfShorter: what has no repetitions is sent as it is.
func TestCompressedOnlyIfShorter(t *testing.T) {
	m := msg(0, body(doc))
	for _, c := range all {
		if out, ok := AppendCompressed([]byte("x"), m, c); ok || string(out) != "x" {
			t.Errorf("compressor %d: %d bytes instead of %d", c, len(out), len(m))
		}
	}
}

// TestCompressedIsRefused: what a message claims is checked, and its content must be what it claims.
func TestCompressedIsRefused(t *testing.T) {
	change := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	m := long(1000)
	for _, x := range []struct {
		name   string
		change func([]byte) []byte
		want   string // part of the error
	}{
		{"without a head", func(b []byte) []byte { return b[:HeaderSize+8] }, "Invalid compressed message header"},
		{"an unknown compressor", func(b []byte) []byte { b[HeaderSize+8] = 4; return b }, "is not available"},
		{"in itself", change(HeaderSize, OpCompressed), "contains another one"},
		{"a negative size", change(HeaderSize+4, 1<<31), "negative in size"},
		{"more than a message may have", change(HeaderSize+4, MaxMessage-HeaderSize+1), "larger than maximum"},
		{"one byte too many", change(HeaderSize+4, uint32(len(m)-HeaderSize-1)), "another size"},
		{"one byte too few", change(HeaderSize+4, uint32(len(m)-HeaderSize+1)), "another size"},
		{"nothing", change(HeaderSize+4, 0), "another size"},
		{"cut", func(b []byte) []byte { return b[:len(b)-3] }, "another size"},
		{"no content", func(b []byte) []byte { return b[:compressedHead] }, "another size"},
	} {
		for _, c := range all {
			b := EndMsg(x.change(wrap(t, m, c)), 0)
			_, err := unwrap(b, MaxMessage)
			var bad Malformed
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s, compressor %d: %v", x.name, c, err)
			}
		}
	}
	if _, err := unwrap(wrap(t, m, Zstd), int32(len(m)-1)); err == nil {
		t.Error("a limit isn't one")
	}
}

// FuzzCompressed: no content makes a decompressor write beyond the size that was claimed, or panic.
func FuzzCompressed(f *testing.F) {
	for _, c := range all {
		f.Add(wrap(f, long(100), c))
		f.Add(wrap(f, long(3), Noop))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderSize {
			return
		}
		const most = 1 << 20
		got, err := unwrap(EndMsg(b, 0), most)
		if err == nil && (len(got) > most || int(binary.LittleEndian.Uint32(got)) != len(got)) {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

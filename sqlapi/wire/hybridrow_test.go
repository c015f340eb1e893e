package wire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

// sentByDotNet is what Microsoft.Azure.Cosmos 3.48.0 has sent for a transactional batch: a create without an answer, an
// upsert with If-Match, a replace with If-None-Match and an indexing directive, a read with If-None-Match, a patch with
// a condition, and a delete with a long If-Match.
const sentByDotNet = "gfDY/38BCgAAAIHx2P9/KgAAADSDNPKBcFThf0MAAAAAAgAAABl7ImlkIjoiMSIsInBrIjoicCIsInYiOjB9A" +
	"wyB8dj/fy4AAADIwjobgXBU4X9DFAAAAAIAAAAZeyJpZCI6IjIiLCJwayI6InAiLCJ2IjowfRQJAyJlIoHx2P" +
	"9/OgAAACNj7qaBcFThf1MFAAAAAgAAAAEyGXsiaWQiOiIyIiwicGsiOiJwIiwidiI6MH0UCAdFeGNsdWRlFAo" +
	"BKgMMgfHY/38UAAAAnW1YzIFwVOF/EwIAAAACAAAAATIUCgF4gfHY/39sAAAAt++sOIFwVOF/UwEAAAACAAAA" +
	"ATJXeyJjb25kaXRpb24iOiJmcm9tIGMgd2hlcmUgYy52ID0gMCIsIm9wZXJhdGlvbnMiOlt7Im9wIjoiaW5jc" +
	"iIsInBhdGgiOiIvdiIsInZhbHVlIjoxfV19FAkBeoHx2P9/lgAAAI8uKmGBcFThfxMEAAAAAgAAAAEyFAmCAX" +
	"FxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXF" +
	"xcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFx" +
	"cXE="

func dotNetBody(t testing.TB) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(sentByDotNet)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func operationsOf(b []byte) (out []RowOperation, err error) {
	err = EachOperation(b, func(op *RowOperation) error {
		out = append(out, *op)
		return nil
	})
	return out, err
}

func TestOperationsOfDotNet(t *testing.T) {
	got, err := operationsOf(dotNetBody(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []RowOperation{
		{Type: 0, Body: []byte(`{"id":"1","pk":"p","v":0}`), Minimal: true},
		{Type: 20, Body: []byte(`{"id":"2","pk":"p","v":0}`), IfMatch: `"e"`},
		{Type: 5, ID: "2", Body: []byte(`{"id":"2","pk":"p","v":0}`), Indexing: "Exclude", IfNoneMatch: "*",
			Minimal: true},
		{Type: 2, ID: "2", IfNoneMatch: "x"},
		{Type: 1, ID: "2", IfMatch: "z", Body: []byte(`{"condition":"from c where c.v = 0","operations":` +
			`[{"op":"incr","path":"/v","value":1}]}`)},
		{Type: 4, ID: "2", IfMatch: strings.Repeat("q", 130)},
	}
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("operation %d: %+v, want %+v", i, got[min(i, len(got)-1)], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d operations, want %d", len(got), len(want))
	}
}

// A segment may stand between records, and may have a comment.
func TestSegments(t *testing.T) {
	segment := AppendRowSegment(nil)
	long := append(slices.Clone(segment), "comment"...)
	binary.LittleEndian.PutUint32(long[rowHeader+1:], uint32(len(long)))
	read := record(unhex(t, "7054E17F 13 02000000 02000000 01 32"))
	for name, x := range map[string]struct {
		b    []byte
		want int
	}{
		"none":    {segment, 0},
		"two":     {slices.Concat(segment, read, long, read), 2},
		"comment": {slices.Concat(long, read), 1},
	} {
		if got, err := operationsOf(x.b); err != nil || len(got) != x.want {
			t.Errorf("%s: %d operations, %v", name, len(got), err)
		}
	}
}

// record returns a row, whose first byte is left out, with its record.
func record(row []byte) []byte {
	row = append([]byte{rowVersion}, row...)
	b := binary.LittleEndian.AppendUint32(appendRowHeader(nil, recordSchema), uint32(len(row)))
	return append(binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(row)), row...)
}

func TestBadRows(t *testing.T) {
	for name, row := range map[string]string{
		"another schema":             "7154E17F 13 02000000 02000000 01 32",
		"no type":                    "7054E17F 12 02000000 02000000 01 32",
		"too many fields":            "7054E17F 93 02000000 02000000 01 32",
		"short":                      "7054E17F 13 02000000 0200",
		"no length":                  "7054E17F 13 02000000 02000000",
		"length beyond the row":      "7054E17F 13 02000000 02000000 02 32",
		"length of ten bytes":        "7054E17F 13 02000000 02000000 FFFFFFFFFFFFFFFFFF7F",
		"length without an end":      "7054E17F 13 02000000 02000000 80",
		"id that isn't text":         "7054E17F 13 02000000 02000000 01 FF",
		"key that isn't text":        "7054E17F 07 02000000 02000000 01 FF",
		"etag that isn't text":       "7054E17F 13 02000000 02000000 01 32 14 09 01 FF",
		"binary id":                  "7054E17F 33 02000000 02000000 01 32 01 09",
		"effective partition key":    "7054E17F 1B 02000000 02000000 01 32 01 09",
		"sparse type alone":          "7054E17F 13 02000000 02000000 01 32 14",
		"sparse text without length": "7054E17F 13 02000000 02000000 01 32 14 09",
		"sparse text beyond the row": "7054E17F 13 02000000 02000000 01 32 14 09 02 7A",
		"sparse field of none":       "7054E17F 13 02000000 02000000 01 32 14 0D 01 7A",
		"sparse field zero":          "7054E17F 13 02000000 02000000 01 32 14 00 01 7A",
		"sparse id":                  "7054E17F 13 02000000 02000000 01 32 14 05 01 7A",
		"text for a bool":            "7054E17F 13 02000000 02000000 01 32 14 0C 01 7A",
		"bool for a text":            "7054E17F 13 02000000 02000000 01 32 03 09",
		"time to live":               "7054E17F 13 02000000 02000000 01 32 07 0B 07000000",
		"number for a text":          "7054E17F 13 02000000 02000000 01 32 07 09 07000000",
		"unknown type":               "7054E17F 13 02000000 02000000 01 32 30 09",
		"nothing":                    "",
	} {
		b := append(AppendRowSegment(nil), record(unhex(t, row))...)
		if _, err := operationsOf(b); !status.Is(err, status.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each beginning of a body is refused, unless it ends behind a row, and so is each body in which a bit has changed,
// unless it is one that isn't looked at.
func TestDamagedRows(t *testing.T) {
	whole := dotNetBody(t)
	ends := []int{segmentSize}
	for at := segmentSize; at < len(whole); {
		at += recordSize + int(binary.LittleEndian.Uint32(whole[at+rowHeader:]))
		ends = append(ends, at)
	}
	for n := range whole {
		if _, err := operationsOf(whole[:n]); (err == nil) != slices.Contains(ends, n) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	for i := range len(whole) * 8 {
		b := slices.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		if _, err := operationsOf(b); !status.Is(err, status.BadRequest) {
			t.Errorf("bit %d: %v", i, err)
		}
	}
}

func TestOperationsEndWithTheFirstError(t *testing.T) {
	bad, n := errors.New("bad"), 0
	if err := EachOperation(dotNetBody(t), func(*RowOperation) error { n++; return bad }); err != bad || n != 1 {
		t.Error(err, n)
	}
}

// The .NET client itself reads results in conformance/clients.
func TestRowResults(t *testing.T) {
	for _, x := range []struct {
		r   RowResult
		row string
	}{
		{RowResult{Status: 201, ETag: []byte(`"e"`), Body: []byte(`{"id":"1"}`), Charge: 6.5},
			"81 7154E17F 0F C9000000 00000000 03 226522 0A 7B226964223A2231227D 10 06 0000000000001A40"},
		{RowResult{Status: 204, Charge: 1}, "81 7154E17F 03 CC000000 00000000 10 06 000000000000F03F"},
		{RowResult{Status: 429, SubStatus: 3200, RetryAfter: 40, Charge: 1},
			"81 7154E17F 03 AD010000 800C0000 0B 05 28000000 10 06 000000000000F03F"},
		{RowResult{Status: 404, RetryAfter: 1 << 40},
			"81 7154E17F 03 94010000 00000000 0B 05 FFFFFFFF 10 06 0000000000000000"},
	} {
		want := record(unhex(t, x.row)[1:])
		if got := x.r.Append([]byte("before")); string(got) != "before"+string(want) {
			t.Errorf("%+v: %s, want %s", x.r, hex.EncodeToString(got[6:]), hex.EncodeToString(want))
		}
	}
	if got := hex.EncodeToString(AppendRowSegment(nil)); got != hex.EncodeToString(dotNetBody(t)[:segmentSize]) {
		t.Error(got)
	}
}

func BenchmarkRows(b *testing.B) {
	body := dotNetBody(b)
	r := RowResult{Status: 201, ETag: []byte(`"00000000-0000-0000-0000-000000000000"`), Charge: 6.5}
	r.Body = []byte(`{"id":"1","text":"` + strings.Repeat("x", 1000) + `"}`)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = AppendRowSegment(out[:0])
		if err := EachOperation(body, func(*RowOperation) error { out = r.Append(out); return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzEachOperation(f *testing.F) {
	f.Add(dotNetBody(f))
	f.Add(AppendRowSegment(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum would keep nearly all inputs from the parser of rows.
		if len(b) > segmentSize+recordSize {
			b = append(b[:segmentSize:segmentSize], record(b[segmentSize+recordSize:])...)
		}
		if _, err := operationsOf(b); err != nil && !status.Is(err, status.BadRequest) {
			t.Error(err)
		}
	})
}

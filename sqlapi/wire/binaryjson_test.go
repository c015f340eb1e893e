package wire

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const maxTest = 1 << 20

// Each marker of the binary form.
func TestBinaryJSON(t *testing.T) {
	for _, x := range [][2]string{
		{"80 D0", `null`}, {"80 D1", `false`}, {"80 D2", `true`}, {"80 00", `0`}, {"80 1F", `31`},
		{"80 C8 C8", `200`}, {"80 C9 18 FC", `-1000`}, {"80 CA 70 11 01 00", `70000`},
		{"80 CB 00 0E FA D5 FE FF FF FF", `-5000000000`}, {"80 C7 FE FF FF FF FF FF FF FF", `18446744073709551614`},
		{"80 CC 00 00 00 00 00 00 0C 40", `3.5`}, {"80 D8 FB", `-5`}, {"80 D7 C8", `200`}, {"80 D9 18 FC", `-1000`},
		{"80 DA 90 EE FE FF", `-70000`}, {"80 DB 00 0E FA D5 FE FF FF FF", `-5000000000`},
		{"80 DC FE FF FF FF", `4294967294`}, {"80 CD 00 00 C0 3F", `1.5`},
		{"80 CE 00 00 00 00 00 00 02 C0", `-2.25`},
		{"80 2C", `"id"`}, {"80 20", `"$s"`}, {"80 25", `"_rid"`}, {"80 2B", `"GeometryCollection"`},
		{"80 3F", `"_id"`},
		{"80 80", `""`}, {"80 82 68 69", `"hi"`}, {"80 83 22 0A 5C", `"\"\n\\"`}, {"80 C0 02 68 69", `"hi"`},
		{"80 C1 02 00 68 69", `"hi"`}, {"80 C2 02 00 00 00 68 69", `"hi"`},
		{"80 75 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F", `"00102030-4050-6070-8090-a0b0c0d0e0f0"`},
		{"80 76 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F", `"00102030-4050-6070-8090-A0B0C0D0E0F0"`},
		{"80 77 00 00 84 21 00 00 20 00 00 00 A6 F7 9A A8 00 00", `"\"00004812-0000-0200-0000-6a7fa98a0000\""`},
		{"80 D3 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F", `"03020100-0504-0706-0809-0a0b0c0d0e0f"`},
		{"80 71 01 00 66 6F 6F", `"Zm9v"`}, {"80 71 01 01 66 6F", `"Zm8="`}, {"80 71 01 02 41", `"QQ=="`},
		{"80 71 01 FD 41", `"QQ"`}, {"80 72 02 00 00 66 6F 6F 62 61 72", `"Zm9vYmFy"`},
		{"80 71 01 00 FB FF FE", `"+//+"`}, {"80 73 01 00 FB FF FE", `"-__-"`}, {"80 74 01 00 00 FB FF FE", `"-__-"`},
		{"80 78 04 A1 B2", `"1a2b"`}, {"80 79 04 A1 B2", `"1A2B"`}, {"80 78 01 0F", `"f"`},
		{"80 7A 07 13 53 1C 02", `"2024-01"`}, {"80 7B 04 30 10 32", `"0123"`}, {"80 7C 03 61 20 08", `"abc"`},
		{"80 7D 04 61 40 20 0C", `"abcd"`}, {"80 7E 02 C8 34", `"Hi"`}, {"80 7F 02 00 C8 34", `"Hi"`},
		{"80 DD 04 DE AD BE EF", `"3q2+7w=="`}, {"80 DD 00", `""`}, {"80 DE 03 00 01 02 03", `"AQID"`},
		{"80 DF 04 00 00 00 DE AD BE EF", `"3q2+7w=="`},
		{"80 F0 DA 02 01 00 00 00 02 00 00 00", `[1,2]`}, {"80 F0 D7 03 0A 14 1E", `[10,20,30]`}, {"80 F0 DA 00", `[]`},
		{"80 F1 D9 03 00 FF FF 00 00 E8 03", `[-1,0,1000]`}, {"80 F0 CD 02 00 00 C0 3F 00 00 80 BE", `[1.5,-0.25]`},
		{"80 F2 F0 D8 02 02 01 02 03 04", `[[1,2],[3,4]]`}, {"80 F3 F1 D8 02 00 01 00 01 FF", `[[1,-1]]`},
		{"80 E0", `[]`}, {"80 E8", `{}`}, {"80 E1 D2", `[true]`}, {"80 E9 2C D2", `{"id":true}`},
		{"80 E2 03 00 01 D0", `[0,1,null]`}, {"80 E3 03 00 00 01 D0", `[0,1,null]`},
		{"80 E4 03 00 00 00 00 01 D0", `[0,1,null]`}, {"80 E5 03 03 00 01 D0", `[0,1,null]`},
		{"80 E6 03 00 03 00 00 01 D0", `[0,1,null]`}, {"80 E7 03 00 00 00 03 00 00 00 00 01 D0", `[0,1,null]`},
		{"80 EA 04 2C 00 3B 01", `{"id":0,"type":1}`}, {"80 EB 04 00 2C 00 3B 01", `{"id":0,"type":1}`},
		{"80 EC 04 00 00 00 2C 00 3B 01", `{"id":0,"type":1}`}, {"80 ED 04 02 2C 00 3B 01", `{"id":0,"type":1}`},
		{"80 EE 04 00 02 00 2C 00 3B 01", `{"id":0,"type":1}`},
		{"80 EF 04 00 00 00 02 00 00 00 2C 00 3B 01", `{"id":0,"type":1}`},
		{"80 E2 05 E1 00 E9 2C 01", `[[0],{"id":1}]`},
		{"80 E2 05 82 68 69 C3 03", `["hi","hi"]`}, {"80 E2 06 82 68 69 C4 03 00", `["hi","hi"]`},
		{"80 E2 07 82 68 69 C5 03 00 00", `["hi","hi"]`}, {"80 E2 08 82 68 69 C6 03 00 00 00", `["hi","hi"]`},
		{"80 EA 09 82 68 69 01 C3 03 E9 C3 03 02", ""}, // longer than it says
		{"80 EA 0A 82 68 69 01 C3 03 E9 C3 03 02", `{"hi":1,"hi":{"hi":2}}`},
		{"80", ""}, {"80 D0 D0", ""}, {"80 40", ""}, {"80 60 01", ""}, {"80 68", ""}, {"80 70", ""},
		{"80 CF 00 00", ""},
		{"80 F8", ""}, {"80 FF", ""}, {"80 82 68", ""}, {"80 C2 FF FF FF FF 61", ""}, {"80 CA 01", ""},
		{"80 CC 00 00 00 00 00 00 F0 7F", ""}, {"80 E1", ""}, {"80 E9 00 00", ""}, {"80 E2 05 00", ""},
		{"80 E5 02 03 00 01", ""}, {"80 E2 01 C8 01", ""}, {"80 C3 00", ""}, {"80 C3 01", ""}, {"80 C3 09", ""},
		{"80 E2 04 C3 05 C3 03", ""}, {"80 F0 C8 01 01", ""}, {"80 F0 D0 01", ""}, {"80 F2 F1 DA 01 01", ""},
		{"80 F1 DA FF FF", ""}, {"80 71 00 01", ""}, {"80 71 01 03 41", ""}, {"80 7E 09 00", ""}, {"80 75 00", ""},
	} {
		got, err := TextOfBinaryJSON(unhex(t, x[0]), maxTest)
		switch {
		case x[1] == "" && !status.Is(err, status.BadRequest):
			t.Errorf("%s: %q, %v, want an error of the request", x[0], got, err)
		case x[1] != "" && (string(got) != x[1] || err != nil):
			t.Errorf("%s: %q, %v, want %s", x[0], got, err, x[1])
		}
	}
}

// References could make a small body a text without bounds.
func TestLongBinaryJSON(t *testing.T) {
	long := strings.Repeat("x", 1000)
	body := []byte{binaryJSON, 0xE4, 0, 0, 0, 0, 0xC1, 0xE8, 0x03}
	body = append(body, long...)
	for range 2000 {
		body = append(body, 0xC3, 6)
	}
	size := len(body) - 6
	body[2], body[3] = byte(size), byte(size>>8)
	if _, err := TextOfBinaryJSON(body, maxTest); !status.Is(err, status.TooLarge) {
		t.Errorf("%v", err)
	}
	if got, err := TextOfBinaryJSON(body, 4*maxTest); err != nil || len(got) != 2001*1003+1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	deep := append([]byte{binaryJSON}, strings.Repeat("\xE1", 1<<20)...)
	if _, err := TextOfBinaryJSON(deep, 4*maxTest); !status.Is(err, status.BadRequest) {
		t.Errorf("%v", err)
	}
}

// Whatever the bytes are, the result is JSON or an error.
func FuzzBinaryJSON(f *testing.F) {
	for _, s := range []string{"80 EA 04 2C 00 3B 01", "80 E2 05 82 68 69 C3 03", "80 7D 04 61 40 20 0C",
		"80 F2 F0 D8 02 02 01 02 03 04", "80 71 01 FD 41", "80 77 00 00 84 21 00 00 20 00 00 00 A6 F7 9A A8 00 00"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !IsBinaryJSON(b) {
			return
		}
		got, err := TextOfBinaryJSON(b, maxTest)
		if err == nil && !json.Valid(got) {
			t.Fatalf("%x: %q", b, got)
		}
	})
}

package feed

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"
)

// A position of any size is read again from its text. The text consists of digits, unless that would be long.
func TestPositionTexts(t *testing.T) {
	digits, others := 0, 0
	for steps := 1; steps < 2000; steps += 1 + steps/4 {
		p := Position{rid: [8]byte{1, 2, 3}, wide: true, turn: []byte("turn")}
		for i := range steps {
			var min []byte
			if i > 0 {
				min = binary.BigEndian.AppendUint16(nil, uint16(i))
			}
			p.add(min, int64(1000+i%7))
		}
		text := p.String()
		if strings.Trim(text, "0123456789") == "" {
			digits++
		} else {
			others++
		}
		if len(text) > 12_000 {
			t.Errorf("the text of %d steps has %d bytes", steps, len(text))
		}
		got, err := Parse(text)
		if err != nil || got.String() != text || len(got.steps) != len(p.steps) {
			t.Errorf("%d steps: %d, %v", steps, len(got.steps), err)
		}
		b, err := opaqueBytes(text)
		if err != nil {
			t.Fatal(err)
		}
		if before, err := Parse(base64.RawURLEncoding.EncodeToString(b)); err != nil || before.String() != text {
			t.Errorf("%d steps as they were written before: %v", steps, err)
		}
	}
	if digits == 0 || others == 0 {
		t.Errorf("%d texts of digits, %d others", digits, others)
	}
}

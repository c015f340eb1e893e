package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"
)

// every has one frame of each kind.
func every() []Frame {
	setting := Setting{Now: time.Unix(1, 2).UTC(), Time: time.Second}
	message := &Message{Operation: "Create", Body: []byte("{}"), Headers: []Header{{"a", "b"}, {"", ""}}}
	return []Frame{
		EncodeLimits(Limits{Memory: 1 << 20}),
		EncodeRun(setting, &Run{Kind: PostTrigger, Name: "n", Source: "s", Args: []byte("[]"), Links: Links{"a", "b"},
			Log: true, Request: message, Response: &Message{}}),
		EncodeRun(Setting{}, &Run{}),
		EncodeCall(setting, Call{Name: "n", Source: "s", Args: [][]byte{[]byte("[1]"), []byte("[]")}}),
		EncodeOps([]Op{{Name: "readDocument", Link: "l", Options: []byte("{}")}, {Body: []byte{}, Query: []byte("q")}}),
		EncodeAnswers([]Answer{{Err: &Error{Status: 404, Sub: 1, Body: "b"}}, {Reply: Reply{Body: []byte("1"),
			Options: []byte("{}"), ETag: "e"}}}),
		EncodeDone(Result{Body: []byte("b"), Request: []byte{}, Response: nil, Log: "l"}, true),
		EncodeValues([][]byte{nil, {}, []byte("3")}, nil, false),
		EncodeValues([][]byte{[]byte("3")}, Reads{{"a", "b"}, nil, {}}, true),
		EncodeFault(&Error{Status: 400, Sub: 65535, Body: "b", Log: "l", Exceeded: true}, true),
	}
}

// again decodes a frame and encodes what it holds.
func again(f Frame) (Frame, error) {
	switch f.Type {
	case TypeLimits:
		l, err := DecodeLimits(f)
		return EncodeLimits(l), err
	case TypeRun:
		s, r, err := DecodeRun(f)
		return EncodeRun(s, r), err
	case TypeCall:
		s, c, err := DecodeCall(f)
		return EncodeCall(s, c), err
	case TypeOps:
		o, err := DecodeOps(f)
		return EncodeOps(o), err
	case TypeAnswers:
		a, err := DecodeAnswers(f)
		return EncodeAnswers(a), err
	case TypeDone:
		r, last, err := DecodeDone(f)
		return EncodeDone(r, last), err
	case TypeValues:
		v, reads, last, err := DecodeValues(f)
		return EncodeValues(v, reads, last), err
	case TypeFault:
		e, last, err := DecodeFault(f)
		return EncodeFault(e, last), err
	}
	return Frame{}, ErrFrame
}

func TestFramesRoundTrip(t *testing.T) {
	var stream bytes.Buffer
	w := Writer{W: &stream}
	for _, f := range every() {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range every() {
		got, err := Read(&stream)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %q, want %q", got.Fields, want.Fields)
		}
		if got, err = again(got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%c: decoded %q, want %q (%v)", want.Type, got.Fields, want.Fields, err)
		}
	}
	if _, err := Read(&stream); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestMalformedFrames(t *testing.T) {
	whole := every()[1].Append(nil)
	for i := 1; i < len(whole); i++ {
		if _, err := Read(bytes.NewReader(whole[:i])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the first %d bytes: %v", i, err)
		}
	}
	for _, b := range []string{"R\xff\xff\xff\xff", "R\x01\x00\x00\x00\x09", "R\x01\x00\x00\x00\xff"} {
		if _, err := Read(bytes.NewReader([]byte(b))); !errors.Is(err, ErrFrame) {
			t.Errorf("%q: %v", b, err)
		}
	}
	for _, f := range every() {
		for i := range f.Fields {
			short := Frame{f.Type, f.Fields[:i]}
			if _, err := again(short); err == nil && f.Type != TypeValues && f.Type != TypeCall && i > 0 &&
				f.Type != TypeOps && f.Type != TypeAnswers {
				t.Errorf("%c with %d of %d fields was read", f.Type, i, len(f.Fields))
			}
		}
	}
	large := Frame{TypeRun, [][]byte{make([]byte, MaxFrame)}}
	if err := (&Writer{W: io.Discard}).Write(large); !errors.Is(err, ErrFrame) {
		t.Errorf("a frame that is too large: %v", err)
	}
}

// What is read from any bytes is either an error, or a frame that is written and read as the same.
func FuzzRead(f *testing.F) {
	for _, frame := range every() {
		f.Add(frame.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		got, err := Read(bytes.NewReader(frame.Append(nil)))
		if err != nil || !reflect.DeepEqual(got, frame) {
			t.Errorf("%q was read again as %q, %v", frame.Fields, got.Fields, err)
		}
		decoded, err := again(frame)
		if err != nil {
			return
		}
		if twice, err := again(decoded); err != nil || !reflect.DeepEqual(twice, decoded) {
			t.Errorf("%q was decoded again as %q, %v", decoded.Fields, twice.Fields, err)
		}
	})
}

package value

// AppendTyped appends the type byte of v and its BSON bytes: a value on its own, which ReadTyped reads. Undefined,
// which BSON has no value for, is a zero.
func AppendTyped(dst []byte, v Value) []byte {
	if v.kind == Undefined {
		return append(dst, 0)
	}
	return AppendBSON(append(dst, BSONType(v)), v)
}

// ReadTyped reads what AppendTyped has written, and returns what follows it. The value points into b.
func ReadTyped(b []byte) (v Value, rest []byte, ok bool) {
	switch {
	case len(b) == 0:
		return Value{}, nil, false
	case b[0] == 0:
		return Value{}, b[1:], true
	}
	return ReadValue(b[0], b[1:])
}

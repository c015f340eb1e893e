package gvalue

// Integer returns an integer of any width; ok is false for other values.
func Integer(v any) (n int64, ok bool) {
	switch i := v.(type) {
	case int8:
		return int64(i), true
	case int16:
		return int64(i), true
	case int32:
		return int64(i), true
	case int64:
		return i, true
	}
	return 0, false
}

package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes in readable form: 16MiB, 2GiB, or bytes without a unit.
type size int64

var sizeUnits = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"B", 1}}

// Type implements pflag.Value.
func (s *size) Type() string { return "SIZE" }

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	number, unit := strings.TrimSpace(text), 1.0
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0) || n*unit >= math.MaxInt64 {
		return fmt.Errorf("%q: want a size such as 16MiB or 2GiB", text)
	}
	*s = size(n * unit)
	return nil
}

// String returns the size in readable form.
func (s size) String() string {
	if s == 0 {
		return "0"
	}
	unit := sizeUnits[len(sizeUnits)-1]
	for _, u := range sizeUnits[:len(sizeUnits)-1] {
		if float64(s) >= u.bytes {
			unit = u
		}
	}
	if unit.bytes == 1 {
		return fmt.Sprintf("%d B", int64(s))
	}
	return fmt.Sprintf("%.1f %s", float64(s)/unit.bytes, unit.name)
}

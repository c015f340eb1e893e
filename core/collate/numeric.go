package collate

import "unicode"

// numericLead is the first byte of the primaries of numbers: behind white space, punctuation and symbols, before
// letters. No character has it.
const numericLead = 0x12

// longestNumber is the largest number of digits that are compared as one number.
const longestNumber = 250

// appendNumber appends the elements of a number. Its primary weight is the number of digits without leading zeros, then
// pairs of digits. Only the first element has other weights.
//
// Example: 12 -> (12 03 0e), 123 -> (12 04 0e 20): more digits are greater.
func appendNumber(dst []element, digits []rune) []element {
	for len(digits) > 1 && digit(digits[0]) == 0 {
		digits = digits[1:]
	}
	for len(digits) > 0 {
		n := min(len(digits), longestNumber)
		dst = appendDigits(dst, digits[:n])
		digits = digits[n:]
	}
	return dst
}

func appendDigits(dst []element, digits []rune) []element {
	w := []byte{numericLead, byte(len(digits) + 1)}
	for i := 0; i < len(digits); i += 2 {
		pair := 10 * digit(digits[i])
		if i+1 < len(digits) {
			pair += digit(digits[i+1])
		}
		w = append(w, byte(pair+2))
	}
	for len(w)%4 != 0 {
		w = append(w, 0)
	}
	for i := 0; i < len(w); i += 4 {
		e := element{p: uint32(w[i])<<24 | uint32(w[i+1])<<16 | uint32(w[i+2])<<8 | uint32(w[i+3])}
		if i == 0 {
			e.s, e.t = common, common
		}
		dst = append(dst, e)
	}
	return dst
}

// digit returns the value of a decimal digit in whatever script. The digits of a script follow each other.
func digit(r rune) int {
	if r <= '9' {
		return int(r - '0')
	}
	n := 0
	for n < 9 && unicode.IsDigit(r-rune(n)-1) {
		n++
	}
	return n
}

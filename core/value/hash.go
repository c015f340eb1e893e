package value

import (
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// HashCosmos returns a hash that is equal for values that EqualCosmos calls equal. The columns of composite indexes
// store it for arrays and objects, so it never changes. NaN and 1 have the same hash. Callers that take equal hashes
// for equal values use HashDistinct.
func HashCosmos(v Value) uint64 {
	if v.kind != Object {
		return hash(v, HashCosmos)
	}
	return hashObject(v, HashCosmos)
}

// HashDistinct is like HashCosmos, but NaN and 1 have different hashes. It is never stored.
func HashDistinct(v Value) uint64 {
	switch v.kind {
	case Object:
		return hashObject(v, HashDistinct)
	case Double, Decimal:
		if c := Canonical(v); c.kind == Double && math.IsNaN(math.Float64frombits(c.n)) {
			// two words are hashed here, one for all other numbers
			return mix(mix(ClassNumber, ClassNumber), ClassNumber)
		}
	}
	return hash(v, HashDistinct)
}

func hashObject(v Value, inner func(Value) uint64) uint64 {
	h := uint64(ClassObject)
	for it := v.Iter(); it.Next(); { // a sum, because the order of the fields doesn't matter
		h += mix(xxhash.Sum64(it.Key()), inner(it.val))
	}
	return mix(h, ClassObject)
}

// HashBSON returns a hash that is equal for values that EqualBSON calls equal.
func HashBSON(v Value) uint64 {
	switch v.kind {
	case Undefined:
		v.kind = Null
	case Object:
		h := uint64(ClassObject)
		for it := v.Iter(); it.Next(); {
			h = mix(mix(h, xxhash.Sum64(it.Key())), HashBSON(it.val))
		}
		return h
	}
	return hash(v, HashBSON)
}

// hash is the part that both hashes share. inner hashes the elements.
func hash(v Value, inner func(Value) uint64) uint64 {
	class := uint64(classes[v.kind])
	switch v.kind {
	case Bool, Timestamp:
		return mix(class, v.n)
	case Int32, Int64, Double, Decimal:
		return mix(class, hashNumber(Canonical(v)))
	case Date:
		return mix(mix(class, v.n), uint64(v.frac))
	case Binary:
		return mix(mix(class, uint64(v.sub)), xxhash.Sum64(v.b))
	case Array:
		for it := v.Iter(); it.Next(); {
			class = mix(class, inner(it.val))
		}
		return class
	case CodeScope:
		code, scope := v.CodeScopeParts()
		return mix(mix(class, xxhash.Sum64(code)), HashBSON(ObjectOf(scope)))
	}
	return mix(class, xxhash.Sum64(v.b))
}

// hashNumber hashes a canonical number. Equal canonical numbers have the same kind, except for the two integer kinds.
func hashNumber(v Value) uint64 {
	switch v.kind {
	case Decimal:
		return xxhash.Sum64(v.b)
	case Double:
		if f := math.Float64frombits(v.n); f != f {
			return 1
		}
	}
	return v.n
}

// mix combines two hashes; the order matters.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9E3779B97F4A7C15, bits.RotateLeft64(b, 32)^0xD6E8FEB86659FD93)
	return hi ^ lo ^ a<<1
}

package run

// seededRandom gives the numbers of java.util.Random, which TinkerPop's steps use with SeedStrategy.
type seededRandom struct{ state int64 }

const (
	javaFactor = 0x5DEECE66D
	javaMask   = 1<<48 - 1
)

func newSeededRandom(seed int64) *seededRandom { return &seededRandom{(seed ^ javaFactor) & javaMask} }

func (r *seededRandom) bits(n uint) int64 {
	r.state = (r.state*javaFactor + 0xB) & javaMask
	return r.state >> (48 - n)
}

// float64 is nextDouble().
func (r *seededRandom) float64() float64 {
	return float64(r.bits(26)<<27+r.bits(27)) / (1 << 53)
}

// random returns a number from 0 to 1, as coin(), sample() and order by shuffle need it.
func (x *exec) random() float64 {
	if x.seeded != nil {
		return x.seeded.float64()
	}
	return x.g.clock.Float64()
}

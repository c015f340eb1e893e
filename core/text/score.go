package text

import "math"

// Scores of texts by BM25 ("best matching 25"): a text scores higher the more often it has the phrases of a search, the
// rarer these are among all texts, and the shorter it is. The formula is the usual one, with the form of the inverse
// document frequency that is never negative:
//
//	sum over phrases  ln(1 + (N - n + 0.5) / (n + 0.5)) * f * (k + 1) / (f + k * (1 - b + b * length / average))
//
// N is the number of texts, n the number of those with the phrase, f how often this text has it; k is 1.2, b 0.75.
//
// Example: two of 10 texts with 80 words have "swim", and this one of 4 words has it once. The average is 8, so
// ln(1 + 8.5/2.5) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4/8)) = 1.4816 * 2.2 / 1.75 = 1.8626.
const (
	scoreK = 1.2
	scoreB = 0.75
)

// Corpus is what a score needs to know of all texts.
type Corpus struct {
	Texts float64   // their number
	Words float64   // that they have together
	With  []float64 // how many of them have each phrase
}

// Score returns the score of a text. counts says how often it has each phrase of the corpus. The corpus may be older
// than the text, and not have it.
func (c *Corpus) Score(counts []int, words int) float64 {
	average := c.Words / c.Texts
	if !(average > 0) {
		average = 1
	}
	score := 0.0
	for i, f := range counts {
		if f == 0 || i >= len(c.With) {
			continue
		}
		n := math.Max(c.With[i], 1)
		idf := math.Log1p((math.Max(c.Texts, n) - n + 0.5) / (n + 0.5))
		tf := float64(f)
		score += idf * tf * (scoreK + 1) / (tf + scoreK*(1-scoreB+scoreB*float64(words)/average))
	}
	return score
}

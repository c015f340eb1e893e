// Package ru computes request charges as a pure function of the operation, bytes, index terms and items read. So equal
// work always has the same charge. The model follows the service's published figures: a point read of 1 KB is 1 RU and
// grows linearly with the size above it; a write of 1 KB without an index is about 5 RU, and each index term adds to
// it.
package ru

// Charges are in request units, rounded to hundredths.

// Read returns the charge of a point read of n bytes. A missing item costs as much as one of up to 1 KB.
func Read(n int) float64 { return round(1 + 0.14*kb(n)) }

// Write returns the charge of writing n bytes; terms is the number of index terms added and removed.
func Write(n, terms int) float64 { return round(4.9 + 0.45*kb(n) + 0.02*float64(terms)) }

// Query returns the charge of a query page: the number of partitions visited, of index entries and items read, and of
// the items' bytes.
func Query(partitions, entries, items, bytes int) float64 {
	e, i, b := QueryParts(entries, items, bytes)
	return round(2.25*float64(max(partitions, 1)) + e + i + b)
}

// QueryParts returns the parts of Query for index entries, for items and for their bytes, not rounded.
func QueryParts(entries, items, bytes int) (perEntry, perItem, perByte float64) {
	return 0.01 * float64(entries), 0.02 * float64(items), 0.014 * float64(bytes) / 1024
}

// Metadata is the charge of reading or changing a resource other than an item.
const Metadata = 1.0

// kb is the size above the first KB, in KB.
func kb(n int) float64 {
	if n <= 1024 {
		return 0
	}
	return float64(n-1024) / 1024
}

func round(f float64) float64 { return float64(int64(f*100+0.5)) / 100 }

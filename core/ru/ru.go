// Package ru computes request charges: a pure function of the operation, bytes, index terms and items read, so equal
// work always costs the same. The model follows the published figures of the service: a point read of 1 KB is 1 RU,
// linear in the size above it; a write of 1 KB without index is about 5 RU and each index term adds to it.
package ru

// Charges are in request units, rounded to hundredths.

// Read is the charge of a point read of n bytes; a missing item costs as one of up to 1 KB.
func Read(n int) float64 { return round(1 + 0.14*kb(n)) }

// Write is the charge of writing n bytes with so many index terms added and removed.
func Write(n, terms int) float64 { return round(4.9 + 0.45*kb(n) + 0.02*float64(terms)) }

// Query is the charge of a query page: partitions visited, index entries and items read, bytes of the items.
func Query(partitions, entries, items, bytes int) float64 {
	e, i, b := QueryParts(entries, items, bytes)
	return round(2.25*float64(max(partitions, 1)) + e + i + b)
}

// QueryParts is what Query charges for index entries, for items and for their bytes, not rounded.
func QueryParts(entries, items, bytes int) (perEntry, perItem, perByte float64) {
	return 0.01 * float64(entries), 0.02 * float64(items), 0.014 * float64(bytes) / 1024
}

// Metadata is the charge of reading or changing a resource that is no item.
const Metadata = 1.0

// kb is the size above the first KB.
func kb(n int) float64 {
	if n <= 1024 {
		return 0
	}
	return float64(n-1024) / 1024
}

func round(f float64) float64 { return float64(int64(f*100+0.5)) / 100 }

// Package ru computes request charges as a pure function of the operation, bytes, index terms and items read. So equal
// work always has the same charge. The model follows the service's published figures: a point read of 1 KB is 1 RU and
// grows linearly with the size above it; a write of 1 KB without an index is about 5 RU, and each index term adds to
// it.
package ru

import "math"

// Charges are in request units, rounded to hundredths where nothing else is said.

// Read returns the charge of a point read of n bytes. A missing item costs as much as one of up to 1 KB.
func Read(n int) float64 { return round(1 + 0.14*kb(n)) }

// Write returns the charge of a write: n is the size of the item before or after it, whichever is greater, and terms
// the number of the item's index terms.
func Write(n, terms int) float64 { return round(4.9 + 0.45*kb(n) + Terms(terms)) }

// Terms returns the part of a write's charge for index terms.
func Terms(n int) float64 { return 0.02 * float64(n) }

// Least is the charge of a page that reads nothing. Clients take 0 for an error.
const Least = 0.01

// QueryBase is the charge of a query in each physical partition that it visits. A query that reads nothing, such as a
// COUNT from a counter, has no other.
const QueryBase = 2.3

// Query returns the charge of a query's page: for the physical partitions in which the query begins (0 for pages that
// continue), for the index entries and items that were read, and for the items' bytes. It is at least Least. It is
// rounded to ten-thousandths only, so that the charges of small pages add up.
func Query(begun, entries, items, bytes int) float64 {
	e, i, b := QueryParts(entries, items, bytes)
	return max(Least, Sum(QueryBase*float64(begun)+e+i+b))
}

// Sum rounds a sum of charges to the ten-thousandths that charges have at most. Without that a client would see the
// binary fractions: 2.3 + 24.5657 is 26.865699999999997.
func Sum(charges float64) float64 { return math.Round(charges*10000) / 10000 }

// Feed returns the charge of a page of a change feed: a point read, and what was read beside it.
func Feed(items, bytes int) float64 {
	_, i, b := QueryParts(0, items, bytes)
	return round(1 + i + b)
}

// QueryParts returns the parts of Query for index entries, for items and for their bytes, not rounded. An item that is
// found without an index entry costs as much as one that is found with one: so a page costs the same whether a short
// page walks entries or a long one scans.
func QueryParts(entries, items, bytes int) (perEntry, perItem, perByte float64) {
	return 0.01 * float64(max(entries, items)), 0.02 * float64(items), 0.014 * float64(bytes) / 1024
}

// Refused is the charge of an operation on an item that changes nothing because it is refused: the item exists or
// doesn't, or a condition doesn't hold.
const Refused = 1.0

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

// Package json scans and quotes JSON text: the lexical rules, for all APIs. The meaning of the text (a document, an
// entity, a request) is up to the callers. Code that isn't on a hot path and reads JSON into Go values uses
// encoding/json instead.
//
// Scanning functions take the text and a start position, and return the position after what they scanned. They don't
// allocate.
//
//	b := []byte(`{"n": 12.5}`)
//	json.PlainEnd(b, 2)    // 3: the closing quote of "n"
//	json.ScanNumber(b, 6)  // 12.5, end 10
//	json.Skip(b, 0)        // 11: the end of the object
package json

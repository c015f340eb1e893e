// Package json is where JSON text is scanned and quoted: the lexical rules, once for all APIs. What the text means (a
// document, an entity, a request of a protocol) is its callers' business; whoever reads JSON into Go values that no hot
// path needs uses encoding/json.
//
// Scanning functions take the text and the position where something begins, and return the position behind it. They
// allocate nothing.
package json

package sqlapi

import "bytes"

// Brief reports by the head of a request whether it is about one item, or about one batch of them: such a request ends before its client
// can go away. When in doubt it says no.
func Brief(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	method, target, _ := bytes.Cut(line, []byte(" "))
	switch string(method) {
	case "GET", "PUT", "PATCH", "DELETE":
		return bytes.Contains(target, []byte("/docs/"))
	case "POST":
		target, _, _ = bytes.Cut(target, []byte(" "))
		return bytes.HasSuffix(target, []byte("/docs")) && !bytes.Contains(bytes.ToLower(rest), []byte("query"))
	}
	return false
}

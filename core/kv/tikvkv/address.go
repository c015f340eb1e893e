package tikvkv

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Scheme is the scheme of the addresses of stores in TiKV.
const Scheme = "tikv"

// Address names a store in TiKV:
//
//	tikv://pd1:2379,pd2:2379/KEYSPACE?ca=FILE&cert=FILE&key=FILE&commit=2pc
//
// The hosts are the members of the Placement Driver, or some of them. The files are PEM: the authority that has signed
// the certificates of the cluster, and a client's own certificate and its key. Without ca connections aren't encrypted.
// commit is for stores that aren't TiKV's own: see Options.
type Address struct {
	Members       []string // host:port
	Keyspace      string
	CA, Cert, Key string // names of files
	TwoPhase      bool   // see Options
}

// name is what a keyspace may be called. Every key has it, so it is short.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ParseAddress reads an address. Its errors are one sentence for the operator.
func ParseAddress(s string) (a Address, err error) {
	rest, ok := strings.CutPrefix(s, Scheme+"://")
	if !ok {
		return a, fmt.Errorf("the address %q doesn't begin with %s://", s, Scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, keyspace, _ := strings.Cut(rest, "/")
	for m := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(m)
		if n, perr := strconv.Atoi(port); err != nil || host == "" || perr != nil || n < 1 || n > 65535 {
			return a, fmt.Errorf("%q in the address is not host:port of a Placement Driver", m)
		}
		a.Members = append(a.Members, m)
	}
	if a.Keyspace = keyspace; !name.MatchString(keyspace) {
		return a, fmt.Errorf("%q in the address is not the name of a keyspace: it has up to 32 of a-z, 0-9, - and _, "+
			"and begins with a letter or a digit", keyspace)
	}
	return a, a.files(query)
}

// files reads the parameters.
func (a *Address) files(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("the parameters %q of the address can't be read", query)
	}
	var commit string
	known := map[string]*string{"ca": &a.CA, "cert": &a.Cert, "key": &a.Key, "commit": &commit}
	for k, v := range values {
		to, ok := known[k]
		if !ok {
			return fmt.Errorf("the address has a parameter %q; there are ca, cert, key and commit", k)
		}
		if len(v) != 1 || v[0] == "" {
			return fmt.Errorf("the parameter %s of the address needs one value", k)
		}
		*to = v[0]
	}
	a.TwoPhase = commit == "2pc"
	switch {
	case commit != "" && !a.TwoPhase:
		return fmt.Errorf("the parameter commit of the address is %q; it can be 2pc", commit)
	case (a.Cert == "") != (a.Key == ""):
		return fmt.Errorf("the address needs both cert and key, or neither")
	case a.Cert != "" && a.CA == "":
		return fmt.Errorf("the address has cert, so it needs ca too")
	}
	return nil
}

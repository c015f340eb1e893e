package tableapi

import (
	"net"
	"net/netip"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// grant is what a shared access signature permits. The zero grant is that of the account key and permits everything.
type grant struct {
	sas         bool
	permissions string
	types       string // account SAS: resource types, of s, c, o
	table       string // table SAS: the one table, as signedTable resolves it
	from, to    bound  // table SAS: the range of keys, both ends included
}

// bound is one end of a key range. It is open if it has no partition key.
type bound struct{ pk, rk string }

// checkSAS verifies an account SAS (parameter ss) or a table SAS (tn). Sources: "Create an account SAS", "Create a
// service SAS".
func (c *call) checkSAS() error {
	if err := c.checkSASForm(); err != nil {
		return err
	}
	g := grant{sas: true, permissions: c.param("sp")}
	var text []byte
	line := func(s string) { text = append(append(text, s...), '\n') }
	if c.param("tn") != "" {
		g.table = c.param("tn")
		g.from, g.to = bound{c.param("spk"), c.param("srk")}, bound{c.param("epk"), c.param("erk")}
		for _, name := range []string{"sp", "st", "se"} {
			line(c.param(name))
		}
		line(canonicalTable(c.param("sv")) + c.s.o.Account + "/" + strings.ToLower(g.table))
		for _, name := range []string{"si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"} {
			if older(c.param("sv"), "2015-04-05") && (name == "sip" || name == "spr") {
				continue
			}
			line(c.param(name))
		}
		text = text[:len(text)-1]
	} else {
		g.types = c.param("srt")
		line(c.s.o.Account)
		for _, name := range []string{"sp", "ss", "srt", "st", "se", "sip", "spr", "sv"} {
			line(c.param(name))
		}
		if c.param("sv") >= "2020-12-06" {
			line(c.param("ses"))
		}
	}
	if !c.signed(append(c.Out[:0], text...), c.param("sig")) {
		return authError("AuthenticationFailed")
	}
	start, expiry := c.param("st"), c.param("se")
	if id := c.param("si"); g.table != "" && id != "" {
		p, ok, err := c.s.storedPolicy(c.Ctx(), g.table, id)
		if err != nil {
			return err
		}
		if !ok || !complete(&start, p.Start) || !complete(&expiry, p.Expiry) ||
			!complete(&g.permissions, p.Permission) {
			return authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. The stored "+
				"access policy does not exist or contradicts the signature.")
		}
	}
	if err := c.checkSASLimits(g.table == "", start, expiry); err != nil {
		return err
	}
	c.grant = g
	return nil
}

// older reports whether a signature follows the rules from before a version.
func older(sv, version string) bool { return sv != "" && sv < version }

// canonicalTable returns what the resource of a table SAS begins with: before 2015-02-21 it didn't name the service.
func canonicalTable(sv string) string {
	if older(sv, "2015-02-21") {
		return "/"
	}
	return "/table/"
}

// sasParams are the parameters from which a signature is recognized.
var sasParams = []string{"sv", "ss", "srt", "sp", "st", "se", "si", "sip", "spr", "sig", "ses", "tn", "spk", "srk",
	"epk", "erk"}

// checkSASForm refuses ambiguous signatures: a parameter that occurs twice, and a row key without its partition key
// (Create a service SAS: startpk must accompany startrk, endpk endrk).
func (c *call) checkSASForm() error {
	bad := func(what string) error {
		return authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. "+what)
	}
	for _, name := range sasParams {
		n := 0
		for i := range c.params {
			if strings.EqualFold(c.params[i].name, name) {
				n++
			}
		}
		if n > 1 {
			return bad("The parameter " + name + " stands in the request more than once.")
		}
	}
	for _, end := range [][2]string{{"srk", "spk"}, {"erk", "epk"}} {
		if c.param(end[0]) != "" && c.param(end[1]) == "" {
			return bad("The parameter " + end[0] + " needs " + end[1] + ".")
		}
	}
	switch c.param("spr") {
	case "", "https", "https,http":
		return nil
	}
	return bad("The parameter spr must be https or https,http.")
}

// complete adds a text of the stored policy to a signature. It returns false if both have one.
func complete(own *string, stored string) bool {
	if *own == "" {
		*own = stored
		return true
	}
	return stored == ""
}

// checkSASLimits checks time, service, protocol and client address of a SAS whose signature is valid.
func (c *call) checkSASLimits(account bool, st, se string) error {
	now := value.DateOf(c.s.o.Wall.Now().UnixMilli(), 0)
	expiry, err := edm.ParseDateTime(se)
	if err != nil || expiry.DateMS() < now.DateMS() {
		return authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. The signature is "+
			"expired or has no expiry time.")
	}
	if st != "" {
		if start, err := edm.ParseDateTime(st); err != nil || start.DateMS() > now.DateMS() {
			return authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. The signature "+
				"is not valid yet.")
		}
	}
	if account && !strings.Contains(c.param("ss"), "t") {
		return authError("AuthorizationServiceMismatch")
	}
	if c.param("spr") == "https" && c.Request.TLS == nil {
		return authError("AuthorizationProtocolMismatch")
	}
	if ip := c.param("sip"); ip != "" && !addressIn(c.Request.RemoteAddr, ip) {
		return authError("AuthorizationSourceIPMismatch")
	}
	return nil
}

// addressIn reports whether the client's address is in a range "ip" or "from-to".
func addressIn(remote, allowed string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	from, to, isRange := strings.Cut(allowed, "-")
	if !isRange {
		to = from
	}
	ip, err1 := netip.ParseAddr(host)
	lo, err2 := netip.ParseAddr(from)
	hi, err3 := netip.ParseAddr(to)
	ip = ip.Unmap()
	return err1 == nil && err2 == nil && err3 == nil && ip.Compare(lo) >= 0 && ip.Compare(hi) <= 0
}

// needTables requires a permission on tables as resources: one letter of perms is enough. A table SAS never has it.
func (c *call) needTables(perms string) error {
	g := &c.grant
	switch {
	case !g.sas:
		return nil
	case g.table != "":
		return authError("AuthorizationPermissionMismatch")
	case !strings.ContainsAny(g.types, "cs"):
		return authError("AuthorizationResourceTypeMismatch")
	case !strings.ContainsAny(g.permissions, perms):
		return authError("AuthorizationPermissionMismatch")
	}
	return nil
}

// need requires permissions on the entities of a table: all letters of perms.
func (c *call) need(v *view, perms string) error {
	g := &c.grant
	if !g.sas {
		return nil
	}
	if g.table == "" {
		if !strings.Contains(g.types, "o") {
			return authError("AuthorizationResourceTypeMismatch")
		}
	} else if ct, err := c.s.signedTable(c.Ctx(), g.table); err != nil {
		return err
	} else if ct == nil || ct.RID() != v.RID() {
		return authError("AuthorizationPermissionMismatch")
	}
	for i := range len(perms) {
		if strings.IndexByte(g.permissions, perms[i]) < 0 {
			return authError("AuthorizationPermissionMismatch")
		}
	}
	return nil
}

// needKey requires that one entity lies in the range of a table SAS.
func (c *call) needKey(pk, rk string) error {
	if c.grant.sas && !c.grant.covers(pk, rk) {
		return authError("AuthorizationPermissionMismatch")
	}
	return nil
}

// ranged reports whether the grant has a range of keys.
func (g *grant) ranged() bool { return g.from != bound{} || g.to != bound{} }

func (g *grant) covers(pk, rk string) bool {
	if f := g.from; f.pk != "" && (pk < f.pk || pk == f.pk && rk < f.rk) {
		return false
	}
	if t := g.to; t.pk != "" && (pk > t.pk || pk == t.pk && t.rk != "" && rk > t.rk) {
		return false
	}
	return true
}

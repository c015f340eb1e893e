package tableapi

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// A table's access control list has up to five named policies, to which table signatures refer (parameter si). The
// container stores the list as the XML in which it was received. Source: "Set Table ACL", "Define a stored access
// policy".

// aclProperty is the container's property that holds the list.
const aclProperty = "table.acl"

const (
	maxPolicies = 5
	maxPolicyID = 64
)

// policies is the XML of a list.
type policies struct {
	XMLName xml.Name `xml:"SignedIdentifiers"`
	List    []policy `xml:"SignedIdentifier"`
}

// policy is one stored access policy. A text that the signature itself must carry is empty here.
type policy struct {
	ID         string `xml:"Id"`
	Start      string `xml:"AccessPolicy>Start,omitempty"`
	Expiry     string `xml:"AccessPolicy>Expiry,omitempty"`
	Permission string `xml:"AccessPolicy>Permission,omitempty"`
}

// asXML marks an error to be written as XML, the form of errors of the XML resources.
func asXML(err error) error {
	if err == nil {
		return nil
	}
	e := *translate(err)
	e.XML = true
	return &e
}

func (c *call) getACL() error {
	v, err := c.aclTable()
	if err != nil {
		return err
	}
	list, err := v.policies()
	if err != nil {
		return err
	}
	b, err := xml.Marshal(list)
	if err != nil {
		return err
	}
	c.Out = append(append(c.Out[:0], xml.Header...), b...)
	c.send(http.StatusOK, xmlType)
	return nil
}

// aclTable finds the table of an ACL request. No signature permits such a request: it needs the account key.
func (c *call) aclTable() (*view, error) {
	if c.grant.sas {
		return nil, authError("AuthorizationPermissionMismatch")
	}
	return c.s.view(c.Ctx(), c.addr.Table)
}

func (c *call) setACL() error {
	v, err := c.aclTable()
	if err != nil {
		return err
	}
	if err := c.readBody(); err != nil {
		return err
	}
	list, err := parsePolicies(c.Body)
	if err != nil {
		return err
	}
	text, err := xml.Marshal(list)
	if err != nil {
		return err
	}
	_, err = c.s.e.Redefine(c.Ctx(), v.Database(), v.ID(), func(d core.Definition) (core.ContainerSpec, error) {
		spec := d.Spec().Clone()
		if spec.Properties == nil {
			spec.Properties = map[string][]byte{}
		}
		spec.Properties[aclProperty] = text
		return spec, nil
	})
	if err != nil {
		return notFound(err, "TableNotFound")
	}
	return c.sendNothing()
}

// parsePolicies reads a list. An empty body is an empty list.
func parsePolicies(b []byte) (*policies, error) {
	list := &policies{}
	if len(bytes.TrimSpace(b)) == 0 {
		return list, nil
	}
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))))
	if err := d.Decode(list); err != nil {
		return nil, newError("InvalidXmlDocument")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, newError("InvalidXmlDocument")
	}
	if len(list.List) > maxPolicies {
		return nil, newError("InvalidXmlDocument")
	}
	seen := map[string]bool{}
	for i := range list.List {
		p := &list.List[i]
		if p.ID == "" || len(p.ID) > maxPolicyID || seen[p.ID] || strings.Trim(p.Permission, "raud") != "" {
			return nil, newError("InvalidXmlDocument")
		}
		seen[p.ID] = true
		for _, at := range []string{p.Start, p.Expiry} {
			if at == "" {
				continue
			}
			if _, err := edm.ParseDateTime(at); err != nil {
				return nil, newError("InvalidXmlDocument")
			}
		}
	}
	return list, nil
}

// policies returns the table's list.
func (v *view) policies() (*policies, error) { return parsePolicies(v.Spec().Properties[aclProperty]) }

// storedPolicy finds the policy that a table signature names. table is the name in the signature; its case doesn't
// matter. It fails if the table can't be looked up: clients repeat such a request, and not one that isn't authorized.
func (s *Server) storedPolicy(ctx context.Context, table, id string) (p policy, ok bool, err error) {
	ct, err := s.signedTable(ctx, table)
	if ct == nil || err != nil {
		return policy{}, false, err
	}
	list, err := (&view{Container: ct}).policies()
	if err != nil {
		return policy{}, false, nil
	}
	for _, p := range list.List {
		if p.ID == id {
			return p, true, nil
		}
	}
	return policy{}, false, nil
}

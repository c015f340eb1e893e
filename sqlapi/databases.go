package sqlapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/sqlapi/wire"

	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
)

// maxBody bounds every request body: the service's 2 MB.
const maxBody = 2 << 20

// database returns the database that the path names, by id or by resource id. sub is the sub-status of the error when
// it doesn't exist: 1003 when the request is about something in the database.
func (c *call) database(sub int) (*core.Database, error) {
	return c.s.database(c.Ctx(), c.Param("db"), sub)
}

// database returns a database by id or by resource id.
func (s *Server) database(ctx context.Context, name string, sub int) (*core.Database, error) {
	d, err := s.core.Within(ctx).Database(name)
	if !status.Is(err, status.NotFound) {
		return d, err
	}
	if raw, ok := wire.ParseRID(name, 4); ok {
		d, err = s.core.Within(ctx).DatabaseByRID([4]byte(raw))
	}
	if status.Is(err, status.NotFound) {
		return nil, status.WithSub(status.NotFound, sub, msgNotFound)
	}
	return d, err
}

func appendDatabase(dst []byte, d *core.Database) []byte {
	rid := d.RID()
	dst = append(dst, `{"id":`...)
	dst = cjson.AppendString(dst, d.ID)
	dst = append(dst, `,"_rid":"`...)
	dst = wire.AppendRID(dst, rid[:])
	dst = append(dst, `","_self":"dbs/`...)
	dst = wire.AppendRID(dst, rid[:])
	dst = append(dst, `/","_etag":`...)
	dst = appendQuotedETag(dst, core.DatabaseETag(d))
	dst = append(dst, `,"_colls":"colls/","_users":"users/","_ts":`...)
	dst = strconv.AppendInt(dst, d.TS, 10)
	return append(dst, '}')
}

// setDatabase adds the headers of a database: etag and session token.
func (c *call) setDatabase(d *core.Database) {
	c.setETag(core.DatabaseETag(d))
	c.BeginLine(rSessionToken)
	c.Lines = wire.AppendSessionToken(c.Lines, "0", d.TS, c.simpleTokens())
	c.EndLine()
}

func (c *call) databaseFeed() (*feedReply, error) {
	dbs, err := c.s.core.Databases(c.Ctx())
	return c.feed("", "Databases", rowsOf(dbs, func(d *core.Database) (uint64, func() ([]byte, error)) {
		return uint64(d.Num), func() ([]byte, error) { return appendDatabase(nil, d), nil }
	})), err
}

func listDatabases(c *call) error {
	f, err := c.databaseFeed()
	if err != nil {
		return err
	}
	return f.send(unlimited)
}

func queryDatabases(c *call) error {
	f, err := c.databaseFeed()
	if err != nil {
		return err
	}
	return f.query()
}

func createDatabase(c *call) error {
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	var b struct {
		ID *string `json:"id"`
	}
	if json.Unmarshal(c.Body, &b) != nil {
		return status.New(status.BadRequest, "The request body is not valid JSON.")
	}
	if b.ID == nil {
		return missing("id")
	}
	if err := validName(*b.ID); err != nil {
		return err
	}
	t, err := c.throughput()
	if err != nil {
		return err
	}
	if err := c.s.checkRoom(c.Ctx(), nil, false); err != nil {
		return err
	}
	d, err := c.s.core.CreateDatabase(c.Ctx(), core.DatabaseSpec{ID: *b.ID, Throughput: t})
	if err != nil {
		return err
	}
	c.setDatabase(d)
	c.Out = appendDatabase(c.Out[:0], d)
	return c.send(http.StatusCreated)
}

func readDatabase(c *call) error {
	d, err := c.database(0)
	if err != nil {
		return err
	}
	c.setDatabase(d)
	if header(c.In, hIfNoneMatch) != "" && etagListed(header(c.In, hIfNoneMatch), core.DatabaseETag(d)) {
		return errNotModified
	}
	c.Out = appendDatabase(c.Out[:0], d)
	return c.send(http.StatusOK)
}

func deleteDatabase(c *call) error {
	d, err := c.database(0)
	if err != nil {
		return err
	}
	if err := c.ifMatch(core.DatabaseETag(d)); err != nil {
		return err
	}
	if err := c.s.core.DropDatabase(c.Ctx(), d.ID); err != nil {
		return err
	}
	return c.send(http.StatusNoContent)
}

// ifMatch compares an If-Match header with the current etag.
func (c *call) ifMatch(etag string) error {
	if v := header(c.In, hIfMatch); v != "" && !etagListed(v, etag) {
		return errEtag
	}
	return nil
}

// etagListed reports whether a condition header ("*", an etag with or without quotes, or a comma list) names an etag.
func etagListed(list, etag string) bool {
	if list == "*" {
		return true
	}
	if len(list) == len(etag)+2 && list[0] == '"' && list[1:len(list)-1] == etag || list == etag {
		return true
	}
	for len(list) > 0 {
		part := list
		if i := indexComma(list); i >= 0 {
			part, list = list[:i], list[i+1:]
		} else {
			list = ""
		}
		if trimETag(part) == etag {
			return true
		}
	}
	return false
}

func indexComma(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == ',' {
			return i
		}
	}
	return -1
}

// trimETag removes white space, the prefix W/ and quotes from an etag.
func trimETag(s string) string {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	if len(s) > 2 && s[:2] == "W/" {
		s = s[2:]
	}
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	return s
}

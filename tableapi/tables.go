package tableapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

const tableName = "TableName"

// checkTableName checks a name for a new table: 3 to 63 letters, digits, dashes and underscores, beginning with a
// letter. Dots are refused, although the service accepts them, because `database.container` names containers of other
// databases.
func checkTableName(name string) error {
	if len(name) < 3 || len(name) > 63 {
		return errorMsg("OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return newError("InvalidResourceName")
		}
	}
	if strings.EqualFold(name, "tables") {
		return newError("InvalidResourceName")
	}
	return nil
}

// createTable handles POST /Tables.
func (c *call) createTable() error {
	if err := c.needTables("cw"); err != nil {
		return err
	}
	if err := c.readEntity(); err != nil {
		return err
	}
	name := ""
	for i := range c.ent.Props {
		if p := &c.ent.Props[i]; string(p.Name) == tableName {
			name = p.Value.Str()
		}
	}
	if name == "" {
		return newError("PropertiesNeedValue")
	}
	if err := checkTableName(name); err != nil {
		return err
	}
	if err := c.create(name); err != nil {
		return err
	}
	location := c.base() + "/Tables('" + name + "')"
	c.Set("Location", location)
	if c.noContent() {
		c.Set("Dataserviceid", location)
		return c.sendNothing()
	}
	c.Out = c.appendTable(c.Out[:0], name, c.base()+"/$metadata#Tables/@Element")
	return c.sendJSON(http.StatusCreated)
}

// create makes the container, and the database if this is the first table.
func (c *call) create(name string) error {
	ctx := c.Ctx()
	t, err := c.throughput()
	if err != nil {
		return err
	}
	d, err := c.s.e.EnsureDatabase(ctx, Database)
	if err != nil {
		return err
	}
	if t.Max() == 0 {
		t = core.ThroughputIn(d)
	}
	spec := core.ContainerSpec{
		ID:           name,
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/" + edm.PartitionField}, Kind: "Hash", Version: 2},
		Throughput:   t,
		Origin:       "table",
		FoldID:       true,
	}
	_, err = c.s.e.CreateContainer(ctx, Database, spec)
	return conflict(err, "TableAlreadyExists")
}

// throughput reads the headers with which clients set a table's throughput; none if there are none. A value that can't
// be read, or a manual throughput beside that of autoscale, is refused as in the NoSQL API. So no table has another
// throughput than its client asked for.
func (c *call) throughput() (t core.Throughput, err error) {
	manual, auto := c.In.Get("x-ms-cosmos-throughput"), c.In.Get("x-ms-cosmos-offer-autopilot-settings")
	if manual == "" {
		manual = c.In.Get("x-ms-offer-throughput")
	}
	switch {
	case manual == "" && auto == "":
		return t, nil
	case manual != "" && auto != "":
		return t, errorMsg("InvalidInput", "Both manual throughput and autoscale settings are given; only one is "+
			"allowed.")
	case manual != "":
		if t.Manual, err = strconv.Atoi(manual); err != nil {
			return t, errorMsg("InvalidInput", "The throughput isn't a number.")
		}
	default:
		v, err := doc.ValueFromJSON([]byte(auto))
		n := v.Get("maxThroughput")
		if most := n.Int(); err == nil && n.IsNumber() && most > 0 && most < 1<<31 {
			t.AutoscaleMax = int(most)
		} else {
			return t, errorMsg("InvalidInput", "The autoscale settings have no maxThroughput.")
		}
	}
	return t, core.CheckThroughput(t, 0)
}

// getTable handles GET /Tables('t').
func (c *call) getTable() error {
	if err := c.needTables("lr"); err != nil {
		return err
	}
	ct, err := c.s.e.Within(c.Ctx()).ContainerFold(Database, c.addr.Table)
	if err != nil {
		return notFound(err, "ResourceNotFound")
	}
	c.Out = c.appendTable(c.Out[:0], ct.ID(), c.base()+"/$metadata#Tables/@Element")
	return c.sendJSON(http.StatusOK)
}

// deleteTable handles DELETE /Tables('t').
func (c *call) deleteTable() error {
	if err := c.needTables("d"); err != nil {
		return err
	}
	ct, err := c.s.e.Within(c.Ctx()).ContainerFold(Database, c.addr.Table)
	if err == nil {
		err = c.s.e.DropContainer(c.Ctx(), Database, ct.ID())
	}
	if err != nil {
		return notFound(err, "ResourceNotFound")
	}
	return c.sendNothing()
}

// appendTable appends one table. context is its odata.metadata, "" in a list.
func (c *call) appendTable(dst []byte, name, context string) []byte {
	dst = append(dst, '{')
	member := func(key, text string) {
		dst = append(json.AppendString(append(append(append(dst, '"'), key...), `":`...), text), ',')
	}
	if c.level != edm.NoMetadata && context != "" {
		member("odata.metadata", context)
	}
	if c.level == edm.Full {
		member("odata.type", c.s.o.Account+".Tables")
		member("odata.id", c.base()+"/Tables('"+name+"')")
		member("odata.editLink", "Tables('"+name+"')")
	}
	member(tableName, name)
	dst[len(dst)-1] = '}'
	return dst
}

// queryTables handles GET /Tables: the tables sorted by name, beginning with NextTableName.
func (c *call) queryTables() error {
	if err := c.needTables("lr"); err != nil {
		return err
	}
	filter, err := odata.Parse(c.param("$filter"))
	if err != nil {
		return err
	}
	top, err := c.top()
	if err != nil {
		return err
	}
	match := odata.Compile(filter, func(prop string) func(string) value.Value {
		if prop == tableName {
			return value.StringOf
		}
		return func(string) value.Value { return value.Undef() }
	})
	out := c.Out[:0]
	out = append(out, '{')
	if c.level != edm.NoMetadata {
		out = append(json.AppendString(append(out, `"odata.metadata":`...), c.base()+"/$metadata#Tables"), ',')
	}
	out = append(out, `"value":[`...)
	n := 0
	from := c.param("NextTableName")
	names, err := c.s.e.Names(c.Ctx(), Database, from)
	if err != nil {
		return err
	}
	for table := range names {
		name := table.ID
		if !match(name) {
			continue
		}
		if n == top {
			c.Set("X-Ms-Continuation-Nexttablename", name)
			break
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = c.appendTable(out, name, "")
		n++
	}
	c.Out = append(out, "]}"...)
	return c.sendJSON(http.StatusOK)
}

// maxPage is the service's limit of rows in a reply.
const maxPage = 1000

// top reads $top, the size of a page.
func (c *call) top() (int, error) {
	text := c.param("$top")
	if text == "" {
		return maxPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, newError("InvalidInput")
	}
	return min(n, maxPage), nil
}

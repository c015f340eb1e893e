package sqlapi

import "github.com/orrerydb/orrery/core/status"

// surface builds the route table: the resources of the protocol, their verbs, the operations and the rights that each
// needs. A verb that isn't listed answers 405, a path that isn't listed 404. Resources that aren't supported are listed
// too, so that clients get an error that says so. docs/compat/sql-rest.md has the same list; a test compares the two.
func surface(r routes) {
	r.get("/", op("read account", readsAccount, readAccount))
	r.any("/addresses", noAddresses, noAddresses)

	offers := r.group("/offers")
	offers.get("", op("list offers", masterOnly, listOffers))
	offers.post("",
		when(asQuery, op("query offers", masterOnly, queryOffers)),
		op("create offer", masterOnly, createOffer))
	offers.get("/:id", op("read offer", masterOnly, readOffer))
	offers.put("/:id", op("replace offer", masterOnly, replaceOffer))

	dbs := r.group("/dbs")
	dbs.get("", op("list databases", masterOnly, listDatabases))
	dbs.post("",
		when(asQuery, op("query databases", masterOnly, queryDatabases)),
		op("create database", masterOnly, createDatabase))

	db := dbs.group("/:db")
	db.get("", op("read database", masterOnly, readDatabase))
	db.delete("", op("delete database", masterOnly, deleteDatabase))
	db.resources("/users", users)
	db.resources("/users/:user/permissions", permissions)
	db.resources("/clientencryptionkeys", clientKeys)

	colls := db.group("/colls")
	colls.get("", op("list containers", masterOnly, listContainers))
	colls.post("",
		when(asQuery, op("query containers", masterOnly, queryContainers)),
		op("create container", masterOnly, createContainer))

	coll := colls.group("/:coll")
	coll.get("", op("read container", readsDefinition, readContainer))
	coll.put("", op("replace container", writesContainer, replaceContainer))
	coll.delete("", op("delete container", writesContainer, deleteContainer))
	coll.get("/pkranges", op("list ranges", readsDefinition, listRanges))
	coll.post("/pkranges",
		when(asQuery, op("query ranges", readsDefinition, queryRanges)),
		op("create range", masterOnly, createRange))
	coll.get("/pkranges/:id", op("read range", readsDefinition, readRange))
	coll.post("/operations/:operation",
		when(asKeyDelete, op("delete by partition key", writesKey, deleteByKey)),
		op("other operation", writesContainer, otherOperation))

	docs := coll.group("/docs")
	docs.get("",
		when(asChangeFeed, op("read change feed", readsKeys, changeFeed)),
		op("list items", readsKeys, readFeed))
	docs.post("",
		when(asPlan, op("plan query", readsDefinition, queryPlan)),
		when(asBatch, op("batch", writesKey, batch)),
		when(asBulk, op("bulk", writesContainer, batch)),
		when(asQuery, op("query items", readsKeys, queryItems)),
		when(asUpsert, op("upsert item", writesKey, upsertItem)),
		op("create item", writesKey, createItem))
	docs.get("/:id", op("read item", readsItem, readItem))
	docs.put("/:id", op("replace item", writesItem, replaceItem))
	docs.patch("/:id", op("patch item", writesItem, patchItem))
	docs.delete("/:id", op("delete item", writesItem, deleteItem))

	// There is one region, so there are never conflicts and the feed is always empty.
	coll.get("/conflicts", op("list conflicts", readsKeys, emptyFeed("Conflicts")))
	coll.post("/conflicts",
		when(asQuery, op("query conflicts", readsKeys, queryConflicts)),
		op("create conflict", masterOnly, (*call).notAllowed))
	coll.get("/conflicts/:id", op("read conflict", readsConflict, absentChild))
	coll.delete("/conflicts/:id", op("delete conflict", writesConflict, absentChild))

	coll.programs("/sprocs", procedures, "procedure", readsSproc, writesSproc)
	coll.post("/sprocs/:id", op("execute procedure", writesSproc, executeProcedure))
	coll.programs("/triggers", triggers, "trigger", readsTrigger, writesTrigger)
	coll.programs("/udfs", functions, "function", readsUDF, writesUDF)
	coll.any("/schemas", absent("Schemas", readsContainer), absent("Schemas", writesContainer))
	docs.any("/:id/attachments", absent("Attachments", readsItem), absent("Attachments", writesItem))
	docs.any("/:id/attachments/:attachment", absent("Attachments", readsItem), absent("Attachments", writesItem))
}

// resources adds the lines of a resourceType.
func (r routes) resources(path string, t *resourceType) {
	feed, one := r.group(path), r.group(path+"/:"+t.param)
	feed.get("", op("list "+t.segment, masterOnly, t.list))
	feed.post("",
		when(asQuery, op("query "+t.segment, masterOnly, t.query)),
		op("create "+t.param, masterOnly, t.create))
	one.get("", op("read "+t.param, masterOnly, t.read))
	one.put("", op("replace "+t.param, masterOnly, t.replace))
	one.delete("", op("delete "+t.param, masterOnly, t.remove))
}

// programs adds the lines of one kind of program of a container.
func (r routes) programs(path string, t *resourceType, name string, reads, writes rights) {
	feed, one := r.group(path), r.group(path+"/:id")
	feed.get("", op("list "+name+"s", readsContainer, t.list))
	feed.post("",
		when(asQuery, op("query "+name+"s", readsContainer, t.query)),
		op("create "+name, writesContainer, t.create))
	one.get("", op("read "+name, reads, t.read))
	one.put("", op("replace "+name, writes, t.replace))
	one.delete("", op("delete "+name, writes, t.remove))
}

// Forms of requests.

func asQuery(c *call) bool      { return c.isQuery() }
func asPlan(c *call) bool       { return isTrue(c.In, hIsPlan) }
func asBulk(c *call) bool       { return isTrue(c.In, hIsBatch) }
func asBatch(c *call) bool      { return asBulk(c) && isTrue(c.In, hBatchAtomic) }
func asUpsert(c *call) bool     { return isTrue(c.In, hIsUpsert) }
func asChangeFeed(c *call) bool { return header(c.In, hAIM) != "" }
func asKeyDelete(c *call) bool  { return c.Param("operation") == "partitionkeydelete" }

// absent returns the operation of a resource that the service has and this server doesn't support.
func absent(what string, needs rights) operation { return op("unsupported", needs, unsupported(what)) }

// emptyFeed answers an empty feed of a container. The container must exist.
func emptyFeed(name string) handler {
	return func(c *call) error {
		ct, err := c.parent()
		if err != nil {
			return err
		}
		rid := ct.RID()
		return c.feed(ridText(rid[:]), name, noRows).send(unlimited)
	}
}

// queryConflicts answers a query over the feed of conflicts, which is empty.
func queryConflicts(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if header(c.In, hPartitionKey)+header(c.In, hRangeID) == "" && !isTrue(c.In, hCrossPartition) && !c.knowsNoKey(ct) {
		return status.New(status.BadRequest, msgCrossPartition)
	}
	rid := ct.RID()
	return c.feed(ridText(rid[:]), "Conflicts", noRows).query()
}

// absentChild answers for a child of a kind that containers never have here. The container must exist.
func absentChild(c *call) error {
	if _, err := c.parent(); err != nil {
		return err
	}
	return errNotFound
}

var noAddresses = absent("Addresses of replicas (connect in gateway mode: ConnectionMode.Gateway in .NET, "+
	"gatewayMode() in Java)", masterOnly)

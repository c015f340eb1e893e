package sqlapi

// routes is the registry of the API: every resource of the protocol, its verbs, and what serves them. A verb that is not
// there answers 405, a path that is not there 404. docs/compat/sql-rest.md lists the same, and a test holds the two together.
func routes() []route {
	v := func(get, post, put, patch, del handler) [methods]handler {
		return [methods]handler{get, post, put, patch, del}
	}
	all := func(what string) [methods]handler {
		u := unsupported(what)
		return v(u, u, u, u, u)
	}
	return []route{
		{"/", v(readAccount, nil, nil, nil, nil)},

		{"/dbs", v(listDatabases, postDatabases, nil, nil, nil)},
		{"/dbs/*", v(readDatabase, nil, nil, nil, deleteDatabase)},
		{"/dbs/*/colls", v(listContainers, postContainers, nil, nil, nil)},
		{"/dbs/*/colls/*", v(readContainer, nil, replaceContainer, nil, deleteContainer)},

		{"/dbs/*/colls/*/docs", v(readFeed, postItems, nil, nil, nil)},
		{"/dbs/*/colls/*/docs/*", v(readItem, nil, replaceItem, patchItem, deleteItem)},
		{"/dbs/*/colls/*/pkranges", v(listRanges, queryRanges, nil, nil, nil)},
		{"/dbs/*/colls/*/pkranges/*", v(readRange, nil, nil, nil, nil)},

		{"/dbs/*/colls/*/operations/*", v(nil, operation, nil, nil, nil)},

		{"/offers", v(listOffers, queryOffers, nil, nil, nil)},
		{"/offers/*", v(readOffer, nil, replaceOffer, nil, nil)},

		// One region, so there is never a conflict to list: the empty feed is the truth.
		{"/dbs/*/colls/*/conflicts", v(emptyFeed("Conflicts"), emptyQuery("Conflicts"), nil, nil, nil)},
		{"/dbs/*/colls/*/conflicts/*", v(absentChild, nil, nil, nil, absentChild)},

		{"/dbs/*/users", resourceFeed(users)},
		{"/dbs/*/users/*", resourceItem(users)},
		{"/dbs/*/users/*/permissions", resourceFeed(permissions)},
		{"/dbs/*/users/*/permissions/*", resourceItem(permissions)},
		{"/dbs/*/clientencryptionkeys", resourceFeed(clientKeys)},
		{"/dbs/*/clientencryptionkeys/*", resourceItem(clientKeys)},
		{"/dbs/*/colls/*/sprocs", all("Stored procedures")},
		{"/dbs/*/colls/*/sprocs/*", all("Stored procedures")},
		{"/dbs/*/colls/*/triggers", all("Triggers")},
		{"/dbs/*/colls/*/triggers/*", all("Triggers")},
		{"/dbs/*/colls/*/udfs", all("User defined functions")},
		{"/dbs/*/colls/*/udfs/*", all("User defined functions")},
		{"/dbs/*/colls/*/schemas", all("Schemas")},
		{"/dbs/*/colls/*/docs/*/attachments", all("Attachments")},
		{"/dbs/*/colls/*/docs/*/attachments/*", all("Attachments")},
		{"/addresses", all("Addresses of replicas (the server is reached through its gateway only)")},
	}
}

// emptyFeed answers a feed that has nothing in it, of a container that must exist.
func emptyFeed(name string) handler {
	return func(c *call) error {
		ct, err := c.parent()
		if err != nil {
			return err
		}
		rid := ct.RID()
		return c.feed(ridText(rid[:]), name).send()
	}
}

// emptyQuery answers a query over such a feed.
func emptyQuery(name string) handler {
	return func(c *call) error {
		if !c.isQuery() {
			c.methodNotAllowed()
			return nil
		}
		ct, err := c.parent()
		if err != nil {
			return err
		}
		rid := ct.RID()
		return c.feed(ridText(rid[:]), name).query()
	}
}

// absentChild answers for a child that can't be there, of a container that must exist.
func absentChild(c *call) error {
	if _, err := c.parent(); err != nil {
		return err
	}
	return errNotFound
}

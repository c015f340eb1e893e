// @azure/cosmos 4.x against the NoSQL API.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BulkOperationType, ChangeFeedStartFrom, CosmosClient, PartitionKeyKind } from "@azure/cosmos";
import { account, key, nosql, unique } from "./server.mjs";

const client = new CosmosClient({ endpoint: nosql, key, connectionPolicy: { enableEndpointDiscovery: true } });
const rejects = (p, code) => assert.rejects(p, (e) => (assert.equal(e.code, code, e.message), true));

let db;
before(async () => {
  db = (await client.databases.create({ id: unique("js") })).database;
});
after(async () => {
  await db.delete();
  client.dispose();
});

const container = async (options = {}, request = {}) =>
  (await db.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 }, ...options }, request)).container;

describe("account and databases", () => {
  test("the account document is read once, not per operation", async () => {
    const c = new CosmosClient({ endpoint: nosql, key });
    const { resource } = await c.getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
    assert.notEqual(resource.id, "localhost");
    assert.equal(resource.readableLocations[0].databaseAccountEndpoint, nosql + "/");
    assert.equal(resource.readableLocations[0].name, account);
    c.dispose();
  });
  test("create, read, list, query, delete", async () => {
    const id = unique("db");
    const { statusCode, resource } = await client.databases.create({ id });
    assert.equal(statusCode, 201);
    assert.match(resource._rid, /^.{8}$/);
    assert.equal(resource._self, `dbs/${resource._rid}/`);
    await rejects(client.databases.create({ id }), 409);
    assert.equal((await client.database(id).read()).resource.id, id);
    assert.ok((await client.databases.readAll().fetchAll()).resources.some((d) => d.id === id));
    const found = await client.databases.query({ query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: id }] }).fetchAll();
    assert.deepEqual(found.resources.map((d) => d.id), [id]);
    assert.equal((await client.database(id).delete()).statusCode, 204);
    await rejects(client.database(id).read(), 404);
    assert.equal((await client.databases.createIfNotExists({ id })).statusCode, 201);
    assert.equal((await client.databases.createIfNotExists({ id })).statusCode, 200);
    await client.database(id).delete();
  });
  test("a wrong key is refused", async () => {
    const other = new CosmosClient({ endpoint: nosql, key: Buffer.from("not the key").toString("base64") });
    await rejects(other.databases.readAll().fetchAll(), 401);
    other.dispose();
  });
});

describe("containers", () => {
  test("defaults come back, and what was given", async () => {
    const c = await container({ defaultTtl: 3600, uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
    const { resource } = await c.read();
    assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash", version: 2 });
    assert.equal(resource.indexingPolicy.indexingMode, "consistent");
    assert.equal(resource.indexingPolicy.automatic, true);
    assert.deepEqual(resource.indexingPolicy.includedPaths.map((p) => p.path), ["/*"]);
    assert.deepEqual(resource.indexingPolicy.excludedPaths.map((p) => p.path), ['/"_etag"/?']);
    assert.equal(resource.defaultTtl, 3600);
    assert.deepEqual(resource.uniqueKeyPolicy, { uniqueKeys: [{ paths: ["/email"] }] });
    assert.equal(resource.conflictResolutionPolicy.mode, "LastWriterWins");
    assert.equal(resource._self, `${(await db.read()).resource._self}colls/${resource._rid}/`);
  });
  test("replace changes the policy and keeps the key", async () => {
    const c = await container();
    const { resource } = await c.read();
    resource.indexingPolicy.excludedPaths.push({ path: "/big/*" });
    resource.defaultTtl = -1;
    const put = await c.replace(resource);
    assert.ok(put.resource.indexingPolicy.excludedPaths.some((p) => p.path === "/big/*"));
    assert.equal(put.resource.defaultTtl, -1);
    await rejects(c.replace({ ...resource, partitionKey: { paths: ["/other"] } }), 400);
    await rejects(db.container("absent").replace({ id: "absent", partitionKey: { paths: ["/pk"] } }), 404);
  });
  test("refused definitions", async () => {
    for (const bad of [
      { partitionKey: { paths: ["pk"] } },
      { partitionKey: { paths: ["/a", "/b", "/c", "/d"], kind: PartitionKeyKind.MultiHash, version: 2 } },
      { defaultTtl: 0 },
      { indexingPolicy: { indexingMode: "eager" } },
      { indexingPolicy: { includedPaths: [{ path: "no slash" }] } },
      { id: "a/b" },
    ]) await assert.rejects(container(bad), JSON.stringify(bad));
  });
  test("list, query, delete", async () => {
    const c = await container();
    assert.ok((await db.containers.readAll().fetchAll()).resources.some((x) => x.id === c.id));
    const q = await db.containers.query({ query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: c.id }] }).fetchAll();
    assert.equal(q.resources.length, 1);
    assert.equal((await c.delete()).statusCode, 204);
    await rejects(c.read(), 404);
    await rejects(c.items.create({ id: "1", pk: "a" }), 404);
  });
  test("throughput is an offer that can be read and replaced", async () => {
    const c = await container({}, { offerThroughput: 700 });
    const { resource, offer } = await c.readOffer();
    assert.equal(resource.content.offerThroughput, 700);
    resource.content.offerThroughput = 900;
    assert.equal((await offer.replace(resource)).resource.content.offerThroughput, 900);
    assert.equal((await c.readOffer()).resource.content.offerThroughput, 900);
    const auto = await container({ maxThroughput: 4000 });
    assert.equal((await auto.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
  });
});

describe("items", () => {
  let c;
  before(async () => (c = await container()));

  test("create, read, replace, upsert, delete", async () => {
    const made = await c.items.create({ id: "1", pk: "a", n: 1, deep: { list: [1, "x", null, true, 1.5] } });
    assert.equal(made.statusCode, 201);
    assert.ok(made.requestCharge > 0);
    assert.match(made.activityId, /^[0-9a-f-]{36}$/);
    assert.match(made.resource._rid, /^.{24}$/);
    assert.equal(made.resource._self, `${(await c.read()).resource._self}docs/${made.resource._rid}/`);
    assert.equal(made.etag, made.resource._etag);
    assert.match(made.headers["x-ms-session-token"], /^\d+:-1#\d+$/);
    await rejects(c.items.create({ id: "1", pk: "a" }), 409);

    const read = await c.item("1", "a").read();
    assert.equal(read.statusCode, 200);
    assert.deepEqual(read.resource, made.resource);
    assert.deepEqual(read.resource.deep, { list: [1, "x", null, true, 1.5] });

    const put = await c.item("1", "a").replace({ id: "1", pk: "a", n: 2 });
    assert.equal(put.statusCode, 200);
    assert.equal(put.resource._rid, made.resource._rid);
    assert.notEqual(put.resource._etag, made.resource._etag);

    assert.equal((await c.items.upsert({ id: "1", pk: "a", n: 3 })).statusCode, 200);
    assert.equal((await c.items.upsert({ id: "2", pk: "a", n: 3 })).statusCode, 201);
    assert.equal((await c.item("1", "a").delete()).statusCode, 204);
    assert.equal((await c.item("1", "a").read()).statusCode, 404);
    await rejects(c.item("1", "a").delete(), 404);
    await rejects(c.item("1", "a").replace({ id: "1", pk: "a" }), 404);
  });

  test("etags guard replace and delete, and a read is not repeated", async () => {
    const { resource } = await c.items.create({ id: "e", pk: "a" });
    const stale = { accessCondition: { type: "IfMatch", condition: '"00000000-0000-0000-0000-000000000000"' } };
    const fresh = { accessCondition: { type: "IfMatch", condition: resource._etag } };
    await rejects(c.item("e", "a").replace({ id: "e", pk: "a" }, stale), 412);
    await rejects(c.item("e", "a").delete(stale), 412);
    const same = await c.item("e", "a").read({ accessCondition: { type: "IfNoneMatch", condition: resource._etag } });
    assert.equal(same.statusCode, 304);
    assert.equal((await c.item("e", "a").replace({ id: "e", pk: "a", x: 1 }, fresh)).statusCode, 200);
    await rejects(c.item("e", "a").replace({ id: "e", pk: "a" }, fresh), 412);
  });

  test("patch", async () => {
    await c.items.create({ id: "p", pk: "a", n: 1, list: [1, 2] });
    const done = await c.item("p", "a").patch([
      { op: "add", path: "/list/-", value: 3 },
      { op: "incr", path: "/n", value: 4 },
      { op: "set", path: "/deep", value: { x: 1 } },
      { op: "move", from: "/deep/x", path: "/moved" },
    ]);
    assert.equal(done.statusCode, 200);
    const { n, list, deep, moved } = done.resource;
    assert.deepEqual({ n, list, deep, moved }, { n: 5, list: [1, 2, 3], deep: {}, moved: 1 });
    await rejects(c.item("p", "a").patch({ condition: "from c where c.n = 0", operations: [{ op: "set", path: "/n", value: 0 }] }), 412);
    await rejects(c.item("p", "a").patch([{ op: "remove", path: "/absent" }]), 400);
  });

  test("partition keys of every kind", async () => {
    for (const [i, pk] of ["text", "\u9c40 \u{1F600}", 5, 5.5, -0.25, true, false, null, undefined].entries()) {
      const id = `k${i}`;
      await c.items.create(pk === undefined ? { id } : { id, pk });
      assert.equal((await c.item(id, pk === undefined ? undefined : pk).read()).resource?.id, id, String(pk));
    }
  });

  test("odd ids can be made, read, replaced and deleted", async () => {
    for (const id of ["plain", "with space", " leading", ",=.:~+-@()^${}[]!_", "\u9c40", "100%25"]) {
      await c.items.create({ id, pk: "odd" });
      assert.equal((await c.item(id, "odd").read()).resource?.id, id);
      assert.equal((await c.item(id, "odd").replace({ id, pk: "odd", x: 1 })).statusCode, 200);
      assert.equal((await c.item(id, "odd").delete()).statusCode, 204);
    }
  });

  test("numbers, escapes and system names survive", async () => {
    const doc = { id: "v", pk: "v", int: 12345678901, neg: -7, half: 0.5, exp: 1e21, text: "\u0000\u001f\"\\/\u2028\u{1F600}", empty: {}, none: [], _id: "mine" };
    await c.items.create(doc);
    const { resource } = await c.item("v", "v").read();
    for (const k of Object.keys(doc)) assert.deepEqual(resource[k], doc[k], k);
  });

  test("unique keys and their scope", async () => {
    const u = await container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
    await u.items.create({ id: "1", pk: "a", email: "x" });
    await rejects(u.items.create({ id: "2", pk: "a", email: "x" }), 409);
    await u.items.create({ id: "2", pk: "b", email: "x" });
  });

  test("an item larger than 2 MB is refused and the connection goes on", async () => {
    await rejects(c.items.create({ id: "big", pk: "a", text: "x".repeat(3 << 20) }), 413);
    assert.equal((await c.item("big", "a").read()).statusCode, 404);
  });
});

describe("queries", () => {
  let c;
  const all = async (q, o) => (await c.items.query(q, o).fetchAll()).resources;
  before(async () => {
    c = await container({}, { offerThroughput: 25100 });
    for (let i = 0; i < 60; i++) await c.items.create({ id: `i${i}`, pk: `p${i % 6}`, n: i, tags: [`t${i % 3}`, "all"], opt: i % 2 ? i : undefined });
  });

  test("there are several partition key ranges", async () => {
    const { resources } = await c.readPartitionKeyRanges().fetchAll();
    assert.ok(resources.length >= 2);
    assert.equal(resources[0].minInclusive, "");
    assert.equal(resources.at(-1).maxExclusive, "FF");
    for (let i = 1; i < resources.length; i++) assert.equal(resources[i].minInclusive, resources[i - 1].maxExclusive);
    assert.ok(resources.every((r) => typeof r.id === "string"));
  });
  test("filters, projections and parameters, in and over partitions", async () => {
    assert.equal((await all("SELECT * FROM c")).length, 60);
    assert.equal((await all("SELECT * FROM c", { partitionKey: "p1" })).length, 10);
    assert.deepEqual((await all({ query: "SELECT c.id, c.n FROM c WHERE c.n = @n", parameters: [{ name: "@n", value: 7 }] })), [{ id: "i7", n: 7 }]);
    assert.equal((await all("SELECT VALUE c.id FROM c WHERE c.n >= 10 AND c.n < 20 AND NOT (c.n = 15)")).length, 9);
    assert.equal((await all("SELECT VALUE c.id FROM c WHERE c.n IN (1, 2, 99) OR c.n BETWEEN 58 AND 70")).length, 4);
    assert.equal((await all("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.opt)")).length, 30);
    assert.equal((await all("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'i5') AND CONTAINS(c.pk, 'p')")).length, 11);
    assert.equal((await all("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 't2')")).length, 20);
  });
  test("order, top, offset and limit over partitions", async () => {
    const down = await all("SELECT VALUE c.n FROM c ORDER BY c.n DESC");
    assert.deepEqual(down, Array.from({ length: 60 }, (_, i) => 59 - i));
    assert.deepEqual(await all("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n"), [0, 1, 2]);
    assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3"), [5, 6, 7]);
  });
  test("count over partitions", async () => {
    assert.deepEqual(await all("SELECT VALUE COUNT(1) FROM c"), [60]);
    assert.deepEqual(await all("SELECT VALUE COUNT(1) FROM c WHERE c.n < 30"), [30]);
  });
  test("paging gives every item once, with charges and continuations", async () => {
    for (const q of ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n"]) {
      const seen = [];
      const it = c.items.query(q, { maxItemCount: 7 });
      let pages = 0, charge = 0;
      while (it.hasMoreResults()) {
        const page = await it.fetchNext();
        seen.push(...(page.resources ?? []).map((r) => r.n));
        charge += page.requestCharge;
        assert.ok(++pages < 100);
      }
      assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 60 }, (_, i) => i), q);
      assert.ok(charge > 0);
    }
    let token, ids = [];
    do {
      const page = await c.items.query("SELECT * FROM c", { maxItemCount: 9, partitionKey: "p2", continuationToken: token }).fetchNext();
      ids.push(...page.resources.map((r) => r.id));
      token = page.continuationToken;
    } while (token);
    assert.equal(new Set(ids).size, 10);
    assert.equal(ids.length, 10);
  });
  test("read feed pages", async () => {
    const it = c.items.readAll({ maxItemCount: 11 });
    const ids = new Set();
    while (it.hasMoreResults()) for (const r of (await it.fetchNext()).resources) ids.add(r.id);
    assert.equal(ids.size, 60);
  });
  test("queries that plan first (control over what is fetched) give the same", async () => {
    for (const [q, want] of [
      ["SELECT VALUE c.n FROM c WHERE c.n < 5 ORDER BY c.n DESC", [4, 3, 2, 1, 0]],
      ["SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n", [0, 1, 2, 3]],
      ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 2", [3, 4]],
      ["SELECT VALUE COUNT(1) FROM c", [60]],
    ]) assert.deepEqual(await all(q, { forceQueryPlan: true }), want, q);
    assert.equal((await all("SELECT * FROM c WHERE c.n > 20", { forceQueryPlan: true })).length, 39);
    for (const o of [{}, { forceQueryPlan: true }]) {
      assert.deepEqual((await all("SELECT DISTINCT VALUE c.pk FROM c", o)).sort(), ["p0", "p1", "p2", "p3", "p4", "p5"]);
      assert.deepEqual(await all("SELECT VALUE SUM(c.n) FROM c", o), [1770]);
      assert.deepEqual(await all("SELECT VALUE AVG(c.n) FROM c", o), [29.5]);
      assert.deepEqual(await all("SELECT VALUE MAX(c.n) FROM c", o), [59]);
      const groups = await all("SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", o);
      assert.deepEqual(groups.sort((a, b) => a.pk.localeCompare(b.pk)), ["p0", "p1", "p2", "p3", "p4", "p5"].map((pk) => ({ pk, n: 10 })));
      assert.deepEqual(await all("SELECT VALUE c.n FROM c WHERE c.pk = 'p4' ORDER BY c.n DESC OFFSET 1 LIMIT 2", o), [52, 46]);
    }
  });
  test("query metrics when asked for", async () => {
    const { headers } = await c.items.query("SELECT * FROM c", { populateQueryMetrics: true, partitionKey: "p0" }).fetchNext();
    assert.ok(headers["x-ms-documentdb-query-metrics"] !== undefined);
  });
  test("bad texts are 400 with a position", async () => {
    for (const q of ["SELEC * FROM c", "SELECT * FROM c WHERE", "SELECT * FROM c WHERE NOSUCH(c.x)", "SELECT * FROM c WHERE c.n = @absent"]) await rejects(c.items.query(q).fetchAll(), 400);
  });
});

describe("change feed", () => {
  test("from the beginning, then what was written since", async () => {
    const c = await container({}, { offerThroughput: 20000 });
    for (let i = 0; i < 20; i++) await c.items.create({ id: `i${i}`, pk: `p${i % 4}` });
    const drain = async (from) => {
      const it = c.items.getChangeFeedIterator({ changeFeedStartFrom: from, maxItemCount: 6 });
      const ids = [];
      let idle = 0, token;
      while (it.hasMoreResults && idle < 4) {
        const page = await it.readNext();
        token = page.continuationToken;
        if (page.statusCode === 304) idle++;
        else ids.push(...page.result.map((r) => r.id));
      }
      return { ids, token };
    };
    const first = await drain(ChangeFeedStartFrom.Beginning());
    assert.equal(new Set(first.ids).size, 20);
    assert.equal(first.ids.length, 20);
    await c.items.upsert({ id: "i3", pk: "p3", again: true });
    assert.deepEqual((await drain(ChangeFeedStartFrom.Continuation(first.token))).ids, ["i3"]);
    assert.equal((await drain(ChangeFeedStartFrom.Beginning("p1"))).ids.length, 5);
  });
});

describe("batches", () => {
  test("a transactional batch commits as a whole", async () => {
    const c = await container();
    const { result, code } = await c.items.batch([
      { operationType: BulkOperationType.Create, resourceBody: { id: "b1", pk: "a", name: "Azure Cosmos DB 101" } },
      { operationType: BulkOperationType.Upsert, resourceBody: { id: "a1", pk: "a", countOfBooks: 1 } },
      { operationType: BulkOperationType.Read, id: "b1" },
      { operationType: BulkOperationType.Replace, id: "a1", resourceBody: { id: "a1", pk: "a", countOfBooks: 2 } },
    ], "a");
    assert.equal(code, 200);
    assert.deepEqual(result.map((r) => r.statusCode), [201, 201, 200, 200]);
    assert.equal(result[2].resourceBody.name, "Azure Cosmos DB 101");
    assert.ok(result.every((r) => r.requestCharge > 0 && r.eTag));
    assert.equal((await c.item("a1", "a").read()).resource.countOfBooks, 2);
  });
  test("a failing operation fails all of them", async () => {
    const c = await container();
    await c.items.create({ id: "1", pk: "a" });
    const { result, code } = await c.items.batch([
      { operationType: BulkOperationType.Create, resourceBody: { id: "2", pk: "a" } },
      { operationType: BulkOperationType.Create, resourceBody: { id: "1", pk: "a" } },
      { operationType: BulkOperationType.Delete, id: "1" },
    ], "a");
    assert.equal(code, 207);
    assert.deepEqual(result.map((r) => r.statusCode), [424, 409, 424]);
    assert.equal((await c.item("2", "a").read()).statusCode, 404);
    assert.equal((await c.item("1", "a").read()).statusCode, 200);
  });
  test("bulk runs each operation on its own", async () => {
    const c = await container({}, { offerThroughput: 25100 });
    const ops = Array.from({ length: 250 }, (_, i) => ({ operationType: BulkOperationType.Create, partitionKey: `p${i % 9}`, resourceBody: { id: `i${i}`, pk: `p${i % 9}` } }));
    ops.push({ operationType: BulkOperationType.Delete, id: "absent", partitionKey: "p1" });
    const res = await c.items.executeBulkOperations(ops);
    assert.equal(res.filter((r) => r.response?.statusCode === 201).length, 250);
    assert.equal(res.at(-1).error?.code ?? res.at(-1).response?.statusCode, 404);
  });
});

describe("keys of several levels", () => {
  test("point operations and prefix queries", async () => {
    const c = await container({ partitionKey: { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: 2 } });
    for (const t of ["t1", "t2"]) for (const u of ["u1", "u2", "u3"]) await c.items.create({ id: `${t}${u}`, tenant: t, user: u });
    assert.equal((await c.item("t1u2", ["t1", "u2"]).read()).resource.id, "t1u2");
    assert.equal((await c.items.query("SELECT * FROM c", { partitionKey: ["t1", "u2"] }).fetchAll()).resources.length, 1);
    assert.equal((await c.items.query("SELECT * FROM c WHERE c.tenant = 't2'").fetchAll()).resources.length, 3);
  });
});

describe("delete by partition key", () => {
  test("all items of the key and no others", async () => {
    const c = await container();
    for (let i = 0; i < 10; i++) for (const pk of ["a", "b"]) await c.items.create({ id: `${i}`, pk });
    await c.deleteAllItemsForPartitionKey("a");
    assert.deepEqual((await c.items.query("SELECT VALUE COUNT(1) FROM c GROUP BY c.pk").fetchAll()).resources, [10]);
    assert.equal((await c.items.query("SELECT * FROM c", { partitionKey: "a" }).fetchAll()).resources.length, 0);
  });
});

describe("users, permissions and resource tokens", () => {
  test("users and permissions", async () => {
    const { user, resource } = await db.users.create({ id: unique("u") });
    assert.equal(resource._permissions, "permissions/");
    await rejects(db.users.create({ id: user.id }), 409);
    assert.ok((await db.users.readAll().fetchAll()).resources.some((u) => u.id === user.id));
    const byID = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: user.id }] };
    assert.equal((await db.users.query(byID).fetchAll()).resources.length, 1);
    assert.equal((await db.users.upsert({ id: user.id })).statusCode, 200);

    const c = await container();
    const permission = { id: "p", permissionMode: "Read", resource: c.url };
    const made = await user.permissions.create(permission);
    assert.equal(made.statusCode, 201);
    assert.match(made.resource._token, /^type=resource&ver=1&sig=[^;]+;[^;]+;$/);
    await rejects(user.permissions.create(permission), 409);
    await rejects(user.permissions.create({ ...permission, id: "q" }), 409);
    assert.equal((await user.permissions.upsert({ ...permission, permissionMode: "All" })).resource.permissionMode, "All");
    const read = await user.permission("p").read();
    assert.notEqual(read.resource._token, made.resource._token);
    assert.equal((await user.permissions.readAll().fetchAll()).resources.length, 1);
    assert.equal((await user.permission("p").replace({ ...permission, id: "renamed" })).resource.id, "renamed");
    await rejects(user.permission("p").read(), 404);
    assert.equal((await user.permission("renamed").delete()).statusCode, 204);
    const renamed = unique("u");
    assert.equal((await user.replace({ id: renamed })).resource.id, renamed);
    assert.equal((await db.user(renamed).delete()).statusCode, 204);
  });

  // with returns a client that has one token, and the container as it sees it.
  const withToken = async (c, mode, resourcePartitionKey, request) => {
    const { user } = await db.users.create({ id: unique("u") });
    const { resource } = await user.permissions.create({ id: "p", permissionMode: mode, resource: c.url, resourcePartitionKey }, request);
    const tokened = new CosmosClient({ endpoint: nosql, resourceTokens: { [c.url]: resource._token } });
    return [tokened, tokened.database(db.id).container(c.id)];
  };
  const seeded = async () => {
    const c = await container();
    for (const pk of ["a", "b"]) await c.items.create({ id: "1", pk });
    return c;
  };

  test("a Read token reads and queries, and writes nothing", async () => {
    const [tokened, c] = await withToken(await seeded(), "Read");
    assert.equal((await c.read()).statusCode, 200);
    assert.equal((await c.item("1", "a").read()).resource.pk, "a");
    assert.equal((await c.items.query("SELECT * FROM c ORDER BY c.pk").fetchAll()).resources.length, 2);
    assert.equal((await c.items.readAll().fetchAll()).resources.length, 2);
    await rejects(c.items.create({ id: "2", pk: "a" }), 403);
    await rejects(c.item("1", "a").delete(), 403);
    await rejects(c.delete(), 403);
    tokened.dispose();
  });
  test("an All token does all within its container", async () => {
    const plain = await seeded();
    const [tokened, c] = await withToken(plain, "All");
    assert.equal((await c.items.create({ id: "2", pk: "a" })).statusCode, 201);
    assert.equal((await c.item("2", "a").patch([{ op: "set", path: "/n", value: 1 }])).resource.n, 1);
    assert.equal((await c.item("2", "a").delete()).statusCode, 204);
    await assert.rejects(tokened.databases.readAll().fetchAll());
    assert.equal((await c.delete()).statusCode, 204);
    tokened.dispose();
  });
  test("a token with a partition key is for that key", async () => {
    const [tokened, c] = await withToken(await seeded(), "All", ["a"]);
    assert.equal((await c.item("1", "a").read()).statusCode, 200);
    assert.equal((await c.items.upsert({ id: "1", pk: "a", n: 2 })).statusCode, 200);
    assert.equal((await c.items.query("SELECT * FROM c", { partitionKey: "a" }).fetchAll()).resources.length, 1);
    await rejects(c.item("1", "b").read(), 403);
    await rejects(c.items.upsert({ id: "1", pk: "b" }), 403);
    await rejects(c.items.query("SELECT * FROM c").fetchAll(), 403);
    await rejects(c.items.query("SELECT * FROM c", { partitionKey: "b" }).fetchAll(), 403);
    tokened.dispose();
  });
});

describe("computed properties", () => {
  test("in every clause, and not in SELECT *", async () => {
    const computedProperties = [{ name: "cp_lower", query: "SELECT VALUE LOWER(c.name) FROM c" }, { name: "cp_net", query: "SELECT VALUE c.price * 0.8 FROM c" }];
    const c = await container({ computedProperties, indexingPolicy: { includedPaths: [{ path: "/*" }, { path: "/cp_net/?" }] } }); // ORDER BY needs it
    assert.deepEqual((await c.read()).resource.computedProperties, computedProperties);
    for (const [i, name] of ["Anna", "BOB", "bob"].entries()) await c.items.create({ id: `${i}`, pk: `${i}`, name, price: 10 * (i + 1) });
    const rows = async (q) => (await c.items.query(q, { maxItemCount: 1 }).fetchAll()).resources;
    assert.deepEqual(await rows("SELECT c.cp_lower, c.cp_net FROM c WHERE c.id = '1'"), [{ cp_lower: "bob", cp_net: 16 }]);
    assert.deepEqual(await rows("SELECT VALUE c.id FROM c WHERE c.cp_lower = 'bob' ORDER BY c.cp_net DESC"), ["2", "1"]);
    const groups = await rows("SELECT c.cp_lower, COUNT(1) AS n FROM c GROUP BY c.cp_lower");
    assert.deepEqual(groups.sort((x, y) => x.n - y.n), [{ cp_lower: "anna", n: 1 }, { cp_lower: "bob", n: 2 }]);
    assert.ok((await rows("SELECT * FROM c")).every((r) => !("cp_lower" in r)));
  });
});

test("query metrics and index metrics", async () => {
  const c = await container({ indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/b/?" }] } });
  for (let i = 0; i < 10; i++) await c.items.create({ id: `${i}`, pk: `${i}`, n: i, b: i });
  const page = async (q) => c.items.query(q, { populateIndexMetrics: true, populateQueryMetrics: true }).fetchNext();
  const used = await page("SELECT * FROM c WHERE c.n = 3");
  assert.deepEqual(JSON.parse(used.indexMetrics).Utilized.SingleIndexes, [{ IndexSpec: "/n/?" }]);
  const metrics = Object.values(used.queryMetrics ?? {});
  assert.ok(metrics.some((m) => m.retrievedDocumentCount === 1 && m.outputDocumentCount === 1), JSON.stringify(used.queryMetrics));
  const missed = await page("SELECT * FROM c WHERE c.b = 3");
  assert.deepEqual(JSON.parse(missed.indexMetrics).Potential.SingleIndexes, [{ IndexSpec: "/b/?" }]);
});

test("an ORDER BY over partitions goes on by its continuation, page by page in new iterators", async () => {
  const c = await container({}, { offerThroughput: 30000 });
  for (let i = 0; i < 60; i++) await c.items.create({ id: `${i}`, pk: `p${i % 11}`, g: i % 3, s: `s${i % 4}` });
  for (const q of ["SELECT c.id FROM c ORDER BY c.g", "SELECT c.id FROM c ORDER BY c.g DESC", "SELECT VALUE c.id FROM c WHERE c.g > 0 ORDER BY c.s DESC"] /* with TOP this client's tokens never end */) {
    const whole = (await c.items.query(q, { forceQueryPlan: true }).fetchAll()).resources;
    for (const maxItemCount of [1, 7]) {
      const got = [];
      let continuationToken, pages = 0;
      do {
        const page = await c.items.query(q, { maxItemCount, continuationToken, enableQueryControl: true }).fetchNext();
        got.push(...(page.resources ?? []));
        continuationToken = page.continuationToken;
      } while (continuationToken && ++pages < 200);
      assert.deepEqual(got, whole, `${q}, pages of ${maxItemCount}`);
    }
  }
});

// @azure/cosmos 4.x: every way to write an item: options, conditions, patch, batch, bulk, time to live, hierarchical
// keys.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BulkOperationType, CosmosClient, PartitionKeyBuilder, PartitionKeyKind } from "@azure/cosmos";
import { key, nosql, unique } from "./server.mjs";

const client = new CosmosClient({ endpoint: nosql, key });
const rejects = (p, code, say) => assert.rejects(p, (e) => (assert.equal(e.code, code, e.message), say && assert.match(e.message, say), true));
let db, c;
const container = async (options = {}) => (await db.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 }, ...options })).container;
before(async () => {
  db = (await client.databases.create({ id: unique("jsw") })).database;
  c = await container();
});
after(async () => {
  await db.delete();
  client.dispose();
});

const ifMatch = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
const ifNoneMatch = (condition) => ({ accessCondition: { type: "IfNoneMatch", condition } });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

describe("options of writes", () => {
  test("an id is made where there is none, and missed where that is switched off", async () => {
    const { resource } = await c.items.create({ pk: "auto" });
    assert.match(resource.id, /^[0-9a-f-]{36}$/);
    await rejects(c.items.create({ pk: "auto" }, { disableAutomaticIdGeneration: true }), 400);
    assert.match((await c.items.upsert({ pk: "auto" })).resource.id, /^[0-9a-f-]{36}$/);
  });
  test("minimal replies have no bodies but what was read; this client has them for batch and bulk", async () => {
    const quiet = { contentResponseOnWriteEnabled: false };
    const ops = [{ operationType: "Create", resourceBody: { id: "quiet", pk: "a" } }, { operationType: "Read", id: "quiet" }];
    const { result } = await c.items.batch(ops, "a", quiet);
    assert.deepEqual(result.map((r) => [r.statusCode, r.resourceBody?.id, !!r.eTag]), [[201, undefined, true], [200, "quiet", true]]);
    const [one] = await c.items.executeBulkOperations([{ operationType: "Upsert", partitionKey: "a", resourceBody: { id: "quiet", pk: "a" } }], quiet);
    assert.deepEqual([one.response.statusCode, one.response.resourceBody], [200, undefined]);
  });
  test("an item excluded from the index is read by its id, and queries that scan find it", async () => {
    await c.items.create({ id: "out", pk: "dir", hidden: 1 }, { indexingDirective: "Exclude" });
    assert.equal((await c.item("out", "dir").read()).statusCode, 200);
    assert.equal((await c.items.query("SELECT * FROM c", { partitionKey: "dir" }).fetchAll()).resources.length, 1);
    await c.item("out", "dir").replace({ id: "out", pk: "dir", hidden: 1 }, { indexingDirective: "Include" });
    assert.deepEqual((await c.items.query("SELECT VALUE c.id FROM c WHERE c.hidden = 1").fetchAll()).resources, ["out"]);
    await rejects(c.items.create({ id: "odd", pk: "dir" }, { indexingDirective: "Sometimes" }), 400);
  });
  test("headers of one's own, priorities and buckets are taken", async () => {
    const made = await c.items.create({ id: "h", pk: "a" }, { initialHeaders: { "x-custom": "1" }, priorityLevel: "High", throughputBucket: 2, bypassIntegratedCache: true });
    assert.equal(made.statusCode, 201);
  });
  test("a system property that the client sends is the server's all the same", async () => {
    const { resource } = await c.items.create({ id: "sys", pk: "a", _etag: "mine", _ts: 5, _rid: "x", _self: "y", _attachments: "z" });
    assert.notEqual(resource._etag, "mine");
    assert.ok(resource._ts > 1e9);
    assert.equal(resource._attachments, "attachments/");
  });
  test("what the body says and what the call says must agree", async () => {
    await c.items.create({ id: "own", pk: "a" });
    await rejects(c.item("own", "b").replace({ id: "own", pk: "b" }), 404);
    await rejects(c.item("own", "a").replace({ id: "own", pk: "b" }), 400);
    await rejects(c.items.create({ id: "bad", pk: "a", ttl: 0 }), 400);
  });
  test("a replace may change the id", async () => {
    await c.items.create({ id: "before", pk: "a", n: 1 });
    const { resource } = await c.item("before", "a").replace({ id: "after", pk: "a", n: 2 });
    assert.equal(resource.id, "after");
    assert.equal((await c.item("after", "a").read()).resource.n, 2);
    assert.equal((await c.item("before", "a").read()).statusCode, 404);
    await c.items.create({ id: "before", pk: "a" });
    await rejects(c.item("after", "a").replace({ id: "before", pk: "a" }), 409);
  });
});

describe("conditions", () => {
  test("IfMatch on upsert, replace, patch and delete", async () => {
    const { resource } = await c.items.create({ id: "cond", pk: "a", n: 1 });
    const old = ifMatch(resource._etag), wrong = ifMatch('"0"');
    await rejects(c.items.upsert({ id: "cond", pk: "a" }, wrong), 412);
    await rejects(c.item("cond", "a").patch([{ op: "set", path: "/n", value: 2 }], wrong), 412);
    await rejects(c.item("cond", "a").delete(wrong), 412);
    const done = await c.item("cond", "a").patch([{ op: "set", path: "/n", value: 2 }], old);
    await rejects(c.item("cond", "a").patch([{ op: "set", path: "/n", value: 3 }], old), 412);
    assert.equal((await c.items.upsert({ id: "cond", pk: "a", n: 4 }, ifMatch(done.resource._etag))).statusCode, 200);
    assert.equal((await c.item("cond", "a").replace({ id: "cond", pk: "a", n: 5 }, ifMatch("*"))).statusCode, 200);
    assert.equal((await c.item("cond", "a").delete(ifMatch((await c.item("cond", "a").read()).etag))).statusCode, 204);
  });
  test("IfNoneMatch on a read", async () => {
    const { etag } = await c.items.create({ id: "none", pk: "a" });
    const same = await c.item("none", "a").read(ifNoneMatch(etag));
    assert.equal(same.statusCode, 304);
    assert.equal(same.etag, etag);
    await c.items.upsert({ id: "none", pk: "a", n: 1 });
    assert.equal((await c.item("none", "a").read(ifNoneMatch(etag))).resource.n, 1);
  });
});

describe("patch", () => {
  const start = { id: "p", pk: "patch", n: 1, list: [1, 2, 3], o: { a: 1, b: { c: 2 } }, s: "x", "a/b": 1, "c~d": 2 };
  const run = async (...operations) => {
    await c.items.upsert(start);
    const { _rid, _self, _etag, _attachments, _ts, id, pk, ...rest } = (await c.item("p", "patch").patch(operations)).resource;
    return rest;
  };
  const { id, pk, ...base } = start;
  for (const [name, ops, want] of [
    ["add a member", [{ op: "add", path: "/z", value: null }], { ...base, z: null }],
    ["add into an array", [{ op: "add", path: "/list/1", value: 9 }], { ...base, list: [1, 9, 2, 3] }],
    ["add at the end", [{ op: "add", path: "/list/-", value: 9 }, { op: "add", path: "/list/4", value: 10 }], { ...base, list: [1, 2, 3, 9, 10] }],
    ["add over a member", [{ op: "add", path: "/s", value: { k: [1] } }], { ...base, s: { k: [1] } }],
    ["set an element", [{ op: "set", path: "/list/1", value: "y" }], { ...base, list: [1, "y", 3] }],
    ["set deep", [{ op: "set", path: "/o/b/d", value: true }], { ...base, o: { a: 1, b: { c: 2, d: true } } }],
    ["replace", [{ op: "replace", path: "/o", value: 7 }], { ...base, o: 7 }],
    ["remove", [{ op: "remove", path: "/list/0" }, { op: "remove", path: "/o/b" }], { ...base, list: [2, 3], o: { a: 1 } }],
    ["increment", [{ op: "incr", path: "/n", value: 1.5 }, { op: "incr", path: "/new", value: -2 }], { ...base, n: 2.5, new: -2 }],
    ["move", [{ op: "move", from: "/o/b", path: "/b" }], { ...base, o: { a: 1 }, b: { c: 2 } }],
    ["escapes in paths", [{ op: "set", path: "/a~1b", value: 3 }, { op: "set", path: "/c~0d", value: 4 }], { ...base, "a/b": 3, "c~d": 4 }],
  ]) test(name, async () => assert.deepEqual(await run(...ops), want));
  test("what is refused changes nothing", async () => {
    await c.items.upsert(start);
    const { etag } = await c.item("p", "patch").read();
    for (const [code, ...ops] of [
      [400, { op: "replace", path: "/absent", value: 1 }],
      [400, { op: "remove", path: "/list/9" }],
      [400, { op: "incr", path: "/s", value: 1 }],
      [400, { op: "set", path: "/id", value: "q" }],
      [400, { op: "set", path: "/pk", value: "q" }],
      [400, { op: "move", from: "/o", path: "/o/b/x" }],
      [400, { op: "move", from: "/absent", path: "/q" }],
      [400, { op: "add", path: "/list/7", value: 1 }],
      [400, { op: "set", path: "/n", value: 2 }, { op: "remove", path: "/absent" }],
      [400, ...Array.from({ length: 11 }, () => ({ op: "set", path: "/n", value: 2 }))],
      [400, { op: "frobnicate", path: "/n", value: 1 }],
    ]) await assert.rejects(c.item("p", "patch").patch(ops), (e) => (assert.equal(e.code, code, JSON.stringify(ops)), true));
    assert.equal((await c.item("p", "patch").read()).etag, etag);
    await rejects(c.item("absent", "patch").patch([{ op: "set", path: "/n", value: 1 }]), 404);
  });
  test("a condition", async () => {
    await c.items.upsert(start);
    const done = await c.item("p", "patch").patch({ condition: "from c where c.n = 1 and ARRAY_CONTAINS(c.list, 2)", operations: [{ op: "incr", path: "/n", value: 1 }] });
    assert.equal(done.resource.n, 2);
    await rejects(c.item("p", "patch").patch({ condition: "from c where c.n = 1", operations: [{ op: "incr", path: "/n", value: 1 }] }), 412);
    await rejects(c.item("p", "patch").patch({ condition: "from c where", operations: [{ op: "incr", path: "/n", value: 1 }] }), 400);
  });
});

describe("transactional batch", () => {
  test("every kind of operation", async () => {
    await c.items.create({ id: "b0", pk: "batch", n: 1 });
    const { etag } = await c.item("b0", "batch").read();
    const { result, code, headers } = await c.items.batch([
      { operationType: BulkOperationType.Create, resourceBody: { id: "b1", pk: "batch" } },
      { operationType: BulkOperationType.Upsert, resourceBody: { id: "b2", pk: "batch" } },
      { operationType: BulkOperationType.Read, id: "b1" },
      { operationType: BulkOperationType.Patch, id: "b0", ifMatch: etag, resourceBody: { operations: [{ op: "incr", path: "/n", value: 2 }], condition: "from c where c.n = 1" } },
      { operationType: BulkOperationType.Replace, id: "b2", resourceBody: { id: "b2", pk: "batch", n: 5 } },
      { operationType: BulkOperationType.Delete, id: "b1" },
    ], "batch");
    assert.equal(code, 200);
    assert.deepEqual(result.map((r) => r.statusCode), [201, 201, 200, 200, 200, 204]);
    assert.equal(result[3].resourceBody.n, 3);
    assert.match(headers["x-ms-session-token"], /^\d+:-1#\d+$/);
  });
  test("stale etags, absent items and false conditions undo all", async () => {
    for (const [bad, code] of [
      [{ operationType: BulkOperationType.Replace, id: "b0", ifMatch: '"0"', resourceBody: { id: "b0", pk: "batch" } }, 412],
      [{ operationType: BulkOperationType.Read, id: "absent" }, 404],
      [{ operationType: BulkOperationType.Patch, id: "b0", resourceBody: { operations: [{ op: "set", path: "/n", value: 1 }], condition: "from c where false" } }, 412],
      [{ operationType: BulkOperationType.Create, resourceBody: { id: "b0", pk: "batch" } }, 409],
    ]) {
      const r = await c.items.batch([{ operationType: BulkOperationType.Create, resourceBody: { id: "ghost", pk: "batch" } }, bad], "batch");
      assert.equal(r.code, 207);
      assert.deepEqual(r.result.map((x) => x.statusCode), [424, code]);
    }
    assert.equal((await c.item("ghost", "batch").read()).statusCode, 404);
  });
  test("a hundred operations, and not one more", async () => {
    const ops = (n) => Array.from({ length: n }, (_, i) => ({ operationType: BulkOperationType.Upsert, resourceBody: { id: `m${i}`, pk: "many" } }));
    assert.equal((await c.items.batch(ops(100), "many")).result.length, 100);
    await assert.rejects(c.items.batch(ops(101), "many"));
  });
});

describe("bulk", () => {
  test("every kind, over partitions, with a result in the place of each", async () => {
    const b = await container({ throughput: 25100 });
    const op = (operationType, id, pk, more = {}) => ({ operationType, id, partitionKey: pk, ...more });
    const made = await b.items.executeBulkOperations(Array.from({ length: 300 }, (_, i) => ({ operationType: "Create", partitionKey: `k${i % 30}`, resourceBody: { id: `${i}`, pk: `k${i % 30}`, n: i } })));
    assert.ok(made.every((r) => r.response.statusCode === 201 && r.response.requestCharge > 0 && r.response.eTag));
    const results = await b.items.executeBulkOperations([
      op("Read", "0", "k0"),
      op("Replace", "1", "k1", { resourceBody: { id: "1", pk: "k1", n: -1 } }),
      op("Patch", "2", "k2", { resourceBody: { operations: [{ op: "incr", path: "/n", value: 10 }] } }),
      op("Delete", "3", "k3"),
      { operationType: "Upsert", partitionKey: "k4", resourceBody: { id: "4", pk: "k4", n: 44 } },
      { operationType: "Create", partitionKey: "k5", resourceBody: { id: "5", pk: "k5" } },
      op("Delete", "absent", "k6"),
      op("Replace", "7", "k7", { ifMatch: '"0"', resourceBody: { id: "7", pk: "k7" } }),
      { operationType: "Create", partitionKey: "k8", resourceBody: { id: "no key" } },
    ]);
    assert.deepEqual(results.map((r) => r.response?.statusCode ?? r.error?.code), [200, 200, 200, 204, 200, 409, 404, 412, 400]);
    assert.equal(results[0].response.resourceBody.n, 0);
    assert.equal(results[2].response.resourceBody.n, 12);
    assert.equal(results[4].response.resourceBody.n, 44);
    assert.deepEqual((await b.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources, [299]);
  });
  test("the older bulk() too", async () => {
    const b = await container({ throughput: 25100 });
    const result = await b.items.bulk([
      { operationType: "Create", resourceBody: { id: "1", pk: "a" } },
      { operationType: "Upsert", partitionKey: "b", resourceBody: { id: "2", pk: "b", n: 1 } },
      { operationType: "Read", id: "1", partitionKey: "a" },
      { operationType: "Delete", id: "2", partitionKey: "b" },
      { operationType: "Delete", id: "absent", partitionKey: "b" },
    ], { continueOnError: true });
    assert.deepEqual(result.map((r) => r.statusCode), [201, 201, 200, 204, 404]);
  });
  test("keys that are no strings, and none", async () => {
    const b = await container({ throughput: 25100 });
    const keys = [null, 5, 5.5, true, "x"];
    const done = await b.items.executeBulkOperations(keys.map((pk, i) => ({ operationType: "Create", partitionKey: pk, resourceBody: { id: `${i}`, pk } })));
    assert.deepEqual(done.map((d) => d.response?.statusCode), [201, 201, 201, 201, 201]);
    for (const [i, pk] of keys.entries()) assert.equal((await b.item(`${i}`, pk).read()).statusCode, 200);
  });
});

describe("time to live", () => {
  test("container and item", async () => {
    const t = await container({ defaultTtl: -1 });
    await t.items.create({ id: "stays", pk: "a" });
    // an item expires at the second of its write plus its ttl: with 1 that may be the next moment
    await t.items.create({ id: "goes", pk: "a", ttl: 2 });
    await t.items.create({ id: "saved", pk: "a", ttl: 2 });
    await t.item("saved", "a").patch([{ op: "set", path: "/ttl", value: 1000 }]);
    assert.equal((await t.item("goes", "a").read()).statusCode, 200);
    await sleep(3100);
    assert.equal((await t.item("goes", "a").read()).statusCode, 404);
    assert.deepEqual((await t.items.query("SELECT VALUE c.id FROM c ORDER BY c.id", { partitionKey: "a" }).fetchAll()).resources, ["saved", "stays"]);
    assert.equal((await t.items.create({ id: "goes", pk: "a" })).statusCode, 201);
  });
  test("switched off, an item's own is not looked at", async () => {
    const t = await container();
    await t.items.create({ id: "1", pk: "a", ttl: 1 });
    await sleep(1600);
    assert.equal((await t.item("1", "a").read()).statusCode, 200);
  });
});

describe("hierarchical keys", () => {
  let h;
  before(async () => {
    h = await container({ partitionKey: { paths: ["/tenant", "/user", "/session"], kind: PartitionKeyKind.MultiHash, version: 2 }, throughput: 25100 });
    const ops = [];
    for (const tenant of ["t1", "t2"]) for (const user of [1, 2, null]) for (const session of ["s1", "s2"]) {
      ops.push({ operationType: "Create", partitionKey: [tenant, user, session], resourceBody: { id: `${tenant}${user}${session}`, tenant, user, session } });
    }
    const done = await h.items.executeBulkOperations(ops);
    assert.ok(done.every((d) => d.response?.statusCode === 201), JSON.stringify(done.find((d) => d.error)?.error));
  });
  const count = async (q, o) => (await h.items.query(q, o).fetchAll()).resources.length;
  test("point operations by the whole key", async () => {
    assert.equal((await h.item("t12s1", ["t1", 2, "s1"]).read()).resource.user, 2);
    assert.equal((await h.item("t1nulls2", ["t1", null, "s2"]).read()).statusCode, 200);
    const key = new PartitionKeyBuilder().addValue("t3").addNoneValue().addNullValue().build();
    assert.equal((await h.items.create({ id: "x", tenant: "t3", session: null })).statusCode, 201);
    assert.equal((await h.item("x", key).read()).statusCode, 200);
    assert.equal((await h.item("x", key).patch([{ op: "set", path: "/n", value: 1 }])).resource.n, 1);
    assert.equal((await h.item("x", key).replace({ id: "x", tenant: "t3", session: null, n: 2 })).resource.n, 2);
    assert.equal((await h.item("x", key).delete()).statusCode, 204);
  });
  test("whole keys, prefixes and filters", async () => {
    assert.equal(await count("SELECT * FROM c", { partitionKey: ["t1", 1, "s1"] }), 1);
    assert.equal(await count("SELECT * FROM c", { partitionKey: ["t1", 1] }), 2);
    assert.equal(await count("SELECT * FROM c", { partitionKey: ["t2"] }), 6);
    assert.equal(await count("SELECT * FROM c WHERE c.tenant = 't2' AND c.user = 1"), 2);
    assert.equal(await count("SELECT * FROM c WHERE c.session = 's1'"), 6);
    assert.equal(await count("SELECT * FROM c ORDER BY c.session", { partitionKey: ["t2"] }), 6);
    assert.equal(await count("SELECT * FROM c", { partitionKey: ["absent"] }), 0);
  });
  test("a batch on a whole key; a key of too few parts is refused", async () => {
    const r = await h.items.batch([{ operationType: "Create", resourceBody: { id: "b", tenant: "t1", user: 1, session: "s1" } }, { operationType: "Delete", id: "b" }], ["t1", 1, "s1"]);
    assert.equal(r.code, 200);
    await assert.rejects(h.item("t11s1", ["t1", 1]).read());
  });
  test("deletes of a whole key", async () => {
    await h.deleteAllItemsForPartitionKey(["t1", 1, "s2"]);
    assert.equal(await count("SELECT * FROM c", { partitionKey: ["t1", 1] }), 1);
  });
});

describe("sessions and consistency", () => {
  test("a write's token is kept and sent, and one from the future is 404/1002", async () => {
    const made = await c.items.create({ id: "s", pk: "session" });
    const sessionToken = made.headers["x-ms-session-token"];
    assert.equal((await c.item("s", "session").read({ sessionToken })).statusCode, 200);
    const [range, lsn] = sessionToken.split(":-1#");
    const ahead = { sessionToken: `${range}:-1#${+lsn + 1e9}` };
    // This client drops a token that the server doesn't know and sends the request again, unless it may not try another
    // endpoint.
    const read = await c.item("s", "session").read(ahead);
    assert.equal(read.statusCode, 200);
    const fixed = new CosmosClient({ endpoint: nosql, key, connectionPolicy: { enableEndpointDiscovery: false } });
    const refused = await fixed.database(db.id).container(c.id).item("s", "session").read(ahead);
    assert.deepEqual([refused.statusCode, refused.substatus], [404, 1002]);
    fixed.dispose();
  });
  test("levels up to the account's own are taken, stronger ones refused", async () => {
    for (const consistencyLevel of ["Session", "ConsistentPrefix", "Eventual"]) assert.equal((await c.item("s", "session").read({ consistencyLevel })).statusCode, 200);
    for (const consistencyLevel of ["Strong", "BoundedStaleness"]) await rejects(c.item("s", "session").read({ consistencyLevel }), 400);
    const eventual = new CosmosClient({ endpoint: nosql, key, consistencyLevel: "Eventual" });
    assert.equal((await eventual.database(db.id).container(c.id).item("s", "session").read()).statusCode, 200);
    eventual.dispose();
  });
  test("every reply has its charge, activity and diagnostics", async () => {
    for (const r of [await c.item("s", "session").read(), await c.items.upsert({ id: "s", pk: "session" }), await c.read(), await db.read()]) {
      assert.ok(r.requestCharge > 0);
      assert.match(r.activityId, /^[0-9a-f-]{36}$/);
      assert.ok(r.diagnostics.clientSideRequestStatistics.requestDurationInMs >= 0);
    }
  });
});

test("a version 1 key, and a container without a key of its own", async () => {
  const v1 = await container({ partitionKey: { paths: ["/a/b"], version: 1 } });
  const long = "x".repeat(101); // Only the first hundred count for the place, not for the identity.
  for (const [i, b] of ["text", long, long.slice(1) + "y", 5, -0.5, null, true].entries()) {
    await v1.items.create({ id: `${i}`, a: { b } });
    assert.equal((await v1.item(`${i}`, b).read()).statusCode, 200, String(b));
    assert.equal((await v1.items.query("SELECT * FROM c", { partitionKey: b }).fetchAll()).resources.length, 1);
  }
  const nested = await container({ partitionKey: { paths: ['/"odd name"/k'], version: 2 } });
  await nested.items.create({ id: "1", "odd name": { k: "v" } });
  assert.equal((await nested.item("1", "v").read()).statusCode, 200);
  const deflt = (await db.containers.create({ id: unique("none") })).container;
  assert.deepEqual((await deflt.read()).resource.partitionKey.paths, ["/_partitionKey"]);
  await deflt.items.create({ id: "1" });
  assert.equal((await deflt.item("1").read()).resource?.id, "1");
});

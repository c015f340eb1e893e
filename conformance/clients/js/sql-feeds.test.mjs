// @azure/cosmos 4.x: the change feed in its pull models, by container, range and key, from every start, with
// continuations.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom, CosmosClient, PartitionKeyKind } from "@azure/cosmos";
import { key, nosql, unique } from "./server.mjs";

const client = new CosmosClient({ endpoint: nosql, key });
let db;
before(async () => {
  db = (await client.databases.create({ id: unique("jsf") })).database;
});
after(async () => {
  await db.delete();
  client.dispose();
});
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// filled creates a container of three physical partitions with n items over ten keys.
async function filled(n, options = {}) {
  const { container } = await db.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 }, throughput: 25100, ...options });
  for (let i = 0; i < n; i++) await container.items.create({ id: `${i}`, pk: `p${i % 10}`, n: i });
  return container;
}
// drain reads until every range has replied 304 once, and returns the items and the last continuation.
async function drain(c, options) {
  const it = c.items.getChangeFeedIterator({ maxItemCount: 7, ...options });
  const rows = [];
  let token, idle = 0;
  while (it.hasMoreResults && idle < 4) {
    const page = await it.readNext();
    token = page.continuationToken;
    if (page.statusCode === 304) idle++;
    else {
      idle = 0;
      rows.push(...page.result);
      assert.ok(page.requestCharge > 0 && page.count <= 7);
      assert.match(page.sessionToken, /^\d+:-1#\d+$/);
    }
  }
  return { rows, ids: rows.map((r) => r.id), token };
}
const start = ChangeFeedStartFrom;

describe("the whole container", () => {
  test("from the beginning: each item once, in its partition's order, with its _lsn", async () => {
    const c = await filled(60);
    const { rows } = await drain(c, { changeFeedStartFrom: start.Beginning() });
    assert.equal(new Set(rows.map((r) => r.id)).size, 60);
    assert.equal(rows.length, 60);
    assert.ok(rows.every((r) => Number.isInteger(r._lsn) && r._etag && r._ts));
    for (const pk of new Set(rows.map((r) => r.pk))) {
      const ns = rows.filter((r) => r.pk === pk).map((r) => r.n);
      assert.deepEqual(ns, [...ns].sort((a, b) => a - b));
    }
  });
  test("a continuation gives what was written since: new and changed items, one time each, and no deleted ones", async () => {
    const c = await filled(20);
    const { token } = await drain(c, { changeFeedStartFrom: start.Beginning() });
    await c.item("3", "p3").replace({ id: "3", pk: "p3", n: 100 });
    await c.item("3", "p3").patch([{ op: "incr", path: "/n", value: 1 }]);
    await c.items.upsert({ id: "new", pk: "p1" });
    await c.items.batch([{ operationType: "Create", resourceBody: { id: "b1", pk: "p5" } }, { operationType: "Create", resourceBody: { id: "b2", pk: "p5" } }], "p5");
    await c.item("4", "p4").delete();
    const next = await drain(c, { changeFeedStartFrom: start.Continuation(token) });
    assert.deepEqual(next.ids.sort(), ["3", "b1", "b2", "new"]);
    assert.equal(next.rows.find((r) => r.id === "3").n, 101);
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Continuation(next.token) })).ids, []);
  });
  test("from now, and from a time", async () => {
    const c = await filled(10);
    const now = c.items.getChangeFeedIterator({ changeFeedStartFrom: start.Now() });
    let page;
    for (let i = 0; i < 3; i++) page = await now.readNext();
    assert.equal(page.statusCode, 304);
    await sleep(1100);
    const time = new Date();
    await sleep(1100);
    await c.items.create({ id: "late", pk: "p2" });
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Continuation(page.continuationToken) })).ids, ["late"]);
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Time(time) })).ids, ["late"]);
    assert.equal((await drain(c, { changeFeedStartFrom: start.Time(new Date(Date.now() - 3600e3)) })).ids.length, 11);
  });
  test("an async iterator", async () => {
    const c = await filled(12);
    const ids = [];
    for await (const page of c.items.getChangeFeedIterator({ changeFeedStartFrom: start.Beginning(), maxItemCount: 5 }).getAsyncIterator()) {
      if (page.statusCode === 304) break;
      ids.push(...page.result.map((r) => r.id));
    }
    assert.ok(ids.length > 0);
  });
  test("a continuation of another container is refused", async () => {
    const a = await filled(3), b = await filled(3);
    const { token } = await drain(a, { changeFeedStartFrom: start.Beginning() });
    await assert.rejects(drain(b, { changeFeedStartFrom: start.Continuation(token) }));
  });
});

describe("parts of it", () => {
  test("each feed range has its share, and together they have all", async () => {
    const c = await filled(50);
    const seen = [];
    const ranges = await c.getFeedRanges();
    assert.equal(ranges.length, 3);
    for (const range of ranges) {
      const { ids, token } = await drain(c, { changeFeedStartFrom: start.Beginning(range) });
      seen.push(...ids);
      assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Continuation(token) })).ids, []);
    }
    assert.equal(new Set(seen).size, 50);
    assert.equal(seen.length, 50);
  });
  test("a range smaller than a partition", async () => {
    const c = await filled(50);
    const [like] = await c.getFeedRanges(), middle = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";
    const range = (minInclusive, maxExclusive) => Object.assign(Object.create(Object.getPrototypeOf(like)), { minInclusive, maxExclusive });
    const half = range("", middle), rest = range(middle, "FF");
    const a = (await drain(c, { changeFeedStartFrom: start.Beginning(half) })).ids, b = (await drain(c, { changeFeedStartFrom: start.Beginning(rest) })).ids;
    assert.ok(a.length > 0 && b.length > 0);
    assert.equal(new Set([...a, ...b]).size, 50);
    assert.equal(a.length + b.length, 50);
  });
  test("one partition key: from the beginning, now, a time, a continuation", async () => {
    const c = await filled(30);
    const first = await drain(c, { changeFeedStartFrom: start.Beginning("p4") });
    assert.deepEqual(first.ids, ["4", "14", "24"]);
    await c.items.upsert({ id: "14", pk: "p4", again: true });
    await c.items.upsert({ id: "15", pk: "p5", again: true });
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Continuation(first.token) })).ids, ["14"]);
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Now("p4") })).ids, []);
    assert.equal((await drain(c, { changeFeedStartFrom: start.Time(new Date(Date.now() - 3600e3), "p4") })).ids.length, 3);
  });
  test("a prefix of a hierarchical key", async () => {
    const { container: c } = await db.containers.create({ id: unique("h"), partitionKey: { paths: ["/a", "/b"], kind: PartitionKeyKind.MultiHash, version: 2 } });
    for (const a of ["x", "y"]) for (const b of ["1", "2"]) await c.items.create({ id: a + b, a, b });
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Beginning(["x", "2"]) })).ids, ["x2"]);
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Beginning(["y"]) })).ids.sort(), ["y1", "y2"]);
  });
});

describe("older iterators", () => {
  test("changeFeed() of the container and of a key", async () => {
    const c = await filled(10);
    for (const [it, want] of [[c.items.changeFeed("p3", { startFromBeginning: true }), 1], [c.items.readChangeFeed("p3", { startFromBeginning: true, maxItemCount: 1 }), 1]]) {
      const rows = [];
      while (it.hasMoreResults) rows.push(...(await it.fetchNext()).result ?? []);
      assert.equal(rows.length, want);
    }
    await c.items.create({ id: "more", pk: "p3" });
    const it = c.items.changeFeed("p3", { startTime: new Date(Date.now() - 3600e3) });
    assert.equal((await it.fetchNext()).result.length, 2);
  });
});

describe("all versions and deletes", () => {
  const mode = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
  const kept = () => filled(5, { changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10)) });
  const told = ({ rows }) => rows.map((r) => `${r.metadata.operationType} ${r.previous?.n ?? "-"}>${r.current.n ?? "-"}`);
  async function change(c) {
    await c.items.create({ id: "a", pk: "p1", n: 10 });
    await c.items.upsert({ id: "a", pk: "p1", n: 11 });
    await c.item("a", "p1").patch([{ op: "incr", path: "/n", value: 1 }]);
    await c.item("a", "p1").delete();
    await c.items.create({ id: "b", pk: "p2", n: 20 });
    await c.items.batch([{ operationType: "Replace", id: "b", resourceBody: { id: "b", pk: "p2", n: 21 } }, { operationType: "Create", resourceBody: { id: "c", pk: "p2", n: 30 } }], "p2");
  }
  const ofA = ["create ->10", "replace 10>11", "replace 11>12", "delete 12>-"], ofB = ["create ->20", "replace 20>21", "create ->30"];

  test("the policy is kept, and the whole container's changes come in order", async () => {
    const c = await kept();
    assert.deepEqual((await c.read()).resource.changeFeedPolicy, { retentionDuration: 10 });
    const { rows, token } = await drain(c, { ...mode, changeFeedStartFrom: start.Now() });
    assert.deepEqual(rows, []);
    await change(c);
    const got = await drain(c, { ...mode, changeFeedStartFrom: start.Continuation(token) });
    const of = (key) => told({ rows: got.rows.filter((r) => (r.current.pk ?? r.previous.pk) === key) });
    assert.deepEqual([of("p1"), of("p2"), got.rows.length], [ofA, ofB, 7]);
    const gone = got.rows.find((r) => r.metadata.operationType === "delete");
    const { id, partitionKey, timeToLiveExpired, previousImageLSN, lsn, crts } = gone.metadata;
    assert.deepEqual([gone.current, id, partitionKey, timeToLiveExpired], [{}, "a", { pk: "p1" }, false]);
    assert.ok(previousImageLSN < lsn && Math.abs(crts - Date.now() / 1000) < 60);
    assert.ok(gone.previous._etag && gone.previous._ts && gone.previous._rid);
    assert.deepEqual((await drain(c, { ...mode, changeFeedStartFrom: start.Continuation(got.token) })).rows, []);
    assert.deepEqual((await drain(c, { changeFeedStartFrom: start.Continuation(token) })).ids.sort(), ["b", "c"]);
  });
  test("parts: each range, one key, the first values of a key", async () => {
    const c = await kept();
    const ranges = await c.getFeedRanges();
    const tokens = await Promise.all(ranges.map(async (r) => (await drain(c, { ...mode, changeFeedStartFrom: start.Now(r) })).token));
    const { token } = await drain(c, { ...mode, changeFeedStartFrom: start.Now("p1") });
    await change(c);
    const all = [];
    for (const t of tokens) all.push(...told(await drain(c, { ...mode, changeFeedStartFrom: start.Continuation(t) })));
    assert.deepEqual(all.sort(), [...ofA, ...ofB].sort());
    assert.deepEqual(told(await drain(c, { ...mode, changeFeedStartFrom: start.Continuation(token) })), ofA);
    const { container: h } = await db.containers.create({ id: unique("h"), partitionKey: { paths: ["/a", "/b"], kind: PartitionKeyKind.MultiHash, version: 2 }, changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5)) });
    const x = (await drain(h, { ...mode, changeFeedStartFrom: start.Now(["x"]) })).token;
    for (const a of ["x", "y"]) for (const b of ["1", "2"]) await h.items.create({ id: a + b, a, b });
    await h.item("x1", ["x", "1"]).delete();
    const { rows } = await drain(h, { ...mode, changeFeedStartFrom: start.Continuation(x) });
    assert.deepEqual(rows.map((r) => r.current.id ?? r.metadata.partitionKey).sort((a, b) => (typeof a > typeof b ? -1 : 1)), ["x1", "x2", { a: "x", b: "1" }]);
  });
  test("an item that expires is deleted", async () => {
    const { container: c } = await db.containers.create({ id: unique("ttl"), partitionKey: { paths: ["/pk"] }, defaultTtl: -1, changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5)) });
    const it = c.items.getChangeFeedIterator({ ...mode, changeFeedStartFrom: start.Now() });
    await it.readNext();
    await c.items.create({ id: "short", pk: "p", n: 1, ttl: 1 });
    const rows = [];
    for (let i = 0; i < 200 && rows.length < 2; i++) {
      const page = await it.readNext();
      if (page.statusCode === 304) await sleep(100);
      else rows.push(...page.result);
    }
    assert.deepEqual([told({ rows }), rows[1]?.metadata.timeToLiveExpired], [["create ->1", "delete 1>-"], true]);
  });
  test("other starts, and containers without the policy, are refused", async () => {
    const c = await kept();
    for (const from of [start.Beginning(), start.Beginning("p1"), start.Time(new Date(Date.now() - 1000))]) {
      const it = c.items.getChangeFeedIterator({ ...mode, changeFeedStartFrom: from });
      await assert.rejects(it.readNext(), (e) => e.code === 400 && e.message.includes("You must read the change feed from within the retention period."));
    }
    const it = (await filled(2)).items.getChangeFeedIterator({ ...mode, changeFeedStartFrom: start.Now() });
    await assert.rejects(it.readNext(), (e) => e.code === 400);
  });
});

describe("read feed", () => {
  test("pages of items, over partitions and in one", async () => {
    const c = await filled(30);
    const ids = [];
    const it = c.items.readAll({ maxItemCount: 4 });
    while (it.hasMoreResults()) ids.push(...(await it.fetchNext()).resources.map((r) => r.id));
    assert.equal(new Set(ids).size, 30);
    assert.equal(ids.length, 30);
    assert.equal((await c.items.readAll({ partitionKey: "p1" }).fetchAll()).resources.length, 3);
    assert.equal((await c.items.readAll({ maxItemCount: -1 }).fetchNext()).resources.length, 30);
    let continuationToken, pages = 0, n = 0;
    do {
      const page = await c.items.readAll({ maxItemCount: 8, continuationToken }).fetchNext();
      n += page.resources.length;
      continuationToken = page.continuationToken;
      pages++;
    } while (continuationToken);
    assert.deepEqual([n, pages >= 4], [30, true]);
  });
});

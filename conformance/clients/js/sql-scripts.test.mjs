// @azure/cosmos 4.x: stored procedures, triggers and user-defined functions: as resources, and run by the server.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CosmosClient, TriggerOperation, TriggerType } from "@azure/cosmos";
import { key, nosql, unique } from "./server.mjs";

const client = new CosmosClient({ endpoint: nosql, key });
const rejects = (p, code, say) => assert.rejects(p, (e) => (assert.equal(e.code, code, e.message), say && assert.match(e.message, say), true));
let db, c;
const container = async () => (await db.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 } })).container;
before(async () => {
  db = (await client.databases.create({ id: unique("jss") })).database;
  c = await container();
});
after(async () => {
  await db.delete();
  client.dispose();
});

// The functions below run in the server: each is stored as its text.
/* global getContext, __ */
function addBook(book, fail) {
  const collection = getContext().getCollection();
  const author = { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: book.author }] };
  const accepted = collection.createDocument(collection.getSelfLink(), book, (err, made) => {
    if (err) throw new Error(err.number, err.body);
    collection.queryDocuments(collection.getSelfLink(), author, (err, found) => {
      if (err) throw err;
      if (found.length !== 1) throw new Error("no such author");
      found[0].countOfBooks++;
      collection.replaceDocument(found[0]._self, found[0], (err) => {
        if (err) throw err;
        if (fail) throw new Error(fail, "asked to fail");
        getContext().getResponse().setBody(made);
      });
    });
  });
  if (!accepted) throw new Error("not accepted");
}
function bulkDelete(query) {
  const collection = getContext().getCollection(), link = collection.getSelfLink();
  let deleted = 0;
  page();
  function page(continuation) {
    const accepted = collection.queryDocuments(link, query, { continuation, pageSize: 10 }, (err, docs, info) => {
      if (err) throw err;
      remove(docs, () => (info.continuation ? page(info.continuation) : done(false)));
    });
    if (!accepted) done(true);
  }
  function remove(docs, then) {
    if (docs.length === 0) return then();
    const accepted = collection.deleteDocument(docs[0]._self, (err) => {
      if (err) throw err;
      deleted++;
      remove(docs.slice(1), then);
    });
    if (!accepted) done(true);
  }
  function done(continuation) {
    getContext().getResponse().setBody({ deleted, continuation });
  }
}

describe("stored procedures", () => {
  test("are created, read, replaced, listed, queried and deleted", async () => {
    const s = c.scripts.storedProcedures;
    const { resource, storedProcedure } = await s.create({ id: "crud", body: () => { const x = 10; } });
    assert.match(resource.body, /x = 10/);
    await rejects(s.create({ id: "crud", body: "function () {}" }), 409);
    assert.deepEqual((await storedProcedure.read()).resource, resource);
    const changed = (await storedProcedure.replace({ id: "crud", body: "function () { getContext().getResponse().setBody(20); }" })).resource;
    assert.notEqual(changed._etag, resource._etag);
    assert.equal(changed._rid, resource._rid);
    assert.equal((await storedProcedure.execute("a")).resource, 20);
    assert.deepEqual((await s.readAll().fetchAll()).resources.map((r) => r.id), ["crud"]);
    assert.deepEqual((await s.query("SELECT VALUE r.id FROM root r WHERE r.id = 'crud'").fetchAll()).resources, ["crud"]);
    await storedProcedure.delete();
    await rejects(storedProcedure.read(), 404);
    await rejects(storedProcedure.execute("a"), 404);
    await rejects(s.create({ id: "none" }), 400);
  });
  test("get arguments and answer any value", async () => {
    const { storedProcedure } = await c.scripts.storedProcedures.create({ id: "echo", body: "function (...args) { getContext().getResponse().setBody(args); }" });
    const args = ["text", 1.5, true, null, { a: [1, { b: "é" }] }, []];
    const r = await storedProcedure.execute("a", args);
    assert.deepEqual(r.resource, args);
    assert.ok(r.requestCharge > 0);
    assert.deepEqual((await storedProcedure.execute("a", "one")).resource, ["one"]);
  });
  test("change several items together or not at all", async () => {
    const { storedProcedure } = await c.scripts.storedProcedures.create({ id: "addBook", body: addBook });
    await c.items.create({ id: "a1", pk: "books", countOfBooks: 3 });
    const count = async () => (await c.item("a1", "books").read()).resource.countOfBooks;
    await rejects(storedProcedure.execute("books", [{ id: "b4", pk: "books", author: "a1" }, 4711]), 400, /asked to fail/);
    assert.equal(await count(), 3);
    assert.equal((await c.item("b4", "books").read()).statusCode, 404);
    const { resource } = await storedProcedure.execute("books", [{ id: "b4", pk: "books", author: "a1" }]);
    assert.deepEqual((await c.item("b4", "books").read()).resource, resource);
    assert.equal(await count(), 4);
    const e = await storedProcedure.execute("books", [{ id: "b4", pk: "books", author: "a1" }]).catch((e) => e);
    assert.deepEqual([e.code, e.substatus], [400, 409]);
    await rejects(storedProcedure.execute("books", [{ id: "b5", pk: "other", author: "a1" }]), 400, /partition key/i);
    await Promise.all(Array.from({ length: 20 }, (_, i) => storedProcedure.execute("books", [{ id: `n${i}`, pk: "books", author: "a1" }])));
    assert.equal(await count(), 24);
  });
  test("page through what they delete", async () => {
    const { storedProcedure } = await c.scripts.storedProcedures.create({ id: "bulkDelete", body: bulkDelete });
    for (let i = 0; i < 35; i++) await c.items.create({ id: `${i}`, pk: "bulk", n: i });
    assert.deepEqual((await storedProcedure.execute("bulk", ["SELECT * FROM c WHERE c.n >= 5"])).resource, { deleted: 30, continuation: false });
    assert.equal((await c.items.query("SELECT * FROM c", { partitionKey: "bulk" }).fetchAll()).resources.length, 5);
  });
  test("answer with their log", async () => {
    const { storedProcedure } = await c.scripts.storedProcedures.create({ id: "log", body: "function () { console.log('ä b'); console.log('%s!', 'c'); }" });
    const { headers } = await storedProcedure.execute("a", [], { enableScriptLogging: true });
    assert.match(decodeURIComponent(headers["x-ms-documentdb-script-log-results"]), /ä b[^]*c!/);
    assert.equal((await storedProcedure.execute("a")).headers["x-ms-documentdb-script-log-results"], undefined);
  });
  test("chain queries, and may be async", async () => {
    const s = c.scripts.storedProcedures;
    for (let i = 0; i < 4; i++) await c.items.create({ id: `${i}`, pk: "chain", n: i });
    const chain = await s.create({ id: "chain", body: "function () { __.chain().filter((d) => d.n > 0).sortByDescending((d) => d.n).pluck('id').value(); }" });
    assert.deepEqual((await chain.storedProcedure.execute("chain")).resource, ["3", "2", "1"]);
    const later = await s.create({ id: "later", body: "async function () { const n = await Promise.resolve(7); __.response.setBody(n); }" });
    assert.equal((await later.storedProcedure.execute("chain")).resource, 7);
  });
  test("that fail say where", async () => {
    const { storedProcedure } = await c.scripts.storedProcedures.create({ id: "fails", body: "function fails() { null.x; }" });
    await rejects(storedProcedure.execute("a"), 400, /Encountered exception while executing Javascript[^]*fails/);
  });
});

describe("triggers", () => {
  const pre = "function () { const r = getContext().getRequest(), d = r.getBody(); if (d.bad) throw new Error('a bad item'); d.stamped = r.getOperationType(); r.setBody(d); }";
  test("are created, read, replaced, listed and deleted", async () => {
    const t = c.scripts.triggers;
    const { resource, trigger } = await t.create({ id: "crud", body: "function () {}", triggerType: TriggerType.Post, triggerOperation: TriggerOperation.Delete });
    assert.deepEqual((await trigger.read()).resource, resource);
    assert.deepEqual([resource.triggerType, resource.triggerOperation], [TriggerType.Post, TriggerOperation.Delete]);
    await trigger.replace({ id: "crud", body: "function () {}", triggerType: TriggerType.Pre, triggerOperation: TriggerOperation.All });
    assert.deepEqual((await t.readAll().fetchAll()).resources.map((r) => r.triggerType), [TriggerType.Pre]);
    await trigger.delete();
    await rejects(trigger.read(), 404);
    await rejects(t.create({ id: "x", body: "function () {}", triggerType: "before", triggerOperation: TriggerOperation.All }), 400);
  });
  test("run with the writes that name them", async () => {
    await c.scripts.triggers.create({ id: "pre", body: pre, triggerType: TriggerType.Pre, triggerOperation: TriggerOperation.All });
    const o = { preTriggerInclude: "pre" };
    assert.equal((await c.items.create({ id: "1", pk: "t" }, o)).resource.stamped, "Create");
    assert.equal((await c.item("1", "t").replace({ id: "1", pk: "t" }, o)).resource.stamped, "Replace");
    assert.equal((await c.items.upsert({ id: "1", pk: "t" }, o)).resource.stamped, "Upsert");
    await rejects(c.items.create({ id: "2", pk: "t", bad: true }, o), 400, /a bad item/);
    assert.equal((await c.item("2", "t").read()).statusCode, 404);
    assert.equal((await c.items.create({ id: "3", pk: "t" })).resource.stamped, undefined);
  });
  test("write in the transaction of the item", async () => {
    const post = `function () {
      const c = getContext().getCollection(), made = getContext().getResponse().getBody();
      c.upsertDocument(c.getSelfLink(), { id: "last", pk: made.pk, of: made.id }, (err) => { if (err || made.bad) throw err || new Error("bad"); });
    }`;
    await c.scripts.triggers.create({ id: "post", body: post, triggerType: TriggerType.Post, triggerOperation: TriggerOperation.Create });
    await c.items.create({ id: "1", pk: "p" }, { postTriggerInclude: "post" });
    await rejects(c.items.create({ id: "2", pk: "p", bad: true }, { postTriggerInclude: ["post"] }), 400);
    assert.equal((await c.item("last", "p").read()).resource.of, "1");
    assert.equal((await c.item("2", "p").read()).statusCode, 404);
    await rejects(c.items.create({ id: "3", pk: "p" }, { preTriggerInclude: "post" }), 400);
    await rejects(c.items.create({ id: "3", pk: "p" }, { postTriggerInclude: "none" }), 400);
    await rejects(c.item("1", "p").delete({ postTriggerInclude: "post" }), 400);
    assert.equal((await c.item("3", "p").read()).statusCode, 404);
    assert.equal((await c.item("1", "p").read()).statusCode, 200);
  });
});

describe("user-defined functions", () => {
  test("are resources, and run in queries", async () => {
    const f = c.scripts.userDefinedFunctions;
    const { resource, userDefinedFunction } = await f.create({ id: "tax", body: "function (n) { return n < 1000 ? n * 0.1 : n * 0.2; }" });
    assert.deepEqual((await userDefinedFunction.read()).resource, resource);
    for (const n of [500, 1000, 2000]) await c.items.create({ id: `${n}`, pk: "udf", n });
    const run = async (q) => (await c.items.query(q, { partitionKey: "udf" }).fetchAll()).resources;
    assert.deepEqual(await run("SELECT VALUE udf.tax(c.n) FROM c ORDER BY c.n"), [50, 200, 400]);
    assert.deepEqual(await run("SELECT VALUE c.n FROM c WHERE udf.tax(c.n) = 200"), [1000]);
    await userDefinedFunction.replace({ id: "tax", body: "function (n) { return -n; }" });
    assert.deepEqual(await run("SELECT VALUE udf.tax(c.n) FROM c WHERE c.n = 500"), [-500]);
    await userDefinedFunction.delete();
    await rejects(run("SELECT VALUE udf.tax(c.n) FROM c"), 400);
  });
});

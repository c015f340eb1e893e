// npm gremlin 3.8: scripts and bytecode, over GraphBinary, GraphSON 2 and 3, with both kinds of login.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import gremlin from "gremlin";
import { CosmosClient } from "@azure/cosmos";
import { account, gremlin as url, key, nosql, unique } from "./server.mjs";

const { Client, DriverRemoteConnection, auth } = gremlin.driver;
const { traversal } = gremlin.process.AnonymousTraversalSource;
const { P, TextP, t, order, cardinality, statics: __ } = gremlin.process;
const { Vertex, Edge, Path } = gremlin.structure;

const graphson2 = "application/vnd.gremlin-v2.0+json";
const graphson3 = "application/vnd.gremlin-v3.0+json";
const graphbinary = "application/vnd.graphbinary-v1.0";

const login = (user, options = {}) => ({ authenticator: new auth.PlainTextSaslAuthenticator(user, key), traversalSource: "g", ...options });
const script = (mimeType, user = account) => new Client(url, login(user, { mimeType }));

// The toy graph of TinkerPop's documentation. Its ids are unique to this run.
const prefix = unique("js");
const id = (n) => `${prefix}-${n}`;
async function modern(g) {
  const add = (n, label, name, more = {}) =>
    Object.entries(more).reduce((q, [k, v]) => q.property(k, v), g.addV(label).property(t.id, id(n)).property("name", name).property("run", prefix)).next();
  await add(1, "person", "marko", { age: 29 });
  await add(2, "person", "vadas", { age: 27 });
  await add(3, "software", "lop", { lang: "java" });
  await add(4, "person", "josh", { age: 32 });
  await add(5, "software", "ripple", { lang: "java" });
  await add(6, "person", "peter", { age: 35 });
  const edge = (n, from, label, to, weight) => g.V(id(from)).addE(label).to(__.V(id(to))).property(t.id, id(n)).property("weight", weight).next();
  await edge(7, 1, "knows", 2, 0.5);
  await edge(8, 1, "knows", 4, 1.5);
  await edge(9, 1, "created", 3, 0.4);
  await edge(10, 4, "created", 5, 1.25);
  await edge(11, 4, "created", 3, 0.4);
  await edge(12, 6, "created", 3, 0.2);
}

describe("bytecode", () => {
  let connection, g;
  before(async () => {
    connection = new DriverRemoteConnection(url, login(account));
    g = traversal().withRemote(connection);
    await modern(g);
  });
  after(async () => {
    await g.V().has("run", prefix).drop().iterate();
    await connection.close();
  });
  const mine = () => g.V().has("run", prefix);
  const names = async (q) => (await q.values("name").toList()).sort();

  test("elements", async () => {
    const { value: v } = await g.V(id(1)).next();
    assert.ok(v instanceof Vertex);
    assert.equal(v.id, id(1));
    assert.equal(v.label, "person");
    const { value: e } = await g.E(id(7)).next();
    assert.ok(e instanceof Edge);
    assert.equal(e.outV.id, id(1));
    assert.equal(e.inV.id, id(2));
    assert.equal(e.properties?.weight?.value ?? e.properties?.find?.((p) => p.key === "weight")?.value, 0.5);
  });
  test("has, hasLabel, hasId, hasNot", async () => {
    assert.deepEqual(await names(mine().hasLabel("software")), ["lop", "ripple"]);
    assert.deepEqual(await names(mine().has("age", P.gt(29))), ["josh", "peter"]);
    assert.deepEqual(await names(mine().has("age", P.gt(27).and(P.lt(32)))), ["marko"]);
    assert.deepEqual(await names(mine().has("age", P.within(27, 35))), ["peter", "vadas"]);
    assert.deepEqual(await names(mine().has("person", "name", TextP.startingWith("m"))), ["marko"]);
    assert.deepEqual(await names(mine().hasNot("age")), ["lop", "ripple"]);
    assert.deepEqual(await names(g.V().hasId(id(1), id(2))), ["marko", "vadas"]);
  });
  test("out, in, both and their edges", async () => {
    assert.deepEqual(await names(g.V(id(1)).out("knows")), ["josh", "vadas"]);
    assert.deepEqual(await names(g.V(id(3)).in_("created")), ["josh", "marko", "peter"]);
    assert.deepEqual(await names(g.V(id(4)).both()), ["lop", "marko", "ripple"]);
    assert.equal((await g.V(id(1)).outE().count().next()).value, 3);
    assert.equal((await g.V(id(3)).inE("created").count().next()).value, 3);
    assert.deepEqual(await names(g.V(id(1)).outE("knows").otherV()), ["josh", "vadas"]);
    assert.deepEqual(await names(g.E(id(7)).bothV()), ["marko", "vadas"]);
  });
  test("where, not, and, or, is", async () => {
    assert.deepEqual(await names(mine().where(__.out("created"))), ["josh", "marko", "peter"]);
    assert.deepEqual(await names(mine().hasLabel("person").not(__.out("created"))), ["vadas"]);
    assert.deepEqual(await names(mine().and(__.has("age"), __.out("knows"))), ["marko"]);
    assert.deepEqual(await names(mine().or(__.has("lang"), __.out("knows"))), ["lop", "marko", "ripple"]);
    assert.deepEqual(await mine().values("age").is(P.gte(32)).order().toList(), [32, 35]);
  });
  test("valueMap, elementMap, properties, id, label", async () => {
    const { value: m } = await g.V(id(1)).valueMap("name", "age").next();
    assert.deepEqual(m.get("name"), ["marko"]);
    assert.deepEqual(m.get("age"), [29]);
    const { value: em } = await g.V(id(1)).elementMap().next();
    assert.equal(em.get("name"), "marko");
    assert.ok([...em.keys()].some((k) => String(k) === "T.id" || k?.elementName === "id"));
    assert.equal((await g.V(id(1)).properties("name").value().next()).value, "marko");
    assert.equal((await g.V(id(1)).id().next()).value, id(1));
    assert.equal((await g.V(id(1)).label().next()).value, "person");
  });
  test("count, sum, min, max, mean, fold, unfold", async () => {
    assert.equal((await mine().count().next()).value, 6);
    assert.equal((await mine().values("age").sum().next()).value, 123);
    assert.equal((await mine().values("age").min().next()).value, 27);
    assert.equal((await mine().values("age").max().next()).value, 35);
    assert.equal((await mine().values("age").mean().next()).value, 30.75);
    assert.deepEqual((await mine().values("age").order().fold().next()).value, [27, 29, 32, 35]);
    assert.deepEqual(await g.inject([1, 2]).unfold().toList(), [1, 2]);
  });
  test("order, limit, range, tail, dedup", async () => {
    assert.deepEqual(await mine().order().by("name").values("name").limit(2).toList(), ["josh", "lop"]);
    assert.deepEqual(await mine().hasLabel("person").order().by("age", order.desc).values("name").toList(), ["peter", "josh", "marko", "vadas"]);
    assert.deepEqual(await mine().values("name").order().range(1, 3).toList(), ["lop", "marko"]);
    assert.deepEqual(await mine().values("name").order().tail(1).toList(), ["vadas"]);
    assert.deepEqual(await mine().out("created").values("name").dedup().order().toList(), ["lop", "ripple"]);
  });
  test("as, select, project, path", async () => {
    const { value: s } = await g.V(id(1)).as("a").out("created").as("b").select("a", "b").by("name").next();
    assert.deepEqual([s.get("a"), s.get("b")], ["marko", "lop"]);
    const { value: p } = await g.V(id(1)).project("n", "c").by("name").by(__.out().count()).next();
    assert.deepEqual([p.get("n"), p.get("c")], ["marko", 3]);
    const { value: path } = await g.V(id(1)).out("created").path().by("name").next();
    assert.ok(path instanceof Path);
    assert.deepEqual(path.objects, ["marko", "lop"]);
  });
  test("repeat, times, until, emit", async () => {
    assert.deepEqual(await names(g.V(id(1)).repeat(__.out()).times(2)), ["lop", "ripple"]);
    assert.deepEqual(await names(g.V(id(1)).repeat(__.out()).emit()), ["josh", "lop", "lop", "ripple", "vadas"]);
    assert.deepEqual(await names(g.V(id(1)).repeat(__.out()).until(__.has("lang"))), ["lop", "lop", "ripple"]);
  });
  test("union, coalesce, choose, optional", async () => {
    assert.deepEqual((await g.V(id(1)).union(__.values("name"), __.out("knows").values("name")).toList()).sort(), ["josh", "marko", "vadas"]);
    assert.deepEqual(await g.V(id(2)).coalesce(__.out().values("name"), __.constant("none")).toList(), ["none"]);
    assert.deepEqual((await mine().hasLabel("person").choose(__.has("age", P.gt(30)), __.constant("old"), __.constant("young")).toList()).sort(),
      ["old", "old", "young", "young"]);
    assert.deepEqual(await names(g.V(id(2)).optional(__.out())), ["vadas"]);
  });
  test("group, groupCount, sideEffect, inject, constant", async () => {
    const { value: c } = await mine().groupCount().by(t.label).next();
    assert.deepEqual([c.get("person"), c.get("software")], [4, 2]);
    const { value: gr } = await mine().group().by(t.label).by("name").next();
    assert.deepEqual(gr.get("software").sort(), ["lop", "ripple"]);
    assert.deepEqual(await g.inject("a", "b").toList(), ["a", "b"]);
  });
  test("property, drop", async () => {
    await g.addV("thing").property(t.id, id("p")).property("run", prefix).property(cardinality.list, "tag", "a").property(cardinality.list, "tag", "b").iterate();
    assert.deepEqual((await g.V(id("p")).values("tag").toList()).sort(), ["a", "b"]);
    await g.V(id("p")).property(cardinality.single, "tag", "c").iterate();
    assert.deepEqual(await g.V(id("p")).values("tag").toList(), ["c"]);
    await g.V(id("p")).properties("tag").drop().iterate();
    assert.equal(await g.V(id("p")).has("tag").hasNext(), false);
    await g.V(id("p")).drop().iterate();
    assert.equal(await g.V(id("p")).hasNext(), false);
  });
  test("an error has its status", async () => {
    await assert.rejects(g.V(id(1)).values("name").sum().next(), (e) => e.statusCode >= 500);
  });
  test("hundreds of results come in chunks", async () => {
    const list = await g.inject(...Array.from({ length: 300 }, (_, i) => i)).toList();
    assert.equal(list.length, 300);
    assert.equal(list[299], 299);
  });
});

describe("scripts", () => {
  for (const mime of [graphbinary, graphson2, graphson3]) {
    test(mime, async () => {
      const client = script(mime);
      const me = unique("script");
      try {
        await client.submit("g.addV('person').property(id, x).property('name', 'marko').property('age', 29)", { x: me });
        const one = await client.submit("g.V(x)", { x: me });
        assert.equal(one.length, 1);
        assert.equal(one.first().label, "person");
        assert.equal(one.first().id, me);
        assert.equal((await client.submit("g.V(x).values('age')", { x: me })).first(), 29);
        const m = (await client.submit("g.V(x).valueMap()", { x: me })).first();
        assert.deepEqual((m instanceof Map ? m.get("name") : m.name), ["marko"]);
        assert.equal((await client.submit("g.V('nobody-at-all')")).length, 0);
        await assert.rejects(client.submit("g.V().nonsense()"), (e) => e.statusCode === 597);
        assert.equal((await client.submit("g.inject(1).count()")).first(), 1); // the connection lives on
        await client.submit("g.V(x).drop()", { x: me });
      } finally {
        await client.close();
      }
    });
  }
  test("a session", async () => {
    const client = new Client(url, login(account, { session: unique("session"), processor: "session" }));
    try {
      assert.equal((await client.submit("g.inject(5)")).first(), 5);
    } finally {
      await client.close();
    }
  });
  test("stream", async () => {
    const client = script(graphbinary);
    try {
      const got = [];
      for await (const chunk of client.stream("g.inject(1,2,3,4,5)", {}, { batchSize: 2 })) got.push(...chunk.toArray());
      assert.deepEqual(got, [1, 2, 3, 4, 5]);
    } finally {
      await client.close();
    }
  });
});

describe("an application of the service", () => {
  const db = unique("graphdb"), coll = "people";
  const user = `/dbs/${db}/colls/${coll}`;
  let cosmos, client;
  before(async () => {
    cosmos = new CosmosClient({ endpoint: nosql, key });
    await cosmos.databases.create({ id: db });
    await cosmos.database(db).containers.create({ id: coll, partitionKey: { paths: ["/region"] } });
    client = script(graphson2, user);
  });
  after(async () => {
    await client.close();
    await cosmos.database(db).delete();
    cosmos.dispose();
  });

  test("answers are untyped, with the service's attributes", async () => {
    const made = await client.submit("g.addV('city').property('id', 'Seattle').property('region', 'USA').property('size', 3)");
    const v = made.first();
    assert.equal(v.type, "vertex");
    assert.equal(v.id, "Seattle");
    assert.equal(v.properties.size[0].value, 3);
    assert.equal(made.attributes["x-ms-status-code"] ?? made.attributes.get?.("x-ms-status-code"), 200);
  });
  test("a point read by partition key and id", async () => {
    const r = await client.submit("g.V(['USA', 'Seattle'])");
    assert.equal(r.length, 1);
    assert.equal(r.first().id, "Seattle");
    assert.equal((await client.submit("g.V(['DE', 'Seattle'])")).length, 0);
  });
  test("edges by their source's partition key", async () => {
    await client.submit("g.addV('city').property('id', 'Portland').property('region', 'USA')");
    await client.submit("g.V(['USA','Seattle']).addE('road').to(g.V(['USA','Portland'])).property('id', 'I5')");
    const e = (await client.submit("g.E(['USA', 'I5'])")).first();
    assert.equal(e.type, "edge");
    assert.equal(e.outV, "Seattle");
    assert.equal(e.inV, "Portland");
    assert.equal((await client.submit("g.V(['USA','Portland']).in('road').count()")).first(), 1);
  });
  test("a vertex needs its partition key", async () => {
    await assert.rejects(client.submit("g.addV('city').property('id', 'nowhere')"),
      (e) => /partition key property has value 'null'/.test(e.message));
  });
  test("an id is taken once in a partition", async () => {
    await assert.rejects(client.submit("g.addV('city').property('id', 'Seattle').property('region', 'USA')"),
      (e) => /already exists/.test(e.message));
  });
  test("a syntax error has the service's text", async () => {
    await assert.rejects(client.submit("g.V().has("), (e) => /GraphCompileException/.test(e.message) && /Gremlin Query Compilation Error/.test(e.message));
  });
  test("an unknown graph", async () => {
    const c = script(graphson2, `/dbs/${db}/colls/nothing`);
    await assert.rejects(c.submit("g.V()"), (e) => /Owner resource does not exist/.test(e.message));
    await c.close();
  });
  test("a wrong key", async () => {
    const c = new Client(url, { authenticator: new auth.PlainTextSaslAuthenticator(user, "bm9wZQ=="), traversalSource: "g", mimeType: graphson2 });
    await assert.rejects(c.submit("g.V()"), (e) => e.statusCode === 401);
    await c.close();
  });
});

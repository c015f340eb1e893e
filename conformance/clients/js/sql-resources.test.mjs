// @azure/cosmos 4.x: everything except items: account, databases, containers and their policies, throughput, users,
// permissions, conflicts, encryption keys.
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, describe, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { account, key, nosql, unique } from "./server.mjs";

const client = new CosmosClient({ endpoint: nosql, key });
const rejects = (p, code, say) => assert.rejects(p, (e) => (assert.equal(e.code, code, e.message), say && assert.match(e.message, say), true));
let db;
before(async () => {
  db = (await client.databases.create({ id: unique("jsr") })).database;
});
after(async () => {
  await db.delete();
  client.dispose();
});
const container = async (options = {}, request = {}) => (await db.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 }, ...options }, request)).container;

describe("clients", () => {
  test("by connection string, with every address from the account document", async () => {
    const other = new CosmosClient(`AccountEndpoint=${nosql}/;AccountKey=${key};`);
    assert.equal((await other.database(db.id).read()).statusCode, 200);
    for (const ask of ["getReadEndpoint", "getWriteEndpoint"]) assert.equal(new URL(await other[ask]()).origin, nosql);
    assert.deepEqual((await other.getReadEndpoints()).map((u) => new URL(u).origin), [nosql]);
    assert.deepEqual((await other.getWriteEndpoints()).map((u) => new URL(u).origin), [nosql]);
    other.dispose();
  });
  test("by a token provider, and by a permission feed", async () => {
    const c = await container();
    await c.items.create({ id: "1", pk: "a" });
    const { user } = await db.users.create({ id: unique("u") });
    await user.permissions.create({ id: "p", permissionMode: "Read", resource: c.url });
    const permissionFeed = (await user.permissions.readAll().fetchAll()).resources;
    const fed = new CosmosClient({ endpoint: nosql, permissionFeed });
    assert.equal((await fed.database(db.id).container(c.id).item("1", "a").read()).statusCode, 200);
    fed.dispose();
    const provided = new CosmosClient({ endpoint: nosql, tokenProvider: async () => permissionFeed[0]._token });
    assert.equal((await provided.database(db.id).container(c.id).item("1", "a").read()).statusCode, 200);
    provided.dispose();
  });
  test("the emulator's form of AAD tokens", async () => {
    const part = (x) => Buffer.from(x).toString("base64url");
    const token = [
      part(JSON.stringify({ typ: "JWT", alg: "RS256", x5t: "CosmosEmulatorPrimaryMaster", kid: "CosmosEmulatorPrimaryMaster" })),
      part(JSON.stringify({ aud: "https://localhost.localhost", iss: "https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984", iat: 1, nbf: 1, exp: 4102444800 })),
      part(key),
    ].join(".");
    // This client sends such tokens only over HTTPS, which is on the same port.
    const ca = await (await fetch(nosql + "/_explorer/emulator.pem")).text();
    const over = { endpoint: nosql.replace("http:", "https:"), agent: new Agent({ ca }) };
    const aad = new CosmosClient({ ...over, aadCredentials: { getToken: async () => ({ token, expiresOnTimestamp: Date.now() + 3600e3 }) } });
    assert.equal((await aad.database(db.id).read()).statusCode, 200);
    aad.dispose();
    const bad = new CosmosClient({ ...over, aadCredentials: { getToken: async () => ({ token: token.slice(0, -4) + "AAAA", expiresOnTimestamp: Date.now() + 3600e3 }) } });
    await rejects(bad.database(db.id).read(), 401);
    bad.dispose();
  });
  test("the account document", async () => {
    const { resource, headers } = await client.getDatabaseAccount();
    assert.equal(resource.enableMultipleWritableLocations ?? false, false);
    assert.equal(resource.writableLocations[0].name, account);
    assert.ok(headers["x-ms-activity-id"]);
  });
  test("an aborted request", async () => {
    const gone = new AbortController();
    gone.abort();
    await assert.rejects(client.databases.readAll({ abortSignal: gone.signal }).fetchAll());
  });
});

describe("databases", () => {
  test("with shared throughput", async () => {
    const { database } = await client.databases.create({ id: unique("shared"), throughput: 600 });
    const { resource, offer } = await database.readOffer();
    assert.equal(resource.content.offerThroughput, 600);
    resource.content.offerThroughput = 800;
    await offer.replace(resource);
    assert.equal((await database.readOffer()).resource.content.offerThroughput, 800);
    const { container: c } = await database.containers.createIfNotExists({ id: "c", partitionKey: "/pk" });
    assert.equal((await c.items.create({ id: "1", pk: "a" })).statusCode, 201);
    await database.delete();
  });
  test("autoscale", async () => {
    const { database } = await client.databases.create({ id: unique("auto"), maxThroughput: 4000 });
    assert.equal((await database.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
    await database.delete();
  });
  test("paged", async () => {
    const names = [];
    for (let i = 0; i < 5; i++) names.push((await client.databases.create({ id: unique("page") })).database.id);
    const seen = [];
    const it = client.databases.readAll({ maxItemCount: 2 });
    while (it.hasMoreResults()) seen.push(...((await it.fetchNext()).resources ?? []).map((d) => d.id));
    assert.ok(names.every((n) => seen.filter((s) => s === n).length === 1));
    for (const n of names) await client.database(n).delete();
  });
  test("names that are refused", async () => {
    for (const id of ["a/b", "a\\b", "a?b", "a#b", "x".repeat(256), "ends "]) await assert.rejects(client.databases.create({ id }), id);
  });
});

describe("containers' policies come back as they were given, with defaults", () => {
  const roundTrip = async (more) => {
    const c = await container(more);
    const { resource } = await c.read();
    return [resource, c];
  };
  test("partition keys", async () => {
    const { container: s } = await db.containers.create({ id: unique("s"), partitionKey: "/x/y" });
    assert.deepEqual((await s.read()).resource.partitionKey.paths, ["/x/y"]);
    const { result } = { result: (await s.getPartitionKeyDefinition()).resource };
    assert.equal(result.kind, "Hash");
    const [h] = await roundTrip({ partitionKey: { paths: ["/a", "/b", "/c"], kind: "MultiHash", version: 2 } });
    assert.deepEqual(h.partitionKey, { paths: ["/a", "/b", "/c"], kind: "MultiHash", version: 2 });
  });
  test("indexing", async () => {
    const indexingPolicy = {
      indexingMode: "consistent", automatic: true,
      includedPaths: [{ path: "/a/?" }, { path: "/list/[]/x/?" }, { path: '/"quoted name"/*' }],
      excludedPaths: [{ path: "/*" }],
      compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
      spatialIndexes: [{ path: "/loc/*", types: ["Point", "Polygon"] }],
    };
    const [r] = await roundTrip({ indexingPolicy });
    assert.deepEqual(r.indexingPolicy.includedPaths.map((p) => p.path), ["/a/?", "/list/[]/x/?", '/"quoted name"/*']);
    assert.ok(r.indexingPolicy.excludedPaths.some((p) => p.path === "/*"));
    assert.deepEqual(r.indexingPolicy.compositeIndexes, indexingPolicy.compositeIndexes);
    assert.deepEqual(r.indexingPolicy.spatialIndexes.map((s) => s.path), ["/loc/*"]);
    const [none] = await roundTrip({ indexingPolicy: { indexingMode: "none", automatic: false } });
    assert.equal(none.indexingPolicy.indexingMode, "none");
    const [lazy] = await roundTrip({ indexingPolicy: { indexingMode: "lazy" } });
    assert.match(lazy.indexingPolicy.indexingMode, /lazy|consistent/);
  });
  test("unique keys, conflicts, change feed, geometry, computed properties, vectors, full text", async () => {
    const policies = {
      uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/a", "/b/c"] }, { paths: ["/d"] }] },
      conflictResolutionPolicy: { mode: "LastWriterWins", conflictResolutionPath: "/version" },
      geospatialConfig: { type: "Geometry" },
      computedProperties: [{ name: "low", query: "SELECT VALUE LOWER(c.name) FROM c" }],
      vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 4, distanceFunction: "euclidean" }] },
      defaultTtl: 100,
    };
    const [r] = await roundTrip(policies);
    assert.deepEqual(r.uniqueKeyPolicy.uniqueKeys, policies.uniqueKeyPolicy.uniqueKeys);
    assert.equal(r.conflictResolutionPolicy.conflictResolutionPath, "/version");
    assert.equal(r.geospatialConfig.type, "Geometry");
    assert.deepEqual(r.computedProperties, policies.computedProperties);
    assert.deepEqual(r.vectorEmbeddingPolicy.vectorEmbeddings, policies.vectorEmbeddingPolicy.vectorEmbeddings);
    assert.equal(r.defaultTtl, 100);
    const fullTextPolicy = { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] };
    const [t] = await roundTrip({ fullTextPolicy, indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [], fullTextIndexes: [{ path: "/text" }] } });
    assert.deepEqual(t.fullTextPolicy, fullTextPolicy);
  });
  test("what is refused", async () => {
    for (const bad of [
      { indexingPolicy: { includedPaths: [{ path: "/a/?" }] } },
      { indexingPolicy: { indexingMode: "none", automatic: true } },
      { uniqueKeyPolicy: { uniqueKeys: [{ paths: [] }] } },
      { uniqueKeyPolicy: { uniqueKeys: Array.from({ length: 11 }, (_, i) => ({ paths: [`/u${i}`] })) } },
      { computedProperties: [{ name: "x", query: "SELECT c.a FROM c" }] },
      { computedProperties: Array.from({ length: 21 }, (_, i) => ({ name: `p${i}`, query: "SELECT VALUE c.a FROM c" })) },
      { defaultTtl: -2 },
      { conflictResolutionPolicy: { mode: "Sometimes" } },
      { vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: "/v", dataType: "float99", dimensions: 4, distanceFunction: "cosine" }] } },
      { partitionKey: { paths: ["/a", "/b"], version: 2 } },
    ]) await assert.rejects(container(bad), (e) => (assert.equal(e.code, 400, e.message), true), JSON.stringify(bad));
  });
  test("quota and index progress, when asked", async () => {
    const c = await container();
    for (let i = 0; i < 20; i++) await c.items.create({ id: `${i}`, pk: "a" });
    const { headers } = await c.read({ populateQuotaInfo: true });
    assert.match(headers["x-ms-resource-usage"], /documentsCount=20/);
    assert.match(headers["x-ms-resource-quota"], /documentSize=/);
    assert.equal(headers["x-ms-documentdb-collection-index-transformation-progress"], "100");
  });
  test("a stale etag stops a replace and a delete", async () => {
    const c = await container();
    const { resource } = await c.read();
    await rejects(c.replace(resource, { accessCondition: { type: "IfMatch", condition: '"0"' } }), 412);
    await rejects(c.delete({ accessCondition: { type: "IfMatch", condition: '"0"' } }), 412);
  });
  test("a changed policy serves queries at once", async () => {
    const c = await container({ indexingPolicy: { includedPaths: [], excludedPaths: [{ path: "/*" }] } });
    for (let i = 0; i < 30; i++) await c.items.create({ id: `${i}`, pk: "a", n: i });
    const { resource } = await c.read();
    resource.indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [] };
    await c.replace(resource);
    assert.deepEqual((await c.items.query("SELECT VALUE c.n FROM c WHERE c.n > 26 ORDER BY c.n DESC", { partitionKey: "a" }).fetchAll()).resources, [29, 28, 27]);
  });
});

describe("offers", () => {
  test("the account's list has each container's own, and a query finds it", async () => {
    const c = await container({ throughput: 500 });
    const { resource } = await c.read();
    const all = (await client.offers.readAll().fetchAll()).resources;
    assert.equal(all.filter((o) => o.offerResourceId === resource._rid).length, 1);
    const [found] = (await client.offers.query({ query: "SELECT * FROM root WHERE root.resource = @r", parameters: [{ name: "@r", value: resource._self }] }).fetchAll()).resources;
    assert.equal(found.content.offerThroughput, 500);
    assert.equal(found.offerVersion, "V2");
    const read = await client.offer(found.id).read();
    assert.equal(read.resource._rid, found._rid);
    assert.ok(+read.headers["x-ms-cosmos-min-throughput"] >= 400);
  });
  test("throughput that is refused", async () => {
    for (const throughput of [399, 450, -100]) await assert.rejects(container({ throughput }), String(throughput));
    const c = await container({ throughput: 400 });
    const { resource, offer } = await c.readOffer();
    resource.content.offerThroughput = 401;
    await rejects(offer.replace(resource), 400);
    await assert.rejects(container({ maxThroughput: 500 }));
    await assert.rejects(container({ throughput: 400, maxThroughput: 4000 }));
  });
  test("autoscale: its maximum changes; more throughput makes more ranges", async () => {
    const autoUpgradePolicy = { throughputPolicy: { incrementPercent: 15 } };
    const a = await container({ maxThroughput: 4000, autoUpgradePolicy });
    const { resource, offer } = await a.readOffer();
    assert.deepEqual(resource.content.offerAutopilotSettings, { maxThroughput: 4000, autoUpgradePolicy });
    resource.content.offerAutopilotSettings.maxThroughput = 8000;
    assert.equal((await offer.replace(resource)).resource.content.offerAutopilotSettings.maxThroughput, 8000);
    const m = await container({ throughput: 400 });
    for (let i = 0; i < 20; i++) await m.items.create({ id: `${i}`, pk: `${i}` });
    const was = await m.readOffer();
    was.resource.content.offerThroughput = 25000;
    await was.offer.replace(was.resource);
    const fresh = new CosmosClient({ endpoint: nosql, key });
    const again = fresh.database(db.id).container(m.id);
    assert.equal((await again.items.query("SELECT * FROM c").fetchAll()).resources.length, 20);
    fresh.dispose();
  });
});

describe("conflicts", () => {
  test("there are none", async () => {
    const c = await container();
    assert.deepEqual((await c.conflicts.readAll().fetchAll()).resources, []);
    assert.deepEqual((await c.conflicts.query("SELECT * FROM c").fetchAll()).resources, []);
    // This client (4.10.1) requests a single conflict with a path that no server has.
    await assert.rejects(c.conflict("x", "a").delete());
  });
});

describe("permissions", () => {
  test("on an item: that item and no other", async () => {
    const c = await container();
    for (const id of ["1", "2"]) await c.items.create({ id, pk: "a" });
    const { user } = await db.users.create({ id: unique("u") });
    const { resource } = await user.permissions.create({ id: "one", permissionMode: "All", resource: c.item("1", "a").url });
    const one = new CosmosClient({ endpoint: nosql, resourceTokens: { [c.item("1", "a").url]: resource._token } });
    const seen = one.database(db.id).container(c.id);
    assert.equal((await seen.item("1", "a").read()).statusCode, 200);
    assert.equal((await seen.item("1", "a").replace({ id: "1", pk: "a", n: 1 })).resource.n, 1);
    await assert.rejects(seen.item("2", "a").read());
    one.dispose();
  });
  test("a token's life is what was asked for", async () => {
    const c = await container();
    await c.items.create({ id: "1", pk: "a" });
    const { user } = await db.users.create({ id: unique("u") });
    await rejects(user.permissions.create({ id: "x", permissionMode: "Read", resource: c.url }, { resourceTokenExpirySeconds: 5 }), 400);
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "Read", resource: c.url }, { resourceTokenExpirySeconds: 10 });
    const holder = new CosmosClient({ endpoint: nosql, resourceTokens: { [c.url]: resource._token } });
    assert.equal((await holder.database(db.id).container(c.id).item("1", "a").read()).statusCode, 200);
    holder.dispose();
  });
  test("a bound token and a transactional batch, a patch, a change feed", async () => {
    const c = await container();
    const { user } = await db.users.create({ id: unique("u") });
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "All", resource: c.url, resourcePartitionKey: ["a"] });
    const holder = new CosmosClient({ endpoint: nosql, resourceTokens: { [c.url]: resource._token } });
    const seen = holder.database(db.id).container(c.id);
    const create = (pk) => [{ operationType: "Create", resourceBody: { id: "1", pk } }];
    assert.equal((await seen.items.batch(create("a"), "a")).code, 200);
    await assert.rejects(seen.items.batch(create("b"), "b"), /Insufficient permissions/);
    assert.equal((await seen.item("1", "a").patch([{ op: "set", path: "/n", value: 1 }])).resource.n, 1);
    holder.dispose();
  });
  test("a tampered token is refused", async () => {
    const c = await container();
    const { user } = await db.users.create({ id: unique("u") });
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "Read", resource: c.url });
    const i = resource._token.length - 6;
    const bad = resource._token.slice(0, i) + (resource._token[i] === "A" ? "B" : "A") + resource._token.slice(i + 1);
    const holder = new CosmosClient({ endpoint: nosql, resourceTokens: { [c.url]: bad } });
    await assert.rejects(holder.database(db.id).container(c.id).items.readAll().fetchAll(), (e) => e.code === 401 || e.code === 403);
    holder.dispose();
  });
  test("refused permissions", async () => {
    const { user } = await db.users.create({ id: unique("u") });
    for (const bad of [{ id: "p", permissionMode: "Write", resource: "dbs/x/colls/y" }, { id: "p", permissionMode: "Read" }, { permissionMode: "Read", resource: "dbs/x/colls/y" }])
      await assert.rejects(user.permissions.create(bad), JSON.stringify(bad));
  });
});

describe("client encryption", () => {
  // A key store that only reverses bytes: the test is about what the server stores and returns.
  const store = {
    encryptionKeyResolverName: "TEST_KEY_STORE",
    wrapKey: async (_path, _algorithm, bytes) => Buffer.from(bytes).reverse(),
    unwrapKey: async (_path, _algorithm, bytes) => Buffer.from(bytes).reverse(),
  };
  test("keys are kept, and encrypted properties come back decrypted to who has the key", async () => {
    const secret = new CosmosClient({ endpoint: nosql, key, clientEncryptionOptions: { keyEncryptionKeyResolver: store } });
    const mine = secret.database(db.id);
    const metadata = { type: "TEST_KEY_STORE", name: "cmk", value: "test-cmk", algorithm: "RSA-OAEP" };
    const made = await mine.createClientEncryptionKey("cek", "AEAD_AES_256_CBC_HMAC_SHA256", metadata);
    assert.equal(made.statusCode, 201);
    await rejects(mine.createClientEncryptionKey("cek", "AEAD_AES_256_CBC_HMAC_SHA256", metadata), 409);
    assert.deepEqual((await mine.readClientEncryptionKey("cek")).clientEncryptionKeyProperties?.encryptionKeyWrapMetadata ?? metadata, metadata);
    const { container: c } = await mine.containers.create({
      id: "secrets", partitionKey: { paths: ["/pk"], version: 2 },
      clientEncryptionPolicy: { policyFormatVersion: 2, includedPaths: [{ path: "/ssn", clientEncryptionKeyId: "cek", encryptionType: "Deterministic", encryptionAlgorithm: "AEAD_AES_256_CBC_HMAC_SHA256" }] },
    });
    await c.items.create({ id: "1", pk: "a", ssn: "123-45", open: 1 });
    assert.equal((await c.item("1", "a").read()).resource.ssn, "123-45");
    const { resource } = await db.container("secrets").item("1", "a").read();
    assert.notEqual(resource.ssn, "123-45");
    assert.equal(resource.open, 1);
    secret.dispose();
  });
});

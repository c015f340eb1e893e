// The Table API through @azure/data-tables.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, TableTransaction,
  generateAccountSas, generateTableSas, odata,
} from "@azure/data-tables";
import { account, key, table as endpoint } from "./server.mjs";

const credential = new AzureNamedKeyCredential(account, key);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
// Root and path style, and the host name for which the client uses its Cosmos DB dialect (POST with X-HTTP-Method).
const styles = { root: endpoint, path: `${endpoint}/${account}`, cosmos: endpoint.replace("127.0.0.1", "localhost") };

let n = 0;
const unique = () => `t${process.pid}x${++n}`;
const all = async (pages) => {
  const out = [];
  for await (const x of pages) out.push(x);
  return out;
};
const code = (status, c) => (e) => {
  assert.equal(e.statusCode, status);
  assert.equal(e.details?.odataError?.code ?? e.code, c);
  return true;
};

for (const [style, url] of Object.entries(styles)) {
  const create = async () => {
    const c = new TableClient(url, unique(), credential, options);
    await c.createTable();
    return c;
  };

  test(`${style}: tables`, async () => {
    const service = new TableServiceClient(url, credential, options);
    const [a, b] = [unique(), unique()];
    await service.createTable(a);
    await service.createTable(b);
    await service.createTable(b); // the client takes 409 TableAlreadyExists as done
    const names = (await all(service.listTables())).map((t) => t.name);
    assert.ok(names.includes(a) && names.includes(b));
    const found = await all(service.listTables({ queryOptions: { filter: odata`TableName eq ${a}` } }));
    assert.deepEqual(found.map((t) => t.name), [a]);
    await service.deleteTable(a);
    assert.ok(!(await all(service.listTables())).some((t) => t.name === a));
  });

  test(`${style}: every type makes the round trip`, async () => {
    const c = await create();
    const entity = {
      partitionKey: "p", rowKey: "r", text: "größe \"x\"", yes: true, int: 42, double: 1.5, big: 9007199254740993n,
      when: new Date("2024-03-04T05:06:07.123Z"), bytes: new Uint8Array([0, 1, 255]),
      guid: { type: "Guid", value: "6f1ed002-ab55-4d5a-b7ee-3ff5ef60ba1a" },
      ticks: { type: "DateTime", value: "2024-03-04T05:06:07.1234567Z" },
      nan: { type: "Double", value: "NaN" },
    };
    await c.createEntity(entity);
    const got = await c.getEntity("p", "r");
    for (const k of ["text", "yes", "int", "double", "big"]) assert.equal(got[k], entity[k], k);
    assert.equal(got.when.getTime(), entity.when.getTime());
    assert.deepEqual([...got.bytes], [0, 1, 255]);
    assert.equal(got.guid.value, entity.guid.value);
    assert.ok(got.etag && got.timestamp);
    const raw = await c.getEntity("p", "r", { disableTypeConversion: true });
    assert.deepEqual(raw.ticks, entity.ticks);
    assert.deepEqual(raw.big, { type: "Int64", value: "9007199254740993" });
    assert.equal(raw.nan.value, "NaN");
  });

  test(`${style}: writes and ETags`, async () => {
    const c = await create();
    const e = { partitionKey: "p", rowKey: "O'Brien/".slice(0, 7), a: 1, b: 1 };
    await c.createEntity(e);
    await assert.rejects(c.createEntity(e), code(409, "EntityAlreadyExists"));
    const { etag } = await c.updateEntity({ ...e, a: undefined, b: 2 }, "Merge");
    let got = await c.getEntity("p", e.rowKey);
    assert.deepEqual([got.a, got.b, got.etag], [1, 2, etag]);
    await c.updateEntity({ partitionKey: "p", rowKey: e.rowKey, z: 9 }, "Replace", { etag });
    got = await c.getEntity("p", e.rowKey);
    assert.deepEqual([got.a, got.z], [undefined, 9]);
    await assert.rejects(c.updateEntity({ ...e }, "Replace", { etag }), code(412, "UpdateConditionNotSatisfied"));
    await assert.rejects(c.deleteEntity("p", e.rowKey, { etag }), code(412, "UpdateConditionNotSatisfied"));
    await assert.rejects(c.updateEntity({ partitionKey: "p", rowKey: "none" }, "Merge"), code(404, "ResourceNotFound"));
    await c.upsertEntity({ partitionKey: "p", rowKey: "new", a: 1 }, "Merge");
    await c.upsertEntity({ partitionKey: "p", rowKey: "new", b: 1 }, "Replace");
    got = await c.getEntity("p", "new");
    assert.deepEqual([got.a, got.b], [undefined, 1]);
    await c.deleteEntity("p", "new");
    await assert.rejects(c.getEntity("p", "new"), code(404, "ResourceNotFound"));
  });

  test(`${style}: filters, select and pages`, async () => {
    const c = await create();
    for (let i = 0; i < 30; i++) {
      await c.createEntity({ partitionKey: `p${i % 2}`, rowKey: String(i).padStart(3, "0"), n: i, big: BigInt(i), name: `it's ${i}` });
    }
    const count = async (filter) => (await all(c.listEntities({ queryOptions: { filter } }))).length;
    assert.equal(await count(odata`PartitionKey eq ${"p1"}`), 15);
    assert.equal(await count(odata`PartitionKey eq ${"p1"} and n lt ${10}`), 5);
    assert.equal(await count(odata`big ge ${20n}`), 10);
    assert.equal(await count(odata`name eq ${"it's 7"}`), 1);
    assert.equal(await count(odata`Timestamp gt ${new Date(0)}`), 30);
    assert.equal(await count("not (n ge 1)"), 1);
    const [one] = await all(c.listEntities({ queryOptions: { filter: "RowKey eq '007'", select: ["n"] } }));
    assert.deepEqual([one.n, one.name, one.rowKey], [7, undefined, undefined]);
    const pages = [];
    for await (const p of c.listEntities({ queryOptions: { filter: "PartitionKey eq 'p0'" } }).byPage({ maxPageSize: 4 })) pages.push(p);
    assert.deepEqual(pages.map((p) => p.length), [4, 4, 4, 3]);
    const keys = pages.flat().map((e) => e.rowKey);
    assert.deepEqual(keys, [...keys].sort());
    const again = c.listEntities().byPage({ maxPageSize: 20, continuationToken: undefined });
    const first = (await again.next()).value;
    const rest = (await c.listEntities().byPage({ maxPageSize: 20, continuationToken: first.continuationToken }).next()).value;
    assert.equal(new Set([...first, ...rest].map((e) => e.rowKey)).size, 30);
    await assert.rejects(count("n eq"), code(400, "InvalidInput"));
  });

  test(`${style}: transactions`, async () => {
    const c = await create();
    const tx = new TableTransaction();
    for (let i = 0; i < 100; i++) tx.createEntity({ partitionKey: "p", rowKey: String(i), n: i });
    const done = await c.submitTransaction(tx.actions);
    assert.equal(done.status, 202);
    assert.equal(done.subResponses.length, 100);
    assert.ok(done.getResponseForEntity("7").etag);
    await c.submitTransaction([
      ["update", { partitionKey: "p", rowKey: "0", m: 1 }, "Merge"],
      ["update", { partitionKey: "p", rowKey: "1", m: 1 }, "Replace"],
      ["upsert", { partitionKey: "p", rowKey: "new", m: 1 }, "Merge"],
      ["delete", { partitionKey: "p", rowKey: "2" }],
    ]);
    const zero = await c.getEntity("p", "0");
    assert.deepEqual([zero.n, zero.m], [0, 1]);
    await assert.rejects(c.submitTransaction([
      ["delete", { partitionKey: "p", rowKey: "3" }],
      ["create", { partitionKey: "p", rowKey: "4" }],
    ]), (e) => {
      assert.match(e.message, /^1:The specified entity already exists\./);
      return code(409, "EntityAlreadyExists")(e);
    });
    assert.equal((await c.getEntity("p", "3")).n, 3);
    assert.equal((await all(c.listEntities())).length, 100);
  });
}

test("the worked example: people, Smith, Ben", async () => {
  const people = new TableClient(endpoint, "people", credential, options);
  await people.createTable({ requestOptions: { customHeaders: { "x-ms-cosmos-throughput": "800" } } });
  await people.upsertEntity({ partitionKey: "Smith", rowKey: "Ben", email: "Ben@contoso.com" });
  assert.equal((await people.getEntity("Smith", "Ben")).email, "Ben@contoso.com");
});

test("credentials", async () => {
  const wrong = new TableClient(endpoint, unique(), new AzureNamedKeyCredential(account, "AAAA"), options);
  await assert.rejects(wrong.createTable(), (e) => e.statusCode === 403);
  const name = unique();
  const c = new TableClient(endpoint, name, credential, options);
  await c.createTable();
  await c.createEntity({ partitionKey: "p", rowKey: "1" });
  const sas = generateAccountSas(credential, { permissions: { query: true }, expiresOn: new Date(Date.now() + 3600e3) });
  const reader = new TableClient(endpoint, name, new AzureSASCredential(sas), options);
  assert.equal((await all(reader.listEntities())).length, 1);
  await assert.rejects(reader.createEntity({ partitionKey: "p", rowKey: "2" }), (e) => e.statusCode === 403);
  const adder = generateTableSas(name, credential, { permissions: { add: true }, expiresOn: new Date(Date.now() + 3600e3) });
  const one = new TableClient(endpoint, name, new AzureSASCredential(adder), options);
  await one.createEntity({ partitionKey: "p", rowKey: "2" });
  await assert.rejects(one.getEntity("p", "1"), (e) => e.statusCode === 403);
  const accessPolicy = { permission: "r", start: new Date(Date.now() - 3600e3), expiry: new Date(Date.now() + 3600e3) };
  await c.setAccessPolicy([{ id: "readers", accessPolicy }]);
  assert.equal((await c.getAccessPolicy())[0].accessPolicy.permission, "r");
  const named = new TableClient(endpoint, name, new AzureSASCredential(generateTableSas(name, credential, { identifier: "readers" })), options);
  assert.equal((await named.getEntity("p", "1")).rowKey, "1");
  await assert.rejects(named.createEntity({ partitionKey: "p", rowKey: "3" }), (e) => e.statusCode === 403);
});

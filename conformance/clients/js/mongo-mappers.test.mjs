// Programs on the MongoDB API that map objects, migrate data and limit rates.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { EntitySchema, MikroORM } from "@mikro-orm/mongodb";
import migrate from "migrate-mongo";
import { MongoClient } from "mongodb";
import { RateLimiterMongo } from "rate-limiter-flexible";
import { account, key, mongo, unique } from "./server.mjs";

const uri = `mongodb://${encodeURIComponent(account)}:${encodeURIComponent(key)}@${mongo}/?directConnection=true&authSource=admin`;
const client = new MongoClient(uri);
after(() => client.close());

test("migrate-mongo: validators, transactions, renames, and back", async () => {
  const dir = await mkdtemp(join(tmpdir(), "migrations"));
  try {
    const migration = (name, text) => writeFile(join(dir, name), `module.exports = {${text}};`);
    await migration("20200101000000-one.cjs", `
      async up(db) {
        await db.createCollection("a", { validator: { $jsonSchema: { bsonType: "object", required: ["n"] } } });
        await db.collection("a").insertMany([{ n: 1 }, { n: 2 }]);
        await db.collection("a").createIndex({ n: 1 }, { unique: true });
      },
      async down(db) { await db.collection("a").drop(); }`);
    await migration("20200102000000-two.cjs", `
      async up(db, client) {
        await client.withSession((session) => session.withTransaction(() =>
          db.collection("a").updateMany({}, [{ $set: { m: { $multiply: ["$n", 2] } } }], { session })));
        await db.collection("a").rename("b");
      },
      async down(db) {
        await db.collection("b").rename("a");
        await db.collection("a").updateMany({}, { $unset: { m: "" } });
      }`);
    migrate.config.set({
      mongodb: { url: uri, databaseName: unique("migrations"), options: {} }, migrationsDir: dir, changelogCollectionName: "changelog",
      lockCollectionName: "lock", lockTtl: 60, migrationFileExtension: ".cjs", useFileHash: true, moduleSystem: "commonjs",
    });
    const { db, client: own } = await migrate.database.connect();
    try {
      assert.deepEqual(await migrate.up(db, own), ["20200101000000-one.cjs", "20200102000000-two.cjs"]);
      assert.deepEqual((await db.collection("b").find().sort({ n: 1 }).toArray()).map((d) => d.m), [2, 4]);
      await assert.rejects(db.collection("b").insertOne({ x: 1 }), { code: 121 });
      await assert.rejects(db.collection("b").insertOne({ n: 1 }), { code: 11000 });
      assert.deepEqual(await migrate.down(db, own), ["20200102000000-two.cjs"]);
      assert.deepEqual(Object.keys(await db.collection("a").findOne()), ["_id", "n"]);
      assert.deepEqual((await migrate.status(db)).map((s) => s.appliedAt === "PENDING"), [false, true]);
    } finally {
      await own.close();
    }
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("rate-limiter-flexible: clients at once", async () => {
  const dbName = unique("limits");
  const limiter = new RateLimiterMongo({
    storeClient: await client.connect(), dbName, tableName: "l", points: 3, duration: 60, disableIndexesCreation: true,
  });
  await limiter.createIndexes(); // by itself it doesn't wait for the unique index, without which clients count apart
  const all = await Promise.allSettled([1, 2, 3, 4, 5].map(() => limiter.consume("k")));
  assert.equal(all.filter((r) => r.status === "fulfilled").length, 3);
  assert.equal((await limiter.get("k")).consumedPoints, 5);
  await limiter.delete("k");
  assert.equal(await limiter.get("k"), null);
});

test("MikroORM: relations, unique values, transactions", async () => {
  const id = { _id: { type: "ObjectId", primary: true }, id: { type: "string", serializedPrimaryKey: true } };
  const Author = new EntitySchema({
    name: "Author",
    properties: { ...id, name: { type: "string" }, mail: { type: "string", unique: true }, books: { kind: "1:m", entity: "Book", mappedBy: "author" } },
  });
  const Book = new EntitySchema({ name: "Book", properties: { ...id, title: { type: "string", index: true }, author: { kind: "m:1", entity: "Author" } } });
  const orm = await MikroORM.init({ entities: [Author, Book], dbName: unique("mikro"), clientUrl: uri, ensureIndexes: true, implicitTransactions: true });
  try {
    const em = orm.em.fork();
    const author = em.create("Author", { name: "Ann", mail: "a@x" });
    for (const title of ["One", "Two"]) em.create("Book", { title, author });
    await em.flush();
    const next = orm.em.fork();
    const [found] = await next.find("Author", { name: /^A/ }, { populate: ["books"] });
    assert.equal(found.books.length, 2);
    found.name = "Bea";
    found.books.getItems()[0].title = "Three";
    await next.flush();
    const last = orm.em.fork();
    assert.deepEqual((await last.find("Book", {}, { orderBy: { title: 1 } })).map((b) => b.title), ["Three", "Two"]);
    last.create("Author", { name: "Cy", mail: "a@x" });
    await assert.rejects(last.flush(), { name: "UniqueConstraintViolationException" });
    assert.equal((await orm.em.fork().aggregate("Book", [{ $group: { _id: "$author", n: { $sum: 1 } } }]))[0].n, 2);
  } finally {
    await orm.close();
  }
});

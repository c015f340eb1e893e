// The MongoDB API through the npm driver. ORRERY_MONGO_URI names another server with its credentials.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { MongoClient, ObjectId, Long, Decimal128, Binary, Timestamp, UUID } from "mongodb";
import { account, key, mongo, unique } from "./server.mjs";

const credentials = `${encodeURIComponent(account)}:${encodeURIComponent(key)}`;
const uri = (options) => process.env.ORRERY_MONGO_URI ?? `mongodb://${credentials}@${mongo}/?${options}`;
const client = new MongoClient(uri("directConnection=true"));
const db = client.db(unique("js"));
let n = 0;
const collection = () => db.collection(`c${++n}`);
after(() => client.close());

const code = (c) => (e) => {
  assert.equal(e.code, c, e.message);
  return true;
};

test("connection strings", async () => {
  for (const o of ["directConnection=true", "replicaSet=globaldb&retrywrites=false&appName=@localhost@", "replicaSet=globaldb", "authMechanism=SCRAM-SHA-1", "authMechanism=SCRAM-SHA-256", "tls=true&tlsAllowInvalidCertificates=true"]) {
    const c = new MongoClient(uri(o));
    assert.equal((await c.db("admin").command({ ping: 1 })).ok, 1, o);
    await c.close();
  }
  const bad = new MongoClient(`mongodb://${account}:wrong@${mongo}/?directConnection=true`);
  await assert.rejects(bad.connect(), code(18));
  await bad.close();
});

test("types come back as they were", async () => {
  const c = collection();
  const d = {
    _id: new ObjectId(), s: "grüße", i: 1, l: Long.fromString("9007199254740993"), f: 1.5, d: Decimal128.fromString("1.10"), b: true, n: null,
    t: new Date(1700000000123), bin: new Binary(Buffer.from([1, 2, 3])), u: new UUID(), r: /^a.b$/i, ts: new Timestamp({ t: 5, i: 6 }),
    a: [1, "x", { y: [] }], o: { $nested: 1, "with.dot": 2 },
  };
  await c.insertOne(d);
  const got = await c.findOne({ _id: d._id }, { promoteLongs: false });
  assert.equal(got.l.toString(), "9007199254740993");
  for (const k of ["s", "f", "b", "n", "a", "o"]) assert.deepEqual(JSON.stringify(got[k]), JSON.stringify(d[k]), k);
  assert.equal(got.d.toString(), "1.10");
  assert.equal(+got.t, +d.t);
  assert.ok(got.u.equals(d.u));
  assert.deepEqual(got.bin.buffer.subarray(0, 3), d.bin.buffer.subarray(0, 3));
  assert.equal(String(got.r), String(d.r));
  assert.ok(got.ts.equals(d.ts));
});

test("insert, find, cursors", async () => {
  const c = collection();
  await c.insertMany(Array.from({ length: 350 }, (_, i) => ({ _id: i, g: i % 5, v: 349 - i })));
  assert.equal((await c.find({ g: 2 }).toArray()).length, 70);
  assert.deepEqual((await c.find({}).sort({ v: 1 }).skip(2).limit(3).project({ _id: 1 }).toArray()).map((d) => d._id), [347, 346, 345]);
  const seen = new Set();
  for await (const d of c.find({}).batchSize(17)) seen.add(d._id);
  assert.equal(seen.size, 350);
  assert.equal(await c.countDocuments({ g: { $gt: 2 } }), 140);
  assert.equal(await c.estimatedDocumentCount(), 350);
  assert.deepEqual((await c.distinct("g")).sort(), [0, 1, 2, 3, 4]);
  await assert.rejects(c.insertOne({ _id: 5 }), code(11000));
  await assert.rejects(c.find({ a: { $nope: 1 } }).toArray(), code(2));
});

test("updates", async () => {
  const c = collection();
  await c.insertOne({ _id: 1, n: 1, list: [{ k: 1 }, { k: 2 }] });
  await c.updateOne({ _id: 1, "list.k": 2 }, { $set: { "list.$.hit": true }, $inc: { n: 2 }, $push: { tags: { $each: ["b", "a"], $sort: 1 } } });
  assert.deepEqual(await c.findOne({ _id: 1 }), { _id: 1, n: 3, list: [{ k: 1 }, { k: 2, hit: true }], tags: ["a", "b"] });
  const up = await c.updateOne({ k: "new" }, { $set: { a: 1 } }, { upsert: true });
  assert.equal(up.upsertedCount, 1);
  const after = await c.findOneAndUpdate({ _id: 1 }, { $unset: { list: "" } }, { returnDocument: "after", projection: { list: 1, n: 1 } });
  assert.deepEqual(after, { _id: 1, n: 3 });
  assert.equal((await c.replaceOne({ _id: 1 }, { only: 1 })).modifiedCount, 1);
  assert.deepEqual(await c.findOneAndDelete({ only: 1 }), { _id: 1, only: 1 });
  const bulk = await c.bulkWrite([{ insertOne: { document: { _id: "x" } } }, { updateMany: { filter: {}, update: { $set: { z: 1 } } } }, { deleteOne: { filter: { _id: "x" } } }]);
  assert.deepEqual([bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount], [1, 2, 1]);
});

test("aggregate", async () => {
  const c = collection();
  await c.insertMany([{ _id: 1, c: "a", t: 10, i: [1, 2] }, { _id: 2, c: "b", t: 20 }, { _id: 3, c: "a", t: 5 }]);
  const out = await c.aggregate([{ $match: { t: { $gt: 1 } } }, { $group: { _id: "$c", s: { $sum: "$t" }, avg: { $avg: "$t" } } }, { $sort: { s: -1 } }]).toArray();
  assert.deepEqual(out, [{ _id: "b", s: 20, avg: 20 }, { _id: "a", s: 15, avg: 7.5 }]);
  assert.equal((await c.aggregate([{ $unwind: "$i" }]).toArray()).length, 2);
  await assert.rejects(c.aggregate([{ $nope: 1 }]).toArray(), code(40324));
});

test("indexes and collections", async () => {
  const c = collection();
  await assert.rejects(c.indexes(), code(26));
  assert.equal(await c.createIndex({ a: 1, b: -1 }, { background: true }), "a_1_b_-1");
  assert.deepEqual((await c.indexes()).map((i) => i.name), ["_id_", "a_1_b_-1"]);
  assert.equal(await c.createIndex({ u: 1 }, { unique: true }), "u_1");
  await c.insertOne({ _id: 1, u: "x" });
  await assert.rejects(c.insertOne({ _id: 2, u: "x" }), code(11000));
  await c.dropIndex("u_1");
  await c.insertOne({ _id: 2, u: "x" });
  await c.dropIndex("a_1_b_-1");
  assert.ok((await db.listCollections().toArray()).some((x) => x.name === c.collectionName));
  assert.ok((await client.db().admin().listDatabases()).databases.some((x) => x.name === db.databaseName));
  assert.equal(await c.drop(), true);
});

test("shardCollection, the worked example", async () => {
  const name = unique("people").replaceAll("-", "_");
  const reply = await client.db("admin").command({ shardCollection: `admin.${name}`, key: { region: "hashed" } });
  assert.equal(reply._t, "ShardCollectionResponse");
  assert.equal(reply.ok, 1);
  assert.equal(reply.collectionsharded, `admin.${name}`);
  const c = client.db("admin").collection(name);
  for (const region of ["LAX", "AMS", "MEL"]) await c.insertOne({ _id: 1, region });
  assert.equal((await c.find({ region: "AMS" }).toArray()).length, 1);
  assert.equal(await c.countDocuments({ _id: 1 }), 3);
  await assert.rejects(c.insertOne({ _id: 2 }), code(61));
  await c.drop();
});

test("sessions and transactions", async () => {
  const c = new MongoClient(uri("replicaSet=globaldb"));
  const coll = c.db(db.databaseName).collection("s");
  await coll.insertOne({ _id: 1 }); // a retryable write
  const session = c.startSession();
  const failed = new Error("no");
  const undone = async () => {
    await coll.insertOne({ _id: 2 }, { session });
    throw failed;
  };
  await assert.rejects(session.withTransaction(undone), failed);
  assert.equal(await coll.findOne({ _id: 2 }), null);
  await session.withTransaction(() => coll.insertMany([{ _id: 2 }, { _id: 3 }], { session }));
  assert.equal((await coll.find({ _id: { $in: [2, 3] } }).toArray()).length, 2);
  await session.endSession();
  assert.equal(await coll.countDocuments(), 3);
  await c.close();
});

test("watch", async () => {
  const c = collection();
  await c.insertOne({ _id: 0 });
  const stream = c.watch([{ $match: { operationType: { $ne: "drop" } } }], { fullDocument: "updateLookup" });
  const whole = db.watch();
  const opened = Promise.all([stream, whole].map((s) => s.tryNext())); // opens them
  await opened;
  await c.insertMany([{ _id: 1, a: 1 }, { _id: 2 }]);
  await c.updateOne({ _id: 1 }, { $set: { a: 2 } });
  await c.replaceOne({ _id: 2 }, { b: 3 });
  await c.deleteOne({ _id: 2 });
  const told = (e) => [e.operationType, e.documentKey?._id];
  const events = [];
  for (let i = 0; i < 5; i++) events.push(await stream.next());
  assert.deepEqual(events.map(told), [["insert", 1], ["insert", 2], ["update", 1], ["replace", 2], ["delete", 2]]);
  assert.deepEqual(events[2].updateDescription.updatedFields, { a: 2 });
  assert.deepEqual(events[2].fullDocument, { _id: 1, a: 2 });
  assert.deepEqual(told(await whole.next()), ["insert", 1]);
  await stream.close();
  await whole.close();
  // Another stream goes on behind an event, as an asynchronous iterator.
  const again = c.watch([], { resumeAfter: events[2]._id });
  const rest = [];
  setTimeout(() => c.drop(), 50);
  for await (const e of again) {
    rest.push(e.operationType);
    if (e.operationType === "invalidate") break;
  }
  assert.deepEqual(rest, ["replace", "delete", "drop", "invalidate"]);
});

test("a capped collection is tailed", async () => {
  const c = await db.createCollection(unique("log"), { capped: true, size: 1 << 16, max: 5 });
  await c.insertMany([1, 2, 3].map((i) => ({ _id: i })));
  const got = [];
  const tail = c.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 200 }).stream();
  let more;
  setTimeout(() => (more = c.insertMany([4, 5, 6].map((i) => ({ _id: i })))), 50);
  for await (const d of tail) if (got.push(d._id) === 6) break;
  await more; // until it is answered there may be too many
  assert.deepEqual(got, [1, 2, 3, 4, 5, 6]);
  assert.deepEqual((await c.find().toArray()).map((d) => d._id), [2, 3, 4, 5, 6]);
});

test("users have the rights of their roles", async () => {
  const own = db.databaseName, name = unique("user");
  const user = () => ({ createUser: name, pwd: "secret", roles: [{ role: "read", db: own }], mechanisms: ["SCRAM-SHA-256"] });
  await db.command(user());
  await client.db("admin").command(user()); // drivers know no other database for PLAIN
  await db.collection("rights").insertOne({ _id: 1 });
  const server = new URL(uri("").replace("mongodb:", "http:")).host;
  const as = async (o, f) => {
    const c = new MongoClient(`mongodb://${name}:secret@${server}/?directConnection=true&${o}`);
    try {
      await f(c);
    } finally {
      await c.close();
    }
  };
  for (const o of [`authSource=${own}`, "authMechanism=PLAIN&tls=true&tlsAllowInvalidCertificates=true"]) {
    await as(o, async (c) => {
      const things = c.db(own).collection("rights");
      assert.deepEqual(await things.find().toArray(), [{ _id: 1 }], o);
      await assert.rejects(things.insertOne({ _id: 2 }), code(13));
      await assert.rejects(c.db("another").collection("c").findOne(), code(13));
      const seen = (await c.db("admin").admin().listDatabases({ nameOnly: true })).databases.map((d) => d.name);
      assert.deepEqual(seen, [own]);
    });
  }
  for (const o of ["authSource=config", "authMechanism=PLAIN"]) await as(o, (c) => assert.rejects(c.connect(), o));
  await db.command({ dropUser: name });
  await client.db("admin").command({ dropUser: name });
});

test("compressed with zlib", async () => { // the other compressors need packages of their own
  const c = new MongoClient(uri("directConnection=true&compressors=zlib"));
  const things = c.db(db.databaseName).collection("zlib");
  await things.insertMany(Array.from({ length: 100 }, (_, i) => ({ _id: i, pad: "x".repeat(5000) })));
  assert.equal((await things.find().toArray()).reduce((n, d) => n + d.pad.length, 0), 500_000);
  await c.close();
});

// What collections can be told about their documents: validators, views, collations, time series.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Binary, MongoClient } from "mongodb";
import mongoose from "mongoose";
import { account, key, mongo, unique } from "./server.mjs";

const uri = `mongodb://${encodeURIComponent(account)}:${encodeURIComponent(key)}@${mongo}/?directConnection=true`;
const client = new MongoClient(uri);
after(() => client.close());

test("validators", async () => {
  const db = client.db(unique("validators"));
  const c = await db.createCollection("people", {
    validator: { $jsonSchema: { bsonType: "object", required: ["name"], properties: { name: { bsonType: "string" } } } },
  });
  await c.insertOne({ _id: 1, name: "x" });
  await assert.rejects(c.insertOne({ _id: 2, name: 5 }), (e) =>
    e.code === 121 && e.errInfo.details.schemaRulesNotSatisfied[0].operatorName === "properties");
  await assert.rejects(c.insertMany([{ _id: 3, name: "y" }, { _id: 4 }]), (e) =>
    e.code === 121 && e.insertedCount === 1 && e.writeErrors[0].errInfo.failingDocumentId === 4);
  await assert.rejects(c.findOneAndUpdate({ _id: 1 }, { $unset: { name: 1 } }), { code: 121 });
  await c.insertOne({ _id: 4 }, { bypassDocumentValidation: true });
  await db.command({ collMod: "people", validationLevel: "moderate" });
  await c.updateOne({ _id: 4 }, { $set: { a: 1 } });
  await db.command({ collMod: "people", validationAction: "warn" });
  await c.insertOne({ _id: 5 });
  assert.equal(await c.countDocuments({ $jsonSchema: { required: ["name"] } }), 2);
});

test("views", async () => {
  const db = client.db(unique("views"));
  await db.collection("orders").insertMany([{ _id: 1, user: "a", sum: 5 }, { _id: 2, user: "b", sum: 7 }, { _id: 3, user: "a", sum: 1 }]);
  const v = await db.createCollection("sums", {
    viewOn: "orders", pipeline: [{ $group: { _id: "$user", sum: { $sum: "$sum" } } }],
  });
  assert.deepEqual(await v.find().sort({ _id: 1 }).toArray(), [{ _id: "a", sum: 6 }, { _id: "b", sum: 7 }]);
  assert.equal(await v.countDocuments({ sum: { $gt: 6 } }), 1);
  assert.deepEqual(await v.distinct("_id", { sum: 6 }), ["a"]);
  await assert.rejects(v.insertOne({}), { code: 166 });
  assert.deepEqual((await db.listCollections({ type: "view" }).toArray()).map((x) => x.name), ["sums"]);
  await v.drop();
  assert.equal(await v.countDocuments(), 0);
});

test("collations", async () => {
  const db = client.db(unique("collations"));
  const c = await db.createCollection("c", { collation: { locale: "de", strength: 1 } });
  await c.insertMany([{ _id: 1, s: "Straße" }, { _id: 2, s: "STRASSE" }, { _id: 3, s: "zähne" }]);
  assert.equal(await c.countDocuments({ s: "strasse" }), 2);
  assert.equal(await c.countDocuments({ s: "strasse" }, { collation: { locale: "simple" } }), 0);
  assert.deepEqual((await c.find().collation({ locale: "sv" }).sort({ s: -1 }).toArray()).map((d) => d._id)[0], 3);
  await c.createIndex({ s: 1 }, { collation: { locale: "en", strength: 2, caseLevel: true } });
  assert.equal((await c.indexes())[1].collation.caseLevel, true);
});

test("time series", async () => {
  const db = client.db(unique("series"));
  const c = await db.createCollection("t", { timeseries: { timeField: "at", metaField: "from" } });
  await c.insertMany([{ at: new Date(1000), from: 1, v: 1 }, { at: new Date(2000), from: 2, v: 2 }]);
  await assert.rejects(c.insertOne({ v: 1 }), { code: 2 });
  assert.equal(await c.countDocuments({ at: { $gt: new Date(1500) } }), 1);
  await c.updateMany({ from: 1 }, { $set: { from: 3 } });
  await assert.rejects(c.updateMany({ from: 3 }, { $set: { v: 3 } }), { code: 72 });
  assert.equal((await db.listCollections({ name: "t" }).toArray())[0].type, "timeseries");
});

test("mongoose: collation, unique without case, and validators of the server", async () => {
  const c = await mongoose.createConnection(uri, { dbName: unique("mongoose") }).asPromise();
  const schema = new mongoose.Schema({ mail: String, age: Number }, { collation: { locale: "en", strength: 2 }, autoCreate: true });
  schema.index({ mail: 1 }, { unique: true });
  const User = c.model("User", schema);
  await User.init();
  await User.create({ mail: "Ann@x" });
  await assert.rejects(User.create({ mail: "ANN@X" }), { code: 11000 });
  assert.equal((await User.findOne({ mail: "ann@x" })).mail, "Ann@x");
  await c.db.command({ collMod: User.collection.name, validator: { age: { $gte: 0 } } });
  await assert.rejects(User.create({ mail: "b", age: -1 }), { code: 121 });
  await c.close();
});

test("search for vectors", async () => {
  const c = client.db(unique("vectors")).collection("c");
  await c.insertMany([{ _id: 1, v: [1, 0], year: 1990 }, { _id: 2, v: Binary.fromFloat32Array(new Float32Array([0, 1])), year: 2000 },
    { _id: 3, v: [1, 1], year: 2000 }]);
  assert.equal(await c.createSearchIndex({
    name: "near", type: "vectorSearch",
    definition: { fields: [{ type: "vector", path: "v", numDimensions: 2, similarity: "cosine" }, { type: "filter", path: "year" }] },
  }), "near");
  const [index] = await c.listSearchIndexes("near").toArray();
  assert.deepEqual([index.status, index.queryable, index.latestDefinition.fields.length], ["READY", true, 2]);
  const near = (queryVector, more = {}) => c.aggregate([
    { $vectorSearch: { index: "near", path: "v", queryVector, numCandidates: 20, limit: 2, ...more } },
    { $project: { v: 0 } }, { $set: { score: { $meta: "vectorSearchScore" } } }]).toArray();
  assert.deepEqual((await near([1, 0])).map((d) => d._id), [1, 3]);
  assert.deepEqual((await near(Binary.fromFloat32Array(new Float32Array([0, 1])), { filter: { year: { $gte: 2000 } } })).map((d) => d._id), [2, 3]);
  assert.equal((await near([1, 0], { limit: 1 }))[0].score, 1);
  await assert.rejects(near([1, 0, 0]), (e) => e.code === 8 && /indexed with 2 dimensions but queried with 3/.test(e.message));
  await c.updateSearchIndex("near", { fields: [{ type: "vector", path: "v", numDimensions: 2, similarity: "euclidean" }] });
  await c.dropSearchIndex("near");
  assert.deepEqual(await c.listSearchIndexes().toArray(), []);
  assert.deepEqual(await near([1, 0]), []);
});

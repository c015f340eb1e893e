// Programs and libraries on the MongoDB API that declare unique indexes and indexes with a lifetime: each of them fails
// at its start, or loses a guarantee, where a server only pretends to have such indexes.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { buffer } from "node:stream/consumers";
import { GridFSBucket, MongoClient } from "mongodb";
import mongoose from "mongoose";
import MongoStore from "connect-mongo";
import KeyvMongo from "@keyv/mongo";
import { account, key, mongo, unique } from "./server.mjs";

const uri = `mongodb://${encodeURIComponent(account)}:${encodeURIComponent(key)}@${mongo}/?directConnection=true`;
const client = new MongoClient(uri);
after(() => client.close());

// indexes returns the indexes of a collection without the one on _id: key, and the option.
const indexes = async (db, c, option) => (await client.db(db).collection(c).indexes()).slice(1).map((i) => [i.key, i[option]]);

test("GridFS", async () => {
  const name = unique("gridfs");
  const bucket = new GridFSBucket(client.db(name), { chunkSizeBytes: 1000 });
  const content = Buffer.alloc(4500, "0123456789");
  const up = bucket.openUploadStream("file");
  await new Promise((done, fail) => up.on("finish", done).on("error", fail).end(content));
  assert.deepEqual(await buffer(bucket.openDownloadStreamByName("file")), content);
  assert.deepEqual(await indexes(name, "fs.chunks", "unique"), [[{ files_id: 1, n: 1 }, true]]);
  await assert.rejects(client.db(name).collection("fs.chunks").insertOne({ files_id: up.id, n: 2 }), { code: 11000 });
  await bucket.delete(up.id);
  assert.equal(await client.db(name).collection("fs.chunks").countDocuments(), 0);
});

test("mongoose: unique", async () => {
  const c = await mongoose.createConnection(uri, { dbName: unique("mongoose") }).asPromise();
  const User = c.model("User", new mongoose.Schema({ mail: { type: String, unique: true }, nick: { type: String, unique: true, sparse: true } }));
  await User.init();
  await User.create([{ mail: "a" }, { mail: "b" }, { mail: "c", nick: "n" }]);
  await assert.rejects(User.create({ mail: "a" }), (e) => e.code === 11000 && e.keyValue.mail === "a");
  await assert.rejects(User.updateOne({ mail: "a" }, { nick: "n" }), { code: 11000 });
  assert.deepEqual(await User.syncIndexes(), []); // the listed indexes are those of the schema
  assert.equal(await User.countDocuments(), 3);
  await c.close();
});

test("connect-mongo", async () => {
  const dbName = unique("sessions");
  const Store = MongoStore.create ? MongoStore : MongoStore.default;
  const store = Store.create({ mongoUrl: uri, dbName, ttl: 600 });
  const call = (f, ...args) => new Promise((done, fail) => store[f](...args, (e, v) => (e ? fail(e) : done(v))));
  await call("set", "one", { cookie: {}, user: 5 });
  await call("set", "one", { cookie: {}, user: 6 });
  assert.equal((await call("get", "one")).user, 6);
  assert.equal(await call("length"), 1);
  assert.deepEqual(await indexes(dbName, "sessions", "expireAfterSeconds"), [[{ expires: 1 }, 0]]);
  await call("destroy", "one");
  assert.equal(await call("get", "one"), null);
  await store.close();
});

test("@keyv/mongo", async () => {
  const db = unique("keyv");
  const store = new KeyvMongo({ url: uri, db, collection: "keyv" });
  await store.set("a", "1");
  await store.set("a", "2");
  await store.set("gone", "3", 1);
  assert.equal(await store.get("a"), "2");
  assert.deepEqual((await indexes(db, "keyv", "unique")).filter((i) => i[1]).length, 1);
  assert.deepEqual((await indexes(db, "keyv", "expireAfterSeconds")).filter((i) => i[1] === 0), [[{ expiresAt: 1 }, 0]]);
  assert.equal(await store.delete("a"), true);
  assert.equal(await store.get("a"), undefined);
  await store.disconnect();
});

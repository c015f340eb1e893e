// Programs and libraries on the MongoDB API that declare unique indexes and indexes with a lifetime: each of them fails
// at its start, or loses a guarantee, where a server only pretends to have such indexes.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { buffer } from "node:stream/consumers";
import { GridFSBucket, MongoClient } from "mongodb";
import mongoose from "mongoose";
import MongoStore from "connect-mongo";
import KeyvMongo from "@keyv/mongo";
import { Agenda } from "agenda";
import { MongoBackend } from "@agendajs/mongo-backend";
import { account, key, mongo, unique } from "./server.mjs";

const uri = `mongodb://${encodeURIComponent(account)}:${encodeURIComponent(key)}@${mongo}/?directConnection=true`;
const client = new MongoClient(uri);
after(async () => {
  await client.close();
  setTimeout(() => process.exit(), 1000).unref(); // agenda goes on with the client after its end
});

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

test("agenda", async () => {
  const db = unique("agenda");
  const agenda = new Agenda({ backend: new MongoBackend({ mongo: client.db(db), collection: "jobs" }), processEvery: 50 });
  const ran = [];
  const done = new Promise((ok) => {
    agenda.define("greet", async (job) => {
      ran.push(job.attrs.data.name);
      if (ran.length === 3) ok();
    });
  });
  await agenda.start();
  await agenda.now("greet", { name: "a" });
  await agenda.schedule(new Date(Date.now() + 100), "greet", { name: "b" });
  await agenda.create("greet", { name: "c" }).unique({ "data.name": "c" }).schedule(new Date()).save();
  await done;
  assert.deepEqual(ran.sort(), ["a", "b", "c"]);
  assert.equal((await agenda.queryJobs({ name: "greet" })).jobs.length, 3);
  assert.equal(await agenda.cancel({ name: "greet" }), 3);
  await agenda.drain();
});

test("mongoose: models, timestamps, populate", async () => {
  const c = await mongoose.createConnection(uri, { dbName: unique("mongoose") }).asPromise();
  const Author = c.model("Author", new mongoose.Schema({ name: String }, { timestamps: true }));
  const Book = c.model("Book", new mongoose.Schema({
    title: { type: String, required: true }, author: { type: mongoose.Schema.Types.ObjectId, ref: "Author" },
    parts: [{ name: String, pages: { type: Number, min: 1 } }], price: mongoose.Schema.Types.Decimal128,
  }));
  const ann = await Author.create({ name: "Ann" });
  assert.ok(ann.createdAt instanceof Date);
  const book = await Book.create({ title: "One", author: ann._id, parts: [{ name: "a", pages: 3 }], price: "1.10" });
  await assert.rejects(Book.create({ author: ann._id }), { name: "ValidationError" });
  book.parts.push({ name: "b", pages: 4 });
  await book.save();
  const got = await Book.findOne({ "parts.pages": { $gt: 3 } }).populate("author");
  assert.equal(got.author.name, "Ann");
  assert.equal(got.parts.length, 2);
  assert.equal(got.price.toString(), "1.10");
  await Author.updateOne({ _id: ann._id }, { name: "Anna" });
  const later = await Author.findById(ann._id);
  assert.ok(later.updatedAt > ann.updatedAt && +later.createdAt === +ann.createdAt);
  const stale = await Book.findById(book._id);
  await Book.updateOne({ _id: book._id }, { $pull: { parts: { name: "a" } }, $inc: { __v: 1 } });
  stale.parts.splice(0, 1);
  await assert.rejects(stale.save(), { name: "VersionError" });
  const [one] = await Book.aggregate([{ $unwind: "$parts" }, { $group: { _id: "$title", pages: { $sum: "$parts.pages" } } }]);
  assert.deepEqual(one, { _id: "One", pages: 4 });
  assert.equal((await Book.bulkWrite([{ insertOne: { document: { title: "Two" } } }, { deleteOne: { filter: { title: "One" } } }])).deletedCount, 1);
  let n = 0;
  for await (const b of Book.find().cursor()) n += b.title === "Two";
  assert.equal(n, 1);
  await c.close();
});

test("mongoose: transactions and watch", async () => {
  const c = await mongoose.createConnection(uri, { dbName: unique("mongoose") }).asPromise();
  const Account = c.model("Account", new mongoose.Schema({ _id: String, sum: Number }));
  await Account.create([{ _id: "a", sum: 10 }, { _id: "b", sum: 0 }]);
  const stream = Account.watch([{ $match: { operationType: "update" } }], { fullDocument: "updateLookup" });
  await new Promise((ok) => stream.on("ready", ok)); // the cursor is open soon after
  await new Promise((ok) => setTimeout(ok, 300));
  const seen = new Promise((ok) => stream.once("change", ok));
  const move = async (n) => c.transaction(async (session) => {
    await Account.updateOne({ _id: "a" }, { $inc: { sum: -n } }, { session });
    await Account.updateOne({ _id: "b" }, { $inc: { sum: n } }, { session });
    if (n > 10) throw new Error("too much");
  });
  await move(3);
  await assert.rejects(move(20), /too much/);
  assert.deepEqual((await Account.find().sort("_id")).map((x) => x.sum), [7, 3]);
  const event = await seen;
  assert.deepEqual([event.documentKey, event.fullDocument.sum], [{ _id: "a" }, 7]);
  await stream.close();
  await c.close();
});

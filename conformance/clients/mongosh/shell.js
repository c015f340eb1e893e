// What people type into mongosh, asserted. Run by ../run.sh with `mongosh --quiet --file shell.js URI`.
// The shell rewrites scripts so that its calls need no await; each case gets a database of its own.
const assert = require("node:assert");
let passed = 0, failed = 0, cases = 0;
const only = process.env.ORRERY_ONLY;

function test(name, fn) {
  if (only && !name.includes(only)) return;
  const d = db.getSiblingDB(`mongosh${process.pid}_${++cases}`);
  try {
    fn(d);
    passed++;
  } catch (e) {
    failed++;
    print(`FAIL mongosh ${name}: ${e.stack}`);
  } finally {
    d.dropDatabase();
  }
}

// thrown gives the error that fn throws.
function thrown(fn) {
  let e;
  try {
    fn();
  } catch (x) {
    e = x;
  }
  assert.ok(e, "no error");
  return e;
}

// plain drops the shell's own classes, so that results compare as values.
const plain = (v) => EJSON.parse(EJSON.stringify(v));
const equal = (got, want) => assert.deepStrictEqual(plain(got), plain(want));
const ids = (cursor) => cursor.toArray().map((x) => x._id);

const people = [
  { _id: 1, name: "Ann", age: 31, tags: ["a", "b"], home: { city: "Oslo" } },
  { _id: 2, name: "Ben", age: 25, tags: ["b"], home: { city: "Rome" } },
  { _id: 3, name: "Cid", age: 40, tags: [], home: { city: "Oslo" } },
  { _id: 4, name: "Dee", home: null },
];

test("show dbs, show collections, use", (d) => {
  d.first.insertOne({ a: 1 });
  d.createCollection("second");
  const mine = db.adminCommand({ listDatabases: 1 }).databases.find((x) => x.name === d.getName());
  assert.strictEqual(mine.empty, false);
  assert.ok(db.getMongo().getDBNames().includes(d.getName()));
  equal(d.getCollectionNames().sort(), ["first", "second"]);
  equal(d.getCollectionInfos({ name: "first" }).map((x) => [x.name, x.type]), [["first", "collection"]]);
  assert.ok(show("dbs").value.some((x) => x.name === d.getName()));
  use(d.getName());
  equal(show("collections").value.map((x) => x.name).sort(), ["first", "second"]);
  use("test");
});

test("insertOne and insertMany", (d) => {
  equal(d.c.insertOne({ _id: 1 }), { acknowledged: true, insertedId: 1 });
  const made = d.c.insertOne({ x: 1 }).insertedId;
  assert.ok(made instanceof ObjectId);
  equal(d.c.insertMany([{ _id: "a" }, { _id: "b" }]), { acknowledged: true, insertedIds: { 0: "a", 1: "b" } });
  assert.strictEqual(d.c.countDocuments(), 4);
  assert.strictEqual(d.c.estimatedDocumentCount(), 4);
});

test("find with operators", (d) => {
  d.c.insertMany(people);
  const found = (filter) => ids(d.c.find(filter).sort({ _id: 1 }));
  equal(found({ age: { $gt: 25, $lte: 40 } }), [1, 3]);
  equal(found({ $or: [{ name: "Ben" }, { age: { $exists: false } }] }), [2, 4]);
  equal(found({ tags: "b" }), [1, 2]);
  equal(found({ tags: { $size: 0 } }), [3]);
  equal(found({ tags: { $all: ["a", "b"] } }), [1]);
  equal(found({ "home.city": { $in: ["Oslo"] } }), [1, 3]);
  equal(found({ name: /^[ab]/i }), [1, 2]);
  equal(found({ home: null }), [4]);
  equal(found({ age: { $not: { $gt: 30 } } }), [2, 4]);
  equal(found({ $expr: { $gt: ["$age", { $multiply: [10, 3] }] } }), [1, 3]);
  equal(d.c.findOne({ name: "Ann" }, { name: 1, _id: 0 }), { name: "Ann" });
  assert.strictEqual(d.c.findOne({ name: "Zoe" }), null);
  equal(d.c.distinct("home.city").sort(), ["Oslo", "Rome"]);
});

test("sort, skip, limit and the it of cursors", (d) => {
  d.c.insertMany(people);
  equal(ids(d.c.find().sort({ age: -1 })), [3, 1, 2, 4]);
  equal(ids(d.c.find().sort({ "home.city": -1, age: 1 }).limit(2)), [2, 1]);
  equal(ids(d.c.find().sort({ _id: 1 }).skip(1).limit(2)), [2, 3]);
  d.big.insertMany(Array.from({ length: 250 }, (_, i) => ({ _id: i })));
  const cursor = d.big.find().batchSize(40);
  let n = 0;
  while (cursor.hasNext()) {
    cursor.next();
    n++;
  }
  assert.strictEqual(n, 250);
  assert.strictEqual(d.big.countDocuments(), 250);
});

test("updates", (d) => {
  d.c.insertMany(people);
  equal(d.c.updateOne({ _id: 1 }, { $set: { "home.zip": "1" }, $inc: { age: 1 }, $push: { tags: "c" } }),
    { acknowledged: true, insertedId: null, matchedCount: 1, modifiedCount: 1, upsertedCount: 0 });
  equal(d.c.findOne({ _id: 1 }), { _id: 1, name: "Ann", age: 32, tags: ["a", "b", "c"], home: { city: "Oslo", zip: "1" } });
  assert.strictEqual(d.c.updateMany({ age: { $gt: 30 } }, { $set: { old: true } }).modifiedCount, 2);
  assert.strictEqual(d.c.updateOne({ _id: 1 }, { $set: { name: "Ann" } }).modifiedCount, 0);
  equal(d.c.updateOne({ _id: 9 }, { $setOnInsert: { made: true } }, { upsert: true }).insertedId, 9);
  assert.strictEqual(d.c.replaceOne({ _id: 9 }, { only: 1 }).modifiedCount, 1);
  equal(d.c.findOneAndUpdate({ _id: 9 }, { $inc: { only: 1 } }, { returnDocument: "after" }), { _id: 9, only: 2 });
  equal(d.c.findAndModify({ query: { _id: 9 }, remove: true }), { _id: 9, only: 2 });
  d.c.updateOne({ _id: 2 }, [{ $set: { twice: { $multiply: ["$age", 2] } } }]);
  assert.strictEqual(d.c.findOne({ _id: 2 }).twice, 50);
});

test("deletes", (d) => {
  d.c.insertMany(people);
  equal(d.c.deleteOne({ name: "Ann" }), { acknowledged: true, deletedCount: 1 });
  equal(d.c.deleteOne({ name: "Ann" }), { acknowledged: true, deletedCount: 0 });
  equal(d.c.deleteMany({}), { acknowledged: true, deletedCount: 3 });
  assert.strictEqual(d.c.countDocuments({}), 0);
});

test("bulkWrite and ordered bulks", (d) => {
  const r = d.c.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 2 }, update: { $set: { a: 1 } }, upsert: true } },
    { deleteOne: { filter: { _id: 1 } } },
  ]);
  equal([r.insertedCount, r.upsertedCount, r.deletedCount], [1, 1, 1]);
  const bulk = d.c.initializeUnorderedBulkOp();
  bulk.insert({ _id: 5 });
  bulk.find({ _id: 2 }).updateOne({ $set: { a: 2 } });
  equal([bulk.execute().insertedCount, d.c.findOne({ _id: 2 }).a], [1, 2]);
});

test("indexes", (d) => {
  assert.strictEqual(d.c.createIndex({ age: 1 }), "age_1");
  equal(d.c.createIndexes([{ name: 1 }, { "home.city": -1 }]), ["name_1", "home.city_-1"]);
  equal(d.c.getIndexes().map((i) => [i.name, i.key]),
    [["_id_", { _id: 1 }], ["age_1", { age: 1 }], ["name_1", { name: 1 }], ["home.city_-1", { "home.city": -1 }]]);
  assert.strictEqual(d.c.dropIndex("age_1").ok, 1);
  equal(d.c.getIndexKeys(), [{ _id: 1 }, { name: 1 }, { "home.city": -1 }]);
  assert.strictEqual(d.c.dropIndexes().ok, 1);
  assert.strictEqual(d.c.getIndexes().length, 1);
  assert.strictEqual(thrown(() => d.c.dropIndex("nope_1")).code, 27);
});

test("aggregate", (d) => {
  d.c.insertMany(people);
  equal(d.c.aggregate([{ $match: { age: { $gt: 0 } } }, { $group: { _id: "$home.city", n: { $sum: 1 }, oldest: { $max: "$age" } } }, { $sort: { _id: 1 } }]).toArray(),
    [{ _id: "Oslo", n: 2, oldest: 40 }, { _id: "Rome", n: 1, oldest: 25 }]);
  equal(d.c.aggregate([{ $unwind: "$tags" }, { $sortByCount: "$tags" }]).toArray(), [{ _id: "b", count: 2 }, { _id: "a", count: 1 }]);
  equal(d.c.aggregate([{ $sort: { _id: 1 } }, { $limit: 1 }, { $project: { _id: 0, up: { $toUpper: "$name" } } }]).toArray(), [{ up: "ANN" }]);
  d.towns.insertOne({ _id: "Oslo", land: "NO" });
  equal(d.c.aggregate([{ $match: { _id: 1 } }, { $lookup: { from: "towns", localField: "home.city", foreignField: "_id", as: "t" } }]).toArray()[0].t,
    [{ _id: "Oslo", land: "NO" }]);
  equal(d.c.aggregate([{ $count: "n" }]).toArray(), [{ n: 4 }]);
});

test("stats, explain and validate", (d) => {
  d.c.insertMany(people);
  const s = d.c.stats();
  equal([s.ok, s.ns, s.count, s.nindexes], [1, `${d.getName()}.c`, 4, 1]);
  assert.ok(s.size > 100 && d.c.dataSize() === s.size);
  const whole = d.stats();
  equal([whole.db, whole.collections, whole.objects], [d.getName(), 1, 4]);
  const point = d.c.find({ _id: 1 }).explain();
  equal([point.ok, point.queryPlanner.namespace], [1, `${d.getName()}.c`]);
  assert.notStrictEqual(point.queryPlanner.winningPlan.stage, "COLLSCAN");
  const all = d.c.find({ age: { $exists: true } }).explain();
  assert.strictEqual(all.queryPlanner.winningPlan.stage, "COLLSCAN");
  assert.strictEqual(d.c.explain().aggregate([{ $match: { age: 25 } }]).ok, 1);
});

// untimed returns a reply without the cluster time that every reply has.
const untimed = ({ $clusterTime, operationTime, ...rest }) => rest;

test("shardCollection", (d) => {
  const ns = `${d.getName()}.people`;
  equal(untimed(d.runCommand({ shardCollection: ns, key: { region: "hashed" } })), { _t: "ShardCollectionResponse", ok: 1, collectionsharded: ns });
  equal(untimed(sh.shardCollection(`${d.getName()}.more`, { region: "hashed" })), { _t: "ShardCollectionResponse", ok: 1, collectionsharded: `${d.getName()}.more` });
  d.people.insertMany([{ _id: "a", region: "north" }, { _id: "a", region: "south" }]);
  equal(d.people.find({ region: "south" }).toArray(), [{ _id: "a", region: "south" }]);
  assert.strictEqual(d.people.deleteOne({ _id: "a", region: "north" }).deletedCount, 1);
  assert.strictEqual(thrown(() => d.people.updateOne({ _id: "a", region: "south" }, { $set: { region: "west" } })).code, 66);
});

test("shardCollection of the worked example", () => {
  equal(untimed(db.runCommand({ shardCollection: "admin.people", key: { region: "hashed" } })), { _t: "ShardCollectionResponse", ok: 1, collectionsharded: "admin.people" });
  assert.strictEqual(db.getSiblingDB("admin").people.drop(), true);
});

test("duplicate keys", (d) => {
  d.c.insertOne({ _id: 1 });
  const e = thrown(() => d.c.insertOne({ _id: 1, a: 2 }));
  equal([e.name, e.code], ["MongoServerError", 11000]);
  assert.ok(e.message.startsWith(`E11000 duplicate key error collection: ${d.getName()}.c index: _id_ dup key: { _id: 1 }`), e.message);
  const many = thrown(() => d.c.insertMany([{ _id: 2 }, { _id: 1 }, { _id: 3 }]));
  equal([many.name, many.code, many.result.insertedCount], ["MongoBulkWriteError", 11000, 1]);
  const rest = thrown(() => d.c.insertMany([{ _id: 1 }, { _id: 4 }, { _id: 5 }], { ordered: false }));
  equal([rest.writeErrors.length, rest.result.insertedCount], [1, 2]);
  equal(ids(d.c.find().sort({ _id: 1 })), [1, 2, 4, 5]);
});

test("errors say what is wrong", (d) => {
  d.c.insertOne({ _id: 1, s: "text" });
  const code = (fn) => thrown(fn).code;
  assert.strictEqual(code(() => d.c.find({ a: { $nope: 1 } }).toArray()), 2);
  assert.strictEqual(code(() => d.c.updateOne({ _id: 1 }, { $inc: { s: 1 } })), 14);
  assert.strictEqual(code(() => d.c.updateOne({ _id: 1 }, { $set: { _id: 2 } })), 66);
  assert.strictEqual(code(() => d.c.updateOne({ _id: 1 }, { $nope: { a: 1 } })), 9);
  assert.strictEqual(code(() => d.c.aggregate([{ $nope: {} }]).toArray()), 40324);
  assert.strictEqual(code(() => d.runCommand({ nope: 1 })), 59);
  assert.strictEqual(code(() => d.runCommand({ applyOps: [] })), 115);
  equal(d.c.find().toArray(), [{ _id: 1, s: "text" }]);
});

test("types come back as the shell wrote them", (d) => {
  const doc = {
    _id: ObjectId("65f000000000000000000001"), long: Long("9007199254740993"), int: Int32(7), dec: Decimal128("1.10"), date: ISODate("2024-02-29T12:00:00Z"),
    uuid: UUID("00112233-4455-6677-8899-aabbccddeeff"), bin: BinData(0, "AQID"), ts: Timestamp({ t: 5, i: 6 }), re: /a.b/i, min: MinKey(), max: MaxKey(), nil: null, dbl: 1.5,
  };
  d.c.insertOne(doc);
  assert.strictEqual(EJSON.stringify(d.c.findOne(), { relaxed: false }), EJSON.stringify(doc, { relaxed: false }));
});

test("drop and rename", (d) => {
  d.c.insertOne({ _id: 1 });
  assert.strictEqual(d.c.drop(), true);
  equal(d.getCollectionNames(), []);
  d.e.insertOne({ _id: 1 });
  equal(d.dropDatabase(), { ok: 1, dropped: d.getName() });
  assert.ok(!db.getMongo().getDBNames().includes(d.getName()));
});

test("what the shell asks of a server", (d) => {
  equal([db.version(), db.hello().isWritablePrimary, db.hello().setName], ["7.0.0", true, "globaldb"]);
  assert.strictEqual(db.adminCommand({ ping: 1 }).ok, 1);
  assert.strictEqual(db.serverStatus().ok, 1);
  assert.strictEqual(db.hostInfo().ok, 1);
  assert.strictEqual(db.serverBuildInfo().version, "7.0.0");
  assert.strictEqual(db.adminCommand({ getLog: "startupWarnings" }).totalLinesWritten, 0);
  assert.strictEqual(db.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers.length, 1);
  assert.strictEqual(rs.status().ok, 1);
  equal(db.currentOp().inprog.map((op) => [op.op, op.ns, op.command.aggregate]), [["command", "admin.$cmd.aggregate", 1]]); // itself
});

test("users and roles", (d) => {
  d.c.insertOne({ _id: 1 });
  d.createRole({ role: "clerk", privileges: [{ resource: { db: d.getName(), collection: "c" }, actions: ["find"] }], roles: [] });
  d.createUser({ user: "ann", pwd: "secret", roles: ["clerk"] });
  equal(d.getUser("ann").roles, [{ role: "clerk", db: d.getName() }]);
  assert.strictEqual(d.getUsers().users.length, 1);
  const at = new Mongo(db.getMongo().getURI().replace(/\/\/.*@/, "//ann:secret@") + "&authSource=" + d.getName());
  const theirs = at.getDB(d.getName());
  equal(theirs.c.find().toArray(), [{ _id: 1 }]);
  assert.strictEqual(thrown(() => theirs.c.insertOne({})).code, 13);
  d.grantRolesToUser("ann", ["readWrite"]);
  theirs.c.insertOne({ _id: 2 });
  d.revokeRolesFromUser("ann", ["readWrite", "clerk"]);
  assert.strictEqual(thrown(() => theirs.c.findOne()).code, 13);
  d.changeUserPassword("ann", "other");
  assert.strictEqual(d.auth("ann", "other").ok, 1);
  db.getSiblingDB("admin").auth("localhost", process.env.ORRERY_ACCOUNT_KEY);
  assert.strictEqual(d.dropUser("ann").ok, 1);
  assert.strictEqual(d.dropAllRoles().n, 1);
});

test("the profiler", (d) => {
  assert.strictEqual(d.getProfilingStatus().was, 0);
  d.setProfilingLevel(2);
  d.c.insertOne({ _id: 1 });
  d.c.find({ _id: 1 }).toArray();
  d.setProfilingLevel(0);
  equal(d.system.profile.find({ ns: `${d.getName()}.c` }, { _id: 0, op: 1 }).toArray(), [{ op: "insert" }, { op: "query" }]);
});

test("sessions", (d) => {
  d.c.insertOne({ _id: 1 });
  const s = db.getMongo().startSession();
  const c = s.getDatabase(d.getName()).c;
  c.insertOne({ _id: 2 });
  assert.strictEqual(c.countDocuments(), 2);
  s.startTransaction();
  c.insertOne({ _id: 3 });
  assert.strictEqual(c.countDocuments(), 3);
  assert.strictEqual(d.c.countDocuments(), 2); // from outside
  s.abortTransaction();
  assert.strictEqual(d.c.countDocuments(), 2);
  s.startTransaction();
  c.insertOne({ _id: 4 });
  s.commitTransaction();
  s.endSession();
  equal(ids(d.c.find().sort({ _id: 1 })), [1, 2, 4]);
});

print(`mongosh: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

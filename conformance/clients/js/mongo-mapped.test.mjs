// The MongoDB API behind a mapped port, as that of a container: clients dial one port, the server listens on another.
// A driver that discovers the replica set leaves for the address that the server announces, unless the connection string
// says directConnection=true, as all strings do that the server prints.
import assert from "node:assert/strict";
import net from "node:net";
import { after, test } from "node:test";
import { MongoClient } from "mongodb";
import { account, admin, key, mongo, unique } from "./server.mjs";

const [host, port] = mongo.split(":");
let conns = 0;
const mapped = net.createServer((c) => {
  conns++;
  const to = net.connect(+port, host);
  c.pipe(to).on("error", () => c.destroy());
  to.pipe(c).on("error", () => to.destroy());
});
await new Promise((ok) => mapped.listen(0, "127.0.0.1", ok));
after(() => mapped.close());
const there = `127.0.0.1:${mapped.address().port}`;
const login = `${encodeURIComponent(account)}:${encodeURIComponent(key)}`;

// works says whether a connection string works with the port that is mapped, and that it was used for all commands.
async function works(uri) {
  const before = conns;
  const c = new MongoClient(uri, { serverSelectionTimeoutMS: 5000, minPoolSize: 3 });
  const addresses = new Set();
  c.on("connectionReady", (e) => addresses.add(e.address));
  try {
    const things = c.db(unique("mapped")).collection("things");
    await Promise.all(Array.from({ length: 10 }, (_, i) => things.insertOne({ _id: i })));
    assert.equal(await things.countDocuments(), 10);
  } finally {
    await c.close();
  }
  assert.deepEqual([...addresses], [there], uri);
  assert.ok(conns > before);
}

test("a string that the server prints", async () => {
  const printed = (await (await fetch(`${admin}/orrery/connect`)).json()).mongo.connectionString;
  assert.match(printed, /directConnection=true/);
  await works(printed.replace(mongo, there).replace(/\/\/.*@/, `//${login}@`));
});

test("with the name of the replica set", () => works(`mongodb://${login}@${there}/?replicaSet=globaldb&directConnection=true`));

test("without directConnection the driver leaves the port", async () => {
  const c = new MongoClient(`mongodb://${login}@${there}/?replicaSet=globaldb`);
  const addresses = new Set();
  c.on("connectionReady", (e) => addresses.add(e.address));
  assert.equal((await c.db("admin").command({ ping: 1 })).ok, 1);
  await c.close();
  assert.deepEqual([...addresses], [mongo]); // which --mongo-advertise changes: TestAdvertise in conformance/mongo
});

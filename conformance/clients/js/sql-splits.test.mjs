// @azure/cosmos 4.x goes on while physical partitions are split and merged: writes, queries with continuations, and
// the change feeds of the whole container and of feed ranges, of the latest version and of all versions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";
import { admin, key, nosql, shared, unique } from "./server.mjs";

// Over a network a copy of a slot takes seconds, and everything else longer too. There are fewer copies then.
const patience = shared ? 10 : 1;
const timeout = shared ? 300_000 : 120_000;

const client = new CosmosClient({ endpoint: nosql, key });
const dbId = unique("jssplit");
let db;
before(async () => {
  db = (await client.databases.create({ id: dbId })).database;
});
after(async () => {
  await db.delete();
  client.dispose();
});

// partitions asks the admin port: GET with no change, else POST.
async function partitions(container, change) {
  const of = { database: dbId, container };
  const headers = { Authorization: `Bearer ${key}` };
  const path = `${admin}/orrery/partitions`;
  const res = change
    ? await fetch(path, { method: "POST", headers, body: JSON.stringify({ ...of, ...change }) })
    : await fetch(`${path}?${new URLSearchParams(of)}`, { headers });
  assert.equal(res.status, 200, await res.clone().text());
  return (await res.json()).partitions.map((p) => p.id);
}

const pad = "x".repeat(500);

// Work is what the clients do until stop is set.
class Work {
  made = 0;
  pending = new Set();
  stop = false;
  done = { write: 0, query: 0, pages: 0, feed: 0, ranges: 0 };
  constructor(container) {
    this.c = container;
  }
  // all is a number below which all items are acknowledged.
  all() {
    return Math.min(this.made, ...this.pending);
  }
  async write() {
    const n = this.made++;
    this.pending.add(n);
    const { resource } = await this.c.items.create({ id: `${n}`, pk: `k${n % 50}`, n, pad });
    assert.equal(resource.n, n);
    this.pending.delete(n);
  }
  async read() {
    const n = Math.floor(this.all() * 0.6);
    if (n > 0) assert.equal((await this.c.item(`${n}`, `k${n % 50}`).read()).resource.n, n);
  }
  // complete checks that numbers have each item that was there before once, and none twice.
  complete(numbers, all) {
    assert.equal(new Set(numbers).size, numbers.length, "a row comes twice");
    const seen = new Set(numbers);
    for (let n = 0; n < all; n++) assert.ok(seen.has(n), `item ${n} is missing`);
  }
  async query() {
    const all = this.all(), rows = [];
    const it = this.c.items.query("SELECT VALUE c.n FROM c", { maxItemCount: 40 });
    while (it.hasMoreResults()) rows.push(...((await it.fetchNext()).resources ?? []));
    this.complete(rows, all);

  }
  // pages reads a logical partition, with a new iterator for each page.
  async pages() {
    const all = this.all(), pk = `k${all % 50}`, rows = [];
    let continuationToken;
    do {
      const page = await this.c.items.query("SELECT VALUE c.n FROM c WHERE c.n >= 0", { partitionKey: pk, maxItemCount: 3, continuationToken }).fetchNext();
      rows.push(...page.resources);
      continuationToken = page.continuationToken;
    } while (continuationToken);
    assert.equal(new Set(rows).size, rows.length, "a row comes twice");
    const seen = new Set(rows);
    for (let n = all % 50; n < all; n += 50) assert.ok(seen.has(n), `item ${n} is missing`);

  }
}

// Tail reads a change feed from a start, with a new iterator from the continuation now and then.
class Tail {
  got = [];
  constructor(container, from, options) {
    this.c = container;
    this.from = from;
    this.options = options;
  }
  async poll(pages) {
    const from = this.token ? ChangeFeedStartFrom.Continuation(this.token) : this.from;
    const it = this.c.items.getChangeFeedIterator({ maxItemCount: 30, ...this.options, changeFeedStartFrom: from });
    let idle = 0;
    for (let i = 0; i < pages && idle < 70; i++) {
      const page = await it.readNext();
      if (page.statusCode === 304) idle++;
      else {
        idle = 0;
        this.got.push(...page.result);
      }
      this.token = page.continuationToken;
    }
  }
}

test("writes, queries and change feeds while partitions are split and merged", { timeout }, async () => {
  const id = unique("c");
  const { container: c } = await db.containers.create({ id, partitionKey: { paths: ["/pk"], version: 2 }, throughput: 400 });
  const w = new Work(c);
  for (let i = 0; i < 120; i++) await w.write();
  const whole = new Tail(c, ChangeFeedStartFrom.Beginning());
  const [range] = await c.getFeedRanges();
  const ofRange = new Tail(c, ChangeFeedStartFrom.Beginning(range));
  const loop = async (name, step) => {
    while (!w.stop) {
      await step();
      w.done[name]++;
    }
  };
  const clients = [
    loop("write", () => w.write()), loop("write", () => w.write()), loop("write", () => w.write()), loop("write", () => w.read()),
    loop("query", () => w.query()), loop("pages", () => w.pages()), loop("feed", () => whole.poll(5)), loop("ranges", () => ofRange.poll(5)),
  ];
  const failed = Promise.all(clients).catch((e) => {
    w.stop = true;
    throw e;
  });
  failed.catch(() => {});
  // round waits until every client has done something more.
  const round = async () => {
    const was = { ...w.done };
    for (let i = 0; i < 1000 * patience && !w.stop; i++) {
      if (Object.keys(was).every((k) => w.done[k] > was[k])) return;
      await new Promise((done) => setTimeout(done, 5));
    }
  };
  try {
    await round();
    // by the throughput: 40,000 RU/s need four partitions
    const { resource: offer } = await c.readOffer();
    offer.content.offerThroughput = 40000;
    await client.offer(offer.id).replace(offer);
    for (let i = 0; i < 2000 * patience && !w.stop && (await partitions(id)).length < 4; i++) await new Promise((done) => setTimeout(done, 5));
    assert.equal((await partitions(id)).length, 4);
    await round();
    // by hand, slots too: a partition of one slot is split by a copy
    const most = shared ? 4 : 32; // the other test splits by hand over a network too
    for (let want = 8; want <= most; want *= 2) {
      for (const p of await partitions(id)) await partitions(id, { partition: p, do: "split" });
      assert.equal((await partitions(id)).length, want);
      await round();
    }
    // merges need a lower throughput
    const { resource: raised } = await c.readOffer();
    raised.content.offerThroughput = 400;
    await client.offer(raised.id).replace(raised);
    for (let n = most; n > 1 && !w.stop; n /= 2) {
      const ids = await partitions(id);
      for (let i = 0; i < ids.length; i += 2) await partitions(id, { partition: ids[i], do: "merge" });
      await round();
    }
    assert.equal((await partitions(id)).length, 1);
  } finally {
    w.stop = true;
    await failed;
  }
  const { resources } = await c.items.query("SELECT VALUE c.n FROM c").fetchAll();
  assert.equal(resources.length, w.made);
  w.complete(resources, w.made);
  for (const tail of [whole, ofRange]) {
    await tail.poll(2000);
    w.complete(tail.got.map((r) => r.n), w.made); // each item was written once, so each change comes once
  }
  assert.ok(Object.values(w.done).every((n) => n > 5), JSON.stringify(w.done));
});

test("all versions while partitions are split and merged: each once, in the order of each item", { timeout }, async () => {
  const id = unique("v");
  const changeFeedPolicy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10));
  const { container: c } = await db.containers.create({ id, partitionKey: { paths: ["/pk"], version: 2 }, throughput: 25100, defaultTtl: -1, changeFeedPolicy });
  const { resource: offer } = await c.readOffer(); // merges need a lower throughput
  offer.content.offerThroughput = 400;
  await client.offer(offer.id).replace(offer);
  const tail = (scope) => new Tail(c, ChangeFeedStartFrom.Now(scope), { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes, maxItemCount: 7 });
  const whole = tail(), key = tail("k3"), ranges = (await c.getFeedRanges()).map(tail), tails = [whole, key, ...ranges];
  for (const t of tails) await t.poll(1);
  const want = {}, of = (item) => (want[item] ??= []);
  // write has writer w create, replace, patch and delete some items of its own. Each round has one that expires.
  let stop = false, rounds = 0;
  const write = async (w) => {
    const now = {};
    for (let n = 1; !stop; n++) {
      const item = `${w}-${n % 9}`, pk = `k${n % 9}`, was = now[item];
      if (was === undefined) await c.items.upsert({ id: item, pk, n });
      else if (n % 4 === 0) await c.item(item, pk).delete();
      else if (n % 4 === 1) await c.item(item, pk).patch([{ op: "set", path: "/n", value: n }]);
      else await c.item(item, pk).replace({ id: item, pk, n });
      const gone = was !== undefined && n % 4 === 0;
      of(item).push(gone ? `delete ${was}>-` : was === undefined ? `create ->${n}` : `replace ${was}>${n}`);
      now[item] = gone ? undefined : n;
    }
  };
  const expire = async () => {
    const n = rounds++;
    await c.items.create({ id: `e${n}`, pk: `k${n % 9}`, n, ttl: 1 });
    of(`e${n}`).push(`create ->${n}`, `delete ${n}>- expired`);
  };
  const read = async (t) => {
    while (!stop) await t.poll(3);
  };
  const work = Promise.all([write(0), write(1), ...tails.map(read)]).finally(() => (stop = true));
  work.catch(() => {});
  try {
    const steps = shared ? [["split", 6], ["merge", 3], ["merge", 2]]
      : [["split", 6], ["split", 12], ["merge", 6], ["merge", 3], ["merge", 2], ["split", 4]];
    for (const [step, n] of steps) {
      await expire();
      const ids = await partitions(id), by = step === "split" ? 1 : 2;
      for (let i = 0; i + by <= ids.length; i += by) await partitions(id, { partition: ids[i], do: step });
      assert.equal((await partitions(id)).length, n);
      const seen = tails.map((t) => t.got.length);
      for (let i = 0; i < 1000 * patience && !stop && tails.some((t, k) => t.got.length === seen[k]); i++) await new Promise((done) => setTimeout(done, 5));
    }
  } finally {
    stop = true;
    await work;
  }
  const total = (all) => Object.values(all).flat().length;
  const told = (r) => `${r.metadata.operationType} ${r.previous?.n ?? "-"}>${r.current.n ?? "-"}${r.metadata.timeToLiveExpired ? " expired" : ""}`;
  const got = (some) => {
    const all = {};
    for (const t of some) for (const r of t.got) (all[r.current.id ?? r.metadata.id] ??= []).push(told(r));
    return all;
  };
  const ofKey = Object.fromEntries(Object.entries(want).filter(([item]) => /-3$|^e3$/.test(item)));
  for (const [name, some, all] of [["the container", [whole], want], ["a key", [key], ofKey], ["ranges", ranges, want]]) {
    for (let i = 0; i < 200 * patience && total(got(some)) < total(all); i++) {
      for (const t of some) await t.poll(20);
      await new Promise((done) => setTimeout(done, 100)); // until what has expired is removed
    }
    assert.deepEqual(got(some), all, name);
  }
});

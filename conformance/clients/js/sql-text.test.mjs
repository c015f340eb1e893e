// @azure/cosmos 4.x: full-text and hybrid search over several physical partitions. The client merges by the plan. Each
// order is compared with one computed here from the same items.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { key, nosql, unique } from "./server.mjs";

const client = new CosmosClient({ endpoint: nosql, key });
let db, c;

// Three to eleven words; each item has another mix. No common words, and every word is its own stem.
const words = ["tree", "river", "stone", "cloud", "bird", "wolf"];
const text = (i) => Array.from({ length: 3 + (i % 9) }, (_, k) => words[(i * 7 + k * k * (1 + (i % 3))) % words.length]).join(" ");
const items = Array.from({ length: 90 }, (_, i) => ({
  id: `i${i}`,
  pk: `p${i % 11}`,
  n: i,
  text: text(i),
  title: words[i % 5],
  v: [Math.cos(i / 14), Math.sin(i / 14)],
}));

before(async () => {
  db = (await client.databases.create({ id: unique("jst") })).database;
  c = (await db.containers.create({
    id: "t",
    partitionKey: { paths: ["/pk"], version: 2 },
    fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }, { path: "/title", language: "en-US" }] },
    indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [], fullTextIndexes: [{ path: "/text" }, { path: "/title" }] },
    throughput: 25100,
  })).container;
  const done = await c.items.executeBulkOperations(items.map((x) => ({ operationType: "Create", partitionKey: x.pk, resourceBody: x })));
  assert.ok(done.every((d) => d.response?.statusCode === 201));
});
after(async () => {
  await db.delete();
  client.dispose();
});

// scores returns BM25 of each item, with the statistics of all items.
function scores(field, ...terms) {
  const texts = items.map((x) => x[field].split(" "));
  const average = texts.reduce((n, t) => n + t.length, 0) / texts.length;
  return texts.map((t) => terms.reduce((sum, term) => {
    const n = texts.filter((x) => x.includes(term)).length;
    const f = t.filter((x) => x === term).length;
    return sum + (Math.log(1 + (texts.length - n + 0.5) / (n + 0.5)) * f * 2.2) / (f + 1.2 * (0.25 + (0.75 * t.length) / average));
  }, 0));
}
const cosine = (x, y) => items.map(({ v }) => (v[0] * x + v[1] * y) / Math.hypot(x, y));
const near = (v) => v.toFixed(9);
// fused returns the results of RRF: items with the same score have the same rank.
function fused(lists, weights = lists.map(() => 1)) {
  return items.map((_, i) => lists.reduce((sum, list, k) => {
    const ranks = [...new Set(list.map(near))].map(Number).sort((a, b) => (b - a) * weights[k]);
    return sum + Math.abs(weights[k]) / (61 + ranks.indexOf(Number(near(list[i]))));
  }, 0));
}

const ways = {
  plain: {},
  planned: { forceQueryPlan: true },
  parallel: { maxItemCount: 50, maxDegreeOfParallelism: -1, bufferItems: true },
  controlled: { maxItemCount: 200, enableQueryControl: true },
  former: { forceQueryPlan: true, disableHybridSearchQueryPlanOptimization: true },
};
const all = async (q, o) => (await c.items.query(q, o).fetchAll()).resources;
// ranked checks that the rows are the best ones by values, best first, in all ways. Rows with equal values may come in
// any order.
async function ranked(query, values, most, options = ways) {
  const want = [...values].sort((a, b) => b - a).slice(0, most).map(near);
  for (const [way, o] of Object.entries(options)) {
    const got = (await all(query, o)).map((x) => x.n);
    assert.equal(new Set(got).size, most, `${way}: ${JSON.stringify(query)} gives ${got}`);
    assert.deepEqual(got.map((i) => near(values[i])), want, `${way}: ${JSON.stringify(query)}`);
  }
}

describe("full-text search", () => {
  test("filters", async () => {
    const has = (f) => items.filter((x) => f(x.text.split(" "), x)).map((x) => x.n);
    for (const [where, want] of [
      ["FullTextContains(c.text, 'Rivers')", has((t) => t.includes("river"))],
      ["FullTextContains(c.text, @p)", has((t) => t.includes("stone"))],
      ["FullTextContains(c.text, 'tree river')", has((_, x) => x.text.includes("tree river"))],
      ["FullTextContainsAll(c.text, 'tree', 'bird')", has((t) => t.includes("tree") && t.includes("bird"))],
      ["FullTextContainsAny(c.text, 'wolf', @p)", has((t) => t.includes("wolf") || t.includes("stone"))],
      ["NOT FullTextContains(c.text, 'tree')", has((t) => !t.includes("tree"))],
    ]) {
      const query = { query: "SELECT VALUE c.n FROM c WHERE " + where, parameters: [{ name: "@p", value: "stone" }] };
      for (const o of Object.values(ways)) assert.deepEqual((await all(query, o)).sort((a, b) => a - b), want, where);
    }
  });

  test("orders by a score", async () => {
    await ranked("SELECT TOP 10 c.n FROM c ORDER BY RANK FullTextScore(c.text, 'wolf', 'bird')", scores("text", "wolf", "bird"), 10);
    await ranked("SELECT c.n FROM c ORDER BY RANK FullTextScore(c.text, ['stone']) OFFSET 0 LIMIT 20", scores("text", "stone"), 20);
    const part = scores("text", "tree").map((s, i) => (i % 11 === 3 ? s : -1));
    await ranked("SELECT TOP 5 c.n FROM c WHERE c.pk = 'p3' ORDER BY RANK FullTextScore(c.text, 'tree')", part, 5);
    await ranked("SELECT TOP 5 c.n FROM c ORDER BY RANK FullTextScore(c.text, 'tree')", part, 5, { one: { partitionKey: "p3" } });
    const parameters = [{ name: "@path", value: "text" }, { name: "@a", value: "wolf" }];
    await ranked({ query: "SELECT TOP 4 c.n FROM c ORDER BY RANK FullTextScore(c[@path], @a)", parameters }, scores("text", "wolf"), 4);
  });

  test("combines scores", async () => {
    const [a, b, v] = [scores("text", "wolf", "river"), scores("title", "stone"), cosine(1, 0.4)];
    await ranked("SELECT TOP 12 c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'wolf', 'river'), FullTextScore(c.title, 'stone'))", fused([a, b]), 12);
    const hybrid = (weights) => ({
      query: `SELECT TOP 12 c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'wolf', 'river'), VectorDistance(c.v, @v)${weights})`,
      parameters: [{ name: "@v", value: [1, 0.4] }, { name: "@w", value: [1, 3] }],
    });
    await ranked(hybrid(""), fused([a, v]), 12);
    await ranked(hybrid(", [2, 0.5]"), fused([a, v], [2, 0.5]), 12);
    await ranked(hybrid(", @w"), fused([a, v], [1, 3]), 12);
    await ranked(hybrid(", [1, -1]"), fused([a, v], [1, -1]), 12);
  });

  test("refuses what the service refuses", async () => {
    for (const [query, message] of [
      ["SELECT TOP 5 FullTextScore(c.text, 'a') AS s FROM c", /is only allowed in the ORDER BY RANK clause/],
      ["SELECT TOP 5 * FROM c ORDER BY RANK FullTextScore(c.text, 'a') DESC", /is not allowed/],
      ["SELECT TOP 5 * FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'a'))", /must be followed by a VectorDistance/],
    ]) {
      await assert.rejects(all(query), (e) => e.code === 400 && message.test(e.message), query);
    }
  });
});

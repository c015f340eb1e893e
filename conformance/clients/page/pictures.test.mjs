// A picture of each view, light and dark, with the data of the demo and some programs at work. They are the ones of the
// documents: ORRERY_PICTURES=docs/explorer makes them again. Without it each view is only shown and checked.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { demo, start, openPage, goTo, palette, nosql } from './browser.mjs';

const folder = process.env.ORRERY_PICTURES && resolve(process.env.ORRERY_PICTURES);
let server, chrome, page, done;
before(async () => {
  server = await demo();
  chrome = await start();
  page = await openPage(chrome.browser, server, '', { width: 1200, height: 720, login: false });
});
after(async () => {
  await chrome?.stop();
  await server?.stop();
});

/** Runs the shell, as a program that uses the server. */
async function shell(...args) {
  const p = spawn(process.env.ORRERY_BIN, ['shell', '--endpoint', server.nosql, '--mongo-endpoint', server.mongo, '--gremlin-endpoint', server.gremlin, ...args], { stdio: 'ignore' });
  return once(p, 'exit');
}

/** What a view shows, before its picture: where it is, what must be there, and what is done first. */
const views = {
  login: [null, '.login button'],
  connect: ['#/connect', '.cards pre'],
  items: ["#/c/shop/products/items?sort=-price&where=c.price+%3E+20", '.grid .line', async () => {
    await page.click('.grid .line >> nth=1');
    await page.waitForSelector('.inspector textarea');
  }],
  four: ['#/c/TablesDB/devicelog/items', '.grid .line', async () => {
    await page.setViewportSize({ width: 1440, height: 860 });
    for (const row of [1, 0]) { // the first one has the time of the first request of each API
      await page.click('.grid .line >> nth=' + row);
      await page.waitForSelector('.inspector textarea');
      await palette(page, 'Four APIs');
      await page.waitForSelector('.views .card:nth-child(4) pre:has-text("vertex")');
    }
  }],
  query: ['#/c/shop/products/query?lang=sql&q=' + encodeURIComponent('SELECT c.category, COUNT(1) AS n, AVG(c.price) AS price\nFROM c\nGROUP BY c.category'), '.queryedit textarea', async () => {
    await page.click('button:has-text("Run")');
    await page.waitForSelector('.results .line:has-text("outdoor")');
  }],
  plan: ['#/c/shop/products/query?view=Plan&lang=sql&q=' + encodeURIComponent("SELECT c.name, c.price, c.rating.stars FROM c\nWHERE c.category = 'outdoor' AND c.price > 20\nORDER BY c.price DESC, c.rating.stars DESC"), '.queryedit textarea', async () => {
    await page.setViewportSize({ width: 1200, height: 920 });
    await page.click('button:has-text("Run")');
    await page.waitForSelector('.plan .node');
    await page.evaluate(() => (document.querySelector('.queryedit').style.height = '80px'));
  }],
  graph: ['#/c/graphs/g/graph', '.glink', async () => {
    await page.waitForTimeout(1500);
    await page.click('.glink >> nth=1');
    await page.waitForSelector('.inspector dd');
    await page.waitForTimeout(300);
  }],
  partitions: ['#/c/shop/readings/partitions', '.parts .meter'],
  feed: ['#/c/shop/orders/feed?all=1', '.feed', async () => {
    await page.waitForTimeout(700);
    const key = { 'x-ms-documentdb-partitionkey': '["zoe"]' };
    for (const [verb, id, total] of [['POST', '', 12], ['PUT', '/z1', 14], ['DELETE', '/z1']])
      await nosql(page, verb, '/dbs/shop/colls/orders/docs' + id, total && JSON.stringify({ id: 'z1', customer: 'zoe', total }), key);
    await page.waitForSelector('.change:has-text("delete")');
    await page.click('.change:has-text("replace")');
    await page.waitForSelector('.inspector textarea');
  }],
  scripts: ['#/c/shop/orders/scripts', '.programs h2', async () => {
    await page.click('.programs .glink:has-text("count")');
    await page.waitForSelector('[aria-label="Arguments, a JSON array"]');
    await page.fill('[aria-label="Partition key, a JSON array"]', '["ada"]');
    await page.fill('[aria-label="Arguments, a JSON array"]', '[]');
    await page.click('.runner button:has-text("Run")');
    await page.waitForSelector('.runout pre');
  }],
  settings: ['#/c/shop/orders/settings', '[aria-label="Indexing policy"]', () => page.setViewportSize({ width: 1200, height: 960 })],
  requests: ['#/requests', '.results', async () => {
    await page.waitForTimeout(500);
    await shell('--db', 'shop', '--container', 'products', '--eval', "SELECT c.name FROM c WHERE c.price > 100 ORDER BY c.price");
    await shell('--db', 'shop', '--container', 'products', '--eval', 'SELECT c.name FORM c');
    await shell('--lang', 'mongo', '--db', 'shop', '--eval', "db.customers.find({ points: { $gt: 100 } })");
    await shell('--lang', 'gremlin', '--eval', "g.V('SEA').out('flight').values('name')");
    await fetch(server.nosql + 'dbs/shop', { headers: { 'x-ms-date': 'never', authorization: 'type%3dmaster%26ver%3d1.0%26sig%3dAAAA' } });
    await page.waitForSelector('.results tr:has-text("401")');
    await page.click('.results tr:has-text("400") .linklike');
    await page.waitForSelector('.inspector pre');
  }],
  health: ['#/health', '.plots', async () => {
    await page.setViewportSize({ width: 1200, height: 960 });
    const until = Date.now() + (folder ? 26000 : 2500);
    const loop = async (each, f) => {
      for (let i = 0; Date.now() < until; i++) {
        await f(i);
        await page.waitForTimeout(each * (1 + Math.sin(Date.now() / 4000) / 2));
      }
    };
    const asked = { 'x-ms-documentdb-isquery': 'true', 'x-ms-documentdb-query-enablecrosspartition': 'true' };
    const work = [
      shell('--lang', 'mongo', '--db', 'shop', '--eval', `for (let i = 0; Date.now() < ${until}; i++) { db.customers.find({ points: { $gt: i % 500 } }).toArray(); sleep(40); }`),
      loop(30, (i) => nosql(page, 'POST', '/dbs/shop/colls/products/docs', JSON.stringify({ query: i % 40 ? `SELECT * FROM c WHERE c.price > ${i % 200}` : 'SELECT FROM c' }), asked)),
      loop(60, () => page.evaluate(() => fetch('api/gremlin', { method: 'POST', body: JSON.stringify({ gremlin: "g.V('SEA').both().both().path()", aliases: { g: 'graphs/g' } }), headers: { 'content-type': 'application/json', 'x-orrery-token': sessionStorage.getItem('orrery-token') } }))),
      loop(150, () => page.evaluate(() => fetch("api/table/devicelog()?$filter=PartitionKey%20eq%20'boiler'", { headers: { 'x-orrery-token': sessionStorage.getItem('orrery-token') } }))),
    ];
    await page.waitForTimeout(folder ? 24000 : 2000);
    await page.waitForFunction(() => [...document.querySelectorAll('.curve')].some((c) => /L/.test(c.getAttribute('d'))));
    done = Promise.all(work);
  }],
};

test('each view has a picture', async () => {
  if (folder) mkdirSync(folder, { recursive: true });
  for (const [name, [hash, wait, first]] of Object.entries(views)) {
    if (hash) await goTo(page, hash, wait);
    else await page.waitForSelector(wait);
    await first?.();
    await page.waitForTimeout(300);
    await page.evaluate(() => document.querySelectorAll('.note').forEach((n) => n.remove()));
    for (const scheme of folder ? ['light', 'dark'] : ['light']) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.waitForTimeout(250);
      if (folder) await page.screenshot({ path: join(folder, `${name}-${scheme}.png`) });
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1200, height: 720 });
    if (name === 'login') {
      await page.keyboard.press('Enter');
      await page.waitForSelector('.tree li li', { state: 'attached' });
      await prepare();
    }
  }
  await done;
  assert.deepEqual(page.troubles, []);
});

/** Adds a container with two partitions and one heavy key, a program, and a log of all versions. */
async function prepare() {
  const made = async (method, path, body, headers) => {
    const r = await nosql(page, method, path, JSON.stringify(body), headers);
    assert.ok(r.status < 300, r.text);
  };
  const hash = (path) => ({ paths: [path], kind: 'Hash', version: 2 });
  await made('POST', '/dbs/shop/colls', { id: 'readings', partitionKey: hash('/device') }, { 'x-ms-offer-throughput': '20000' });
  for (let d = 0; d < 12; d++) {
    const pk = 'device-' + d,
      n = d ? 40 : 90;
    await made('POST', '/dbs/shop/colls/readings/docs',
      Array.from({ length: n }, (_, i) => ({ operationType: 'Create', resourceBody: { id: `${pk}-${i}`, device: pk, celsius: 20 + (i % 9), note: 'x'.repeat(300) } })),
      { 'x-ms-cosmos-is-batch-request': 'true', 'x-ms-cosmos-batch-atomic': 'true', 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) });
  }
  const orders = JSON.parse((await nosql(page, 'GET', '/dbs/shop/colls/orders')).text);
  await made('PUT', '/dbs/shop/colls/orders', { ...orders, changeFeedPolicy: { retentionDuration: 60 } });
  const body = `// The number of orders of one customer.
function count() {
  const c = getContext().getCollection();
  c.queryDocuments(c.getSelfLink(), 'SELECT VALUE c.id FROM c', (err, ids) => {
    if (err) throw err;
    console.log(ids.join(', '));
    getContext().getResponse().setBody({ orders: ids.length });
  });
}
`;
  await made('POST', '/dbs/shop/colls/orders/sprocs', { id: 'count', body });
  await made('POST', '/dbs/shop/colls/orders/udfs', { id: 'tax', body: 'function tax(x) { return x * 0.19; }' });
  await page.reload();
  await page.waitForSelector('.tree li li', { state: 'attached' });
}

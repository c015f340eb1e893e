// The web page in a real browser: each view completes a task by mouse, and one by keyboard alone.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { demo, start, openPage, goTo, check, tabTo, palette, nosql } from './browser.mjs';

const wellKnown = 'C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==';
let server, chrome;
before(async () => {
  server = await demo();
  chrome = await start();
});
after(async () => {
  await chrome?.stop();
  await server?.stop();
});
const open = (hash, o) => openPage(chrome.browser, server, hash, o);

test('log-in: a wrong key is refused in words, the right one opens the page', async () => {
  const page = await open('', { login: false });
  await page.waitForSelector('.login');
  await check(page, 'login');
  await page.fill('#key', 'wrong');
  await page.click('.login button');
  await page.waitForSelector('.login [role=alert]:has-text("not a key")');
  await page.reload();
  await page.waitForSelector('.login button');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.tree li li');
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts must not see the cookie');
  const stored = await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }));
  assert.ok(!stored.includes('C2y6yDjf5'), 'the key must not be stored');
  await page.reload();
  await page.waitForSelector('.tree li li');
  const tab = await page.context().newPage();
  await tab.goto(server.admin);
  await tab.waitForSelector('.tree li li');
  await tab.click('[aria-label="Log out"]');
  await tab.waitForSelector('.login');
  await page.context().close();
});

test('addresses: the NoSQL port, and TLS on both ports', async () => {
  for (const base of [server.nosql, server.nosql.replace('http:', 'https:'), server.admin.replace('http:', 'https:')]) {
    const context = await chrome.browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await page.goto(base + '_explorer/index.html');
    await page.waitForSelector('.login button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.tree li li');
    await page.goto(base + '_explorer/index.html#/c/shop/products/items');
    await page.waitForSelector('.grid .line');
    await context.close();
  }
});

test('read-only: with the second key nothing can be changed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orrery-key-'));
  writeFileSync(join(folder, 'key'), 'only-reads');
  const other = await demo('--explorer-key-file', join(folder, 'key'));
  try {
    const page = await openPage(chrome.browser, other, '#/c/shop/products/items', { login: false });
    await page.fill('#key', 'only-reads');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.grid .line');
    await page.waitForSelector('.top .tag:has-text("read-only")');
    await page.locator('.grid .line').first().click();
    await page.waitForSelector('.inspector textarea');
    assert.equal(await page.locator('button:has-text("New item"), button:has-text("Save"), .grid input[type=checkbox]').count(), 0);
    await check(page, 'read-only');
    await goTo(page, '#/c/shop/products/query', '.queryedit textarea');
    await run(page, 'Gremlin', 'g.V().drop()');
    await page.waitForSelector('.results .problem:has-text("read-only")');
    await run(page, 'Mongo', 'deleteMany({})');
    await page.waitForFunction(() => /may change something/.test(document.querySelector('.results .problem')?.textContent || ''));
    await run(page, 'SQL', 'SELECT VALUE COUNT(1) FROM c');
    await page.waitForSelector('.results .line:has-text("12")');
    await page.context().close();
  } finally {
    await other.stop();
    rmSync(folder, { recursive: true });
  }
});

test('speed: first paint within 200 ms, the tree within 400 ms', async () => {
  const page = await open();
  const times = [];
  for (let i = 0; i < 5; i++) {
    await page.reload();
    await page.waitForSelector('.tree li li');
    await page.waitForFunction(() => performance.getEntriesByName('tree').length > 0);
    times.push(
      await page.evaluate(() => [
        performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
        performance.getEntriesByName('tree')[0].startTime,
      ]),
    );
  }
  const least = [0, 1].map((i) => Math.min(...times.map((t) => t[i])));
  console.log(
    `first paint ${least[0].toFixed(0)} ms, tree ${least[1].toFixed(0)} ms (best of ${times.length}: ${times.map((t) => t.map((x) => x.toFixed(0)).join('/')).join(' ')})`,
  );
  assert.ok(least[0] < 200 && least[1] < 400, String(least));
  await page.context().close();
});

test('tree: arrows move and open, Enter chooses; create and drop with the name typed', async () => {
  const page = await open();
  await check(page, 'connect');
  await tabTo(page, '.side input[type=search]');
  await page.keyboard.type('cust');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.grid .line:has-text("ada")');
  assert.match(page.url(), /#\/c\/shop\/customers\/items/);
  await page.fill('.side input[type=search]', '');

  await page.keyboard.press('Alt+n');
  await page.waitForSelector('dialog[open]');
  await check(page, 'create');
  await page.fill('[aria-label=Database]', 'shop');
  await page.fill('[aria-label=Container]', 'carts');
  await page.fill('[aria-label="Partition key"]', '/user');
  await page.keyboard.press('Enter');
  await page.waitForURL(/#\/c\/shop\/carts\/items/);
  await page.waitForSelector('.grid .nothing:has-text("No items")');

  await page.click('.panes a:has-text("Settings")');
  await page.click('button:has-text("Drop container")');
  const drop = page.locator('dialog[open] button.danger');
  assert.ok(await drop.isDisabled());
  await page.fill('dialog[open] input', 'cart');
  assert.ok(await drop.isDisabled());
  await page.fill('dialog[open] input', 'carts');
  await drop.click();
  await page.waitForSelector('.note:has-text("dropped")');
  await page.waitForFunction(
    () => ![...document.querySelectorAll('.tree .name')].some((e) => e.textContent === 'carts'),
  );
  await page.context().close();
});

test('items: filter, open, edit, save, conflict, delete', async () => {
  const page = await open('#/c/shop/products/items');
  await page.waitForSelector('.grid .line');
  await page.fill('.filter input', "c.category = 'office'");
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.grid .line').length === 4);
  await page.click('.grid .line:has-text("lamp-desk")');
  const area = page.locator('.inspector textarea');
  await area.waitFor();
  await check(page, 'items');
  assert.ok(await page.locator('.inspector button:has-text("Save")').isDisabled(), 'nothing to save yet');
  await area.fill((await area.inputValue()).replace('"price": 59', '"price": 61.0'));
  await page.keyboard.press('Control+s');
  await page.waitForSelector('.note:has-text("Saved lamp-desk")');
  const key = { 'x-ms-documentdb-partitionkey': '["office"]' };
  assert.match(
    (await nosql(page, 'GET', '/dbs/shop/colls/products/docs/lamp-desk', undefined, key)).text,
    /"price":61/,
  );

  // somebody else saves; then so do we
  const other = JSON.parse((await nosql(page, 'GET', '/dbs/shop/colls/products/docs/lamp-desk', undefined, key)).text);
  await nosql(page, 'PUT', '/dbs/shop/colls/products/docs/lamp-desk', JSON.stringify({ ...other, stock: 1 }), key);
  await area.fill((await area.inputValue()).replace('"stock": 64', '"stock": 2'));
  await page.keyboard.press('Control+s');
  await page.waitForSelector('dialog:has-text("Changed by somebody else")');
  await check(page, 'conflict');
  assert.match((await page.locator('dialog .diff .del').allTextContents()).join(), /"stock": 2/);
  assert.match((await page.locator('dialog .diff .ins').allTextContents()).join(), /"stock": 1/);
  await page.click('dialog button:has-text("Overwrite with mine")');
  await page.waitForSelector('.note:has-text("Saved lamp-desk") >> nth=0');
  await page.waitForFunction(() => !document.querySelector('dialog[open]'));
  await page.waitForSelector('.inspector .tag:has-text("saved")');
  assert.match(
    (await nosql(page, 'GET', '/dbs/shop/colls/products/docs/lamp-desk', undefined, key)).text,
    /"stock":2,/,
  );

  // a draft survives a reload
  await area.fill((await area.inputValue()).replace('"stock": 2', '"stock": 77'));
  await page.reload();
  await page.waitForSelector('.inspector textarea');
  assert.match(await area.inputValue(), /"stock": 77/);
  await page.click('.inspector button:has-text("Revert")');
  await page.keyboard.press('Escape');

  // by keyboard: select two rows, delete them
  await page.locator('.grid .line').first().focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await tabTo(page, 'button.danger', 80);
  assert.match(await page.evaluate(() => document.activeElement.textContent), /Delete 2/);
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]:has-text("2 items of products will be deleted")');
  await tabTo(page, 'dialog button.danger');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.grid .line').length === 2);
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('editor: numbers, decimals and members of one name keep their text', async () => {
  const page = await open('#/c/shop/products/items');
  await page.waitForSelector('.grid .line');
  const source =
    '{"id":"exact","category":"kitchen","big":9007199254740993,"one":1.0,"small":-0.0,"e":1e-7,"esc":"\\u00e9\\/","dec":{"$numberDecimal":"1.10"}}';
  await page.keyboard.press('n');
  const area = page.locator('.inspector textarea');
  await area.waitFor();
  await area.fill(source);
  await page.keyboard.press('Control+s');
  await page.waitForSelector('.note:has-text("Saved exact")');
  const key = { 'x-ms-documentdb-partitionkey': '["kitchen"]' },
    link = '/dbs/shop/colls/products/docs/exact';
  const stored = (await nosql(page, 'GET', link, undefined, key)).text;
  assert.match(stored, /9007199254740993/);

  // a save sends the tokens that were read, byte by byte
  let sent;
  page.on('request', (r) => { if (r.method() === 'PUT') sent = r.postData(); });
  await area.fill((await area.inputValue()) + ' ');
  await page.keyboard.press('Control+s');
  await page.waitForFunction(() => document.querySelectorAll('.note').length > 1);
  assert.equal(sent, stored);
  const cut = (s) => s.replace(/,"_(rid|self|etag|attachments|ts)":("(?:[^"\\]|\\.)*"|\d+)/g, '');
  assert.equal(cut((await nosql(page, 'GET', link, undefined, key)).text), cut(stored));
  await page.context().close();
});

test('editor: members of one name and long texts keep every token', async () => {
  const { format, compact, parse, print } = await import('../../../cmd/orrery/explorer/web/json.js');
  for (const text of ['{"a":1,"a":1.0,"b":{"a":-0.0,"a":[]}}', '[9007199254740993,1e400,{"$numberDecimal":"1.10"},"\\u0041\\/"]', '{}', '""',
    JSON.stringify(Array.from({ length: 20000 }, (_, i) => ({ n: i, 'a,:{': '}],\n', e: {}, k: [] })))]) {
    assert.equal(compact(format(text)), text);
    assert.equal(compact(format(format(text))), text);
    if (!text.includes('u0041')) assert.equal(print(parse(text)), text);
  }
  for (const bad of ['{"a":1', '{"a" 1}', '[1,]', '{,}', '01', '1.', 'nul', '{"a":"\n"}', '', '1 2', '{"a":1}}']) assert.throws(() => parse(bad), bad);
  assert.ok(format('[' + '{"a":1},'.repeat(20000) + '1]').split('\n').length < 21000, 'short objects of long texts are on one line');

  const page = await open();
  await page.evaluate(() => fetch('api/mongo/shop', { method: 'POST', headers: { 'content-type': 'application/json', 'x-orrery-token': sessionStorage.getItem('orrery-token') },
    body: JSON.stringify({ insert: 'huge', documents: [{ _id: 'huge', list: Array.from({ length: 90000 }, (_, i) => ({ n: i, t: 'some text ' + i })) }] }) }));
  await goTo(page, '#/c/shop/huge/items', '.grid .line');
  await page.locator('.grid .line').click();
  await page.waitForSelector('.inspector .tag:has-text("the beginning")');
  assert.equal(await page.locator('.inspector button:has-text("Save")').count(), 0);
  assert.ok((await page.inputValue('.inspector textarea')).length < 400000);
  await page.context().close();
});

test('grid: ten thousand items, few rows in the document, continuations kept', async () => {
  const page = await open();
  await nosql(
    page,
    'POST',
    '/dbs/shop/colls',
    JSON.stringify({ id: 'many', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }),
  );
  await page.evaluate(async () => {
    for (let b = 0; b < 100; b++) {
      const body = JSON.stringify(
        Array.from({ length: 100 }, (_, i) => ({
          operationType: 'Create',
          resourceBody: { id: 'i' + (b * 100 + i), pk: 'p', n: b * 100 + i },
        })),
      );
      await fetch('api/nosql/dbs/shop/colls/many/docs', {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json',
          'x-orrery-token': sessionStorage.getItem('orrery-token'),
          'x-ms-cosmos-is-batch-request': 'true',
          'x-ms-cosmos-batch-atomic': 'true',
          'x-ms-documentdb-partitionkey': '["p"]',
        },
      });
    }
  });
  await goTo(page, '#/c/shop/many/items', '.grid .line');
  const rows = () => page.evaluate(() => document.querySelectorAll('.grid .line').length);
  const status = () => page.textContent('.status');
  await page.locator('.grid .line').first().focus();
  for (
    let i = 0;
    i < 400 && !/Items [\d,]+ to 10,000$/.test((await status()).split(' RU')[0].replace(/[\d.]+$/, ''));
    i++
  ) {
    await page.keyboard.press('End');
    await page.waitForTimeout(15);
    assert.ok((await rows()) <= 100, 'few rows in the document');
  }
  assert.match(await status(), /to 10,000/);
  assert.match(await status(), /Items (8,\d\d1|[2-9],\d\d\d) to/, 'earlier pages are dropped');
  for (let i = 0; i < 400 && !/Items 1 to/.test(await status()); i++) {
    await page.keyboard.press('Home');
    await page.waitForTimeout(15);
  }
  assert.match(await status(), /Items 1 to/);
  await page.waitForSelector('.grid .line:has-text("i0")');
  await page.fill('[aria-label="Go to the item with this id"]', 'i7777');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.inspector h2:has-text("i7777")');
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('item: the same item through four APIs', async () => {
  const page = await open('#/c/TablesDB/devicelog/items');
  await page.waitForSelector('.grid .line');
  await page.locator('.grid .line').first().focus();
  await page.keyboard.press('Enter');
  await palette(page, 'Four APIs');
  for (const [title, text] of [
    ['NoSQL', '"$t"'],
    ['Table', '"odata.type"'],
    ['MongoDB', '"_id"'],
    ['Gremlin', '"type": "vertex"'],
    // other partitions have items with this id
    ...['NoSQL', 'Table', 'MongoDB', 'Gremlin'].map((api) => [api, '"boiler"']),
  ]) {
    await page.waitForFunction(
      ([t, x]) =>
        [...document.querySelectorAll('.views .card')].some(
          (c) => c.querySelector('h3').textContent === t && c.querySelector('pre').textContent.includes(x),
        ),
      [title, text],
    );
  }
  await page.click('.views summary >> nth=0');
  await page.waitForSelector('.views pre:has-text("curl")');
  const curl = await page.locator('.views .card:has(h3:text-is("Gremlin")) pre[aria-label=curl]').textContent(),
    env = { ...process.env, GREMLIN: server.gremlin.replace(/^ws/, 'http'), KEY: wellKnown };
  const found = execFileSync('bash', ['-c', curl], { env, encoding: 'utf8', stdio: 'pipe' });
  assert.match(found, /"type":"vertex"/);
  assert.match(found, /boiler/);
  await page.click('.views summary >> nth=2');
  assert.match(await page.textContent('.views .card:has(h3:text-is("MongoDB")) pre[aria-label=mongosh]'), /"boiler"/);
  await check(page, 'four');
  await page.context().close();
});

test('settings: the index policy and the throughput are changed', async () => {
  const page = await open('#/c/shop/orders/settings');
  const area = page.locator('[aria-label="Indexing policy"]');
  await area.waitFor();
  await area.fill(
    (await area.inputValue()).replace('"excludedPaths": [', '"excludedPaths": [\n    { "path": "/note/?" },'),
  );
  await page.fill('[aria-label="Time to live in seconds"]', '-1');
  await page.click('button:has-text("Save")');
  await page.waitForSelector('.note:has-text("Saved")');
  const def = JSON.parse((await nosql(page, 'GET', '/dbs/shop/colls/orders')).text);
  assert.equal(def.defaultTtl, -1);
  assert.ok(def.indexingPolicy.excludedPaths.some((p) => p.path === '/note/?'));
  await page.waitForSelector('[aria-label="Indexing policy"]');
  await page.fill('[aria-label="Throughput in RU/s"]', '800');
  await page.click('button:has-text("Change the throughput")');
  await page.waitForSelector('.note:has-text("800 RU/s")');
  await check(page, 'settings');
  await page.context().close();
});

/** Runs a query by keyboard. */
async function run(page, lang, text) {
  await page.click(`[aria-label=Language] button:has-text("${lang}")`);
  await page.fill('.queryedit textarea', text);
  await page.keyboard.press('Control+Enter');
}
const seen = (page, view) => page.click(`[aria-label="Results as"] button:has-text("${view}")`);

test('query: what writes runs once, whatever is asked of its result', async () => {
  const page = await open('#/c/graphs/g/query?view=Plan');
  await page.waitForSelector('.queryedit textarea');
  await run(page, 'Gremlin', "g.addV('once')");
  await page.waitForSelector('.results .problem:has-text("would run the script again, which has the step addV")');
  await run(page, 'Mongo', "insertOne({what: 'once'})");
  await seen(page, 'Table');
  await page.waitForSelector('.results .line');
  await page.click('[aria-label=Language] button:has-text("SQL")'); // an export is of what ran, in its language
  const wait = page.waitForEvent('download');
  await page.click('button:has-text("JSON"):has(svg)');
  assert.match(readFileSync(await (await wait).path(), 'utf8'), /"n":1/);
  const isQuery = {
    'x-ms-documentdb-isquery': 'true',
    'x-ms-documentdb-query-enablecrosspartition': 'true',
    'x-orrery-strict': 'none',
  };
  for (const field of ['label', 'what']) {
    const query = `SELECT VALUE COUNT(1) FROM c WHERE c.${field} = 'once'`;
    const reply = await nosql(page, 'POST', '/dbs/graphs/colls/g/docs', JSON.stringify({ query }), isQuery);
    assert.deepEqual(JSON.parse(reply.text).Documents, [1], query + reply.text);
  }
  await run(page, 'Mongo', "deleteMany({$or: [{label: 'once'}, {what: 'once'}]})");
  await page.waitForSelector('.results .line:has-text("2")');
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('query: four languages, table, JSON, plan', async () => {
  const page = await open('#/c/shop/products/query');
  await page.waitForSelector('.queryedit textarea');
  await run(page, 'SQL', 'SELECT c.id, c.price FROM c WHERE c.price > 100 ORDER BY c.price DESC');
  await page.waitForSelector('.results .line:has-text("desk-160")');
  assert.match(await page.textContent('.pane > .status'), /rows[\d.]+ RU/);
  await check(page, 'query');
  await seen(page, 'Plan');
  await page.waitForSelector('.plan .node');
  assert.match(await page.textContent('.planview'), /expected/);
  await check(page, 'plan');
  await seen(page, 'JSON');
  await page.waitForSelector('.results textarea');
  await seen(page, 'Table');
  await run(page, 'SQL', 'SELECT FROM c');
  await page.waitForSelector('.results .problem:has-text("incorrect syntax near")');
  await run(page, 'Mongo', 'find({price: {$gt: 100}}, {price: 1}).sort({price: -1}).limit(2)');
  await page.waitForFunction(() => document.querySelectorAll('.results .line').length === 2);
  await seen(page, 'Plan');
  await page.waitForSelector('.plan .node:has-text("Limit")');
  await seen(page, 'Table');
  await run(page, 'Mongo', "aggregate([{$group: {_id: '$category', n: {$sum: 1}}}])");
  await page.waitForSelector('.results .line:has-text("outdoor")');
  await run(page, 'Gremlin', "g.V().has('category', 'outdoor').values('name')");
  await page.waitForSelector('.results .line:has-text("Tent for two")');
  await goTo(page, '#/c/TablesDB/devicelog/query', '[aria-label=Language] button:has-text("OData")');
  await run(page, 'OData', "PartitionKey eq 'boiler' and Celsius gt 64");
  await page.waitForSelector('.results .line:has-text("boiler")');
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('query: completion, history, saved queries, cancel, export', async () => {
  const page = await open('#/c/shop/products/query');
  await page.waitForSelector('.queryedit textarea');
  await page.waitForTimeout(400);
  await page.fill('.queryedit textarea', '');
  await page.focus('.queryedit textarea');
  await page.keyboard.type('SELECT c.na');
  await page.waitForSelector('.suggest li:has-text("name")');
  await page.keyboard.press('Enter');
  await page.keyboard.type(' FROM c');
  assert.equal(await page.inputValue('.queryedit textarea'), 'SELECT c.name FROM c');
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.results .line');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.click('.toolbar button:has-text("Code")');
  await page.waitForSelector('.note:has-text("Copied")');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /get_container_client\("products"\)\.query_items\("SELECT c\.name FROM c"/);
  await palette(page, 'Saved queries');
  await page.fill('dialog input', 'names');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.note:has-text("Saved as names")');
  await page.fill('.queryedit textarea', 'SELECT 1');
  await palette(page, 'Saved queries');
  await page.click('dialog .linklike:has-text("names")');
  assert.equal(await page.inputValue('.queryedit textarea'), 'SELECT c.name FROM c');
  await palette(page, 'History');
  await page.waitForSelector('dialog .linklike:has-text("SELECT c.name FROM c")');
  await page.keyboard.press('Escape');

  // What never ends by itself ends at the server when it is cancelled, in each language. None of these holds more memory
  // the longer it runs: a traversal that does is refused after a second or two, which a slow browser sees before its Esc.
  for (const [api, lang, at, text] of [
    ['gremlin', 'Gremlin', 'graphs/g', 'g.inject(0).repeat(__.constant(0)).until(__.is(1))'],
    ['nosql', 'SQL', 'shop/products', `SELECT COUNT(1) FROM c ${'defghijk'.replace(/./g, 'JOIN $& IN (SELECT VALUE [0,1,2,3,4,5,6,7,8,9]) ')}WHERE d + e + c.price = 1.5`],
    ['mongo', 'Mongo', 'shop/products', `aggregate([${'{ $set: { l: { $range: [0, 1000] } } }, { $unwind: "$l" }, '.repeat(4)}{ $count: "n" }])`],
  ]) {
    const left = async () =>
      Number(new RegExp(`orrery_requests_abandoned_total\\{api="${api}"\\} (\\d+)`).exec(await (await fetch(server.admin + 'metrics')).text())[1]);
    const before = await left(),
      other = await open(`#/c/${at}/query`);
    await other.waitForSelector('.queryedit textarea');
    await run(other, lang, text);
    await other.waitForSelector('button:has-text("Cancel"):visible');
    await other.waitForTimeout(100);
    await other.keyboard.press('Escape');
    await other.waitForSelector('.pane > .status:not(:has-text("Running"))');
    assert.match(await other.textContent('.pane > .status'), /Cancelled/, `${lang}: ${await other.textContent('.results')}`);
    for (let i = 0; i < 100 && (await left()) === before; i++) await other.waitForTimeout(50);
    assert.equal(await left(), before + 1, 'the server was not told of ' + lang);
    await other.context().close();
  }

  // cells that a spreadsheet would run are defused
  await nosql(
    page,
    'POST',
    '/dbs/shop/colls/orders/docs',
    JSON.stringify({ id: 'f', customer: 'eve', note: '=HYPERLINK("x")', n: -5 }),
    { 'x-ms-documentdb-partitionkey': '["eve"]' },
  );
  await goTo(page, '#/c/shop/orders/query', '[aria-label=Language] button:has-text("SQL")');
  await run(page, 'SQL', "SELECT c.note, c.n FROM c WHERE c.customer = 'eve'");
  await page.waitForSelector('.results .line');
  const wait = page.waitForEvent('download');
  await page.click('.pane button:has-text("CSV")');
  const text = await (await import('node:fs/promises')).readFile(await (await wait).path(), 'utf8');
  assert.equal(text, 'note,n\r\n"\'=HYPERLINK(""x"")",-5\r\n');
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('graph: drawn, a vertex is opened and expanded by mouse and by the list', async () => {
  const page = await open('#/c/graphs/g/graph');
  await page.waitForSelector('.glink');
  assert.match(await page.textContent('.glist'), /15 vertices, 23 edges/);
  await page.waitForTimeout(1500);
  await page.locator('.glink').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.inspector dd:has-text("Seattle-Tacoma")');
  await check(page, 'graph');
  await page.click('.inspector button:has-text("Expand")');
  await page.waitForSelector('.note:has-text("vertices added")');
  const at = await page.evaluate(() => {
    const g = document.querySelector('.pane-graph').graph;
    return g ? true : false;
  });
  assert.ok(at);
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('graph: elements of one id in several partitions, and the ends of their edges', async () => {
  const page = await open('#/c/graphs/g/graph');
  await nosql(page, 'POST', '/dbs/graphs/colls', JSON.stringify({ id: 'twins', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }));
  await page.evaluate(async () => {
    const gremlin = `g.addV('p').property(id,'x').property('pk','a').property('name','x of a')
      .addV('p').property(id,'x').property('pk','b').property('name','x of b')
      .addV('q').property(id,'y').property('pk',1.5).iterate()
      g.V(['a','x']).addE('to').property(id,'e').to(__.V([1.5,'y'])).iterate()
      g.V(['b','x']).addE('to').property(id,'e').to(__.V([1.5,'y'])).iterate()
      g.V(['b','x']).addE('self').property(id,'s').to(__.V(['a','x'])).iterate()`;
    const headers = { 'content-type': 'application/json', 'x-orrery-token': sessionStorage.getItem('orrery-token') };
    const res = await fetch('api/gremlin', { method: 'POST', body: JSON.stringify({ gremlin, aliases: { g: 'graphs/twins' } }), headers });
    if (!res.ok) throw new Error(await res.text());
  });
  const rows = () => page.$$eval('.glink', (list) => list.map((b) => [...b.querySelectorAll('span')].map((s) => s.textContent).join(' ')));
  const shown = async (g, n) => {
    await goTo(page, '#/c/graphs/twins/graph' + (g ? '?g=' + encodeURIComponent(g) : ''), '.glist:has-text("' + n + '")');
    return (await rows()).sort();
  };
  // the whole graph, whether its edges are asked for or not
  const all = ['x of a a p', 'x of b b p', 'y q', '→ x – x self', '→ x – y to', '→ x – y to'];
  assert.deepEqual(await shown('', '3 vertices, 3 edges'), all);
  assert.deepEqual(await shown('g.V().union(__.identity(), __.outE())', '3 vertices, 3 edges'), all);
  // edges alone: what their replies tell, and the partition of the other end
  assert.deepEqual(await shown("g.E(['b','s'])", '2 vertices, 1 edges'), ['x a p', 'x b p', '→ x – x self']);
  // two vertices of one partition key and text ids
  assert.deepEqual(await shown("g.V(['a','x'],['b','x'])", '2 vertices, 1 edges'), ['x of a a p', 'x of b b p', '→ x – x self']);
  // only the one that is chosen is marked, shown and expanded
  assert.deepEqual(await shown("g.V(['b','x'])", '1 vertices'), ['x of b p']);
  await page.click('.glink');
  await page.waitForSelector('.inspector dd:has-text("x of b")');
  await page.click('.inspector button:has-text("Expand")');
  await page.waitForSelector('.note:has-text("2 vertices added")');
  assert.deepEqual((await rows()).sort(), ['x of a a p', 'x of b b p', 'y q', '→ x – x self', '→ x – y to']);
  assert.equal(await page.textContent('.glink.on'), 'x of bbp');
  // the vertex whose partition key is a number
  await shown("g.V([1.5,'y'])", '1 vertices');
  await page.click('.glink');
  await page.click('.inspector button:has-text("Expand")');
  await page.waitForSelector('.glist:has-text("3 vertices, 2 edges")');
  await page.click('.glink:has-text("x of a")');
  await page.waitForSelector('.inspector dd:has-text("x of a")');
  await page.click('.inspector button:has-text("Hide")');
  await page.waitForSelector('.glist:has-text("2 vertices, 1 edges")');
  // the results of a query as a graph
  await goTo(page, '#/c/graphs/twins/query?lang=gremlin', '.queryedit textarea');
  await run(page, 'Gremlin', 'g.V().outE().inV().path()');
  await page.waitForSelector('.results .line');
  await page.click('.pane [role=tab]:has-text("Graph")');
  await page.waitForSelector('.glist:has-text("3 vertices, 3 edges")');
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('graph: 700 vertices and 1,000 edges, 95 % of the frames within 34 ms', async () => {
  const page = await open();
  await nosql(page, 'POST', '/dbs/graphs/colls', JSON.stringify({ id: 'large', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }));
  await page.evaluate(async () => {
    const send = async (gremlin) => {
      const res = await fetch('api/gremlin', { method: 'POST', body: JSON.stringify({ gremlin, aliases: { g: 'graphs/large' } }), headers: { 'content-type': 'application/json', 'x-orrery-token': sessionStorage.getItem('orrery-token') } });
      if (!res.ok) throw new Error(await res.text());
    };
    for (let at = 0; at < 700; at += 25) await send('g' + Array.from({ length: 25 }, (_, i) => `.addV('l${(at + i) % 5}').property(id,'v${at + i}').property('pk','p')`).join(''));
    for (let at = 0; at < 1000; at += 20) await send(Array.from({ length: 20 }, (_, i) => `g.V('v${(at + i) % 700}').addE('e').to(__.V('v${((at + i) * 37 + 11) % 700}'))`).join(';'));
  });
  await goTo(page, '#/c/graphs/large/graph?g=' + encodeURIComponent('g.V().union(__.identity(), __.outE())'), '.glink');
  assert.match(await page.textContent('.glist'), /700 vertices, 1,000 edges/);
  // the best of three: others may use the processors
  let best = Infinity;
  for (let i = 0; i < 3 && best > 34; i++) {
    if (i) await page.click('.pane .toolbar button:has-text("Draw")');
    await page.waitForSelector('.glink');
    await page.waitForTimeout(4000);
    const frames = await page.evaluate(() => document.querySelector('.pane-graph').graph.frames().sort((a, b) => a - b));
    const p95 = frames[Math.floor(frames.length * 0.95)];
    console.log(`${frames.length} frames, median ${frames[frames.length >> 1].toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`);
    if (frames.length > 20) best = Math.min(best, p95);
  }
  assert.ok(best <= 34, String(best));
  await page.context().close();
});

test('partitions: bars, the heaviest keys, a split seen while it happens', async () => {
  const page = await open('#/c/shop/products/partitions');
  await page.waitForSelector('.parts .meter');
  assert.match(await page.textContent('.page'), /"kitchen"|"office"/);
  await check(page, 'partitions');
  await tabTo(page, 'button[data-key^=split]', 80);
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await tabTo(page, 'dialog button.danger');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.note:has-text("Now 2 partitions")');
  await page.waitForFunction(() => document.querySelectorAll('button[data-key^=split]').length === 2);
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('feed: changes as they come, all versions and deletes', async () => {
  const page = await open('#/c/shop/customers/feed?from=all');
  await page.waitForSelector('.change:has-text("ada")');
  const def = JSON.parse((await nosql(page, 'GET', '/dbs/shop/colls/orders')).text);
  assert.equal(
    (
      await nosql(
        page,
        'PUT',
        '/dbs/shop/colls/orders',
        JSON.stringify({ ...def, changeFeedPolicy: { retentionDuration: 60 } }),
      )
    ).status,
    200,
  );
  await goTo(page, '#/c/shop/orders/feed?all=1', '.feed .empty');
  await page.waitForTimeout(1000);
  const key = { 'x-ms-documentdb-partitionkey': '["zoe"]' };
  await nosql(page, 'POST', '/dbs/shop/colls/orders/docs', JSON.stringify({ id: 'z1', customer: 'zoe' }), key);
  await nosql(page, 'DELETE', '/dbs/shop/colls/orders/docs/z1', undefined, key);
  await page.waitForSelector('.change:has-text("delete"):has-text("z1")');
  await page.waitForSelector('.change:has-text("create"):has-text("z1")');
  await page.locator('.change').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.inspector textarea');
  assert.match(await page.inputValue('.inspector textarea'), /"operationType": "create"/);
  await check(page, 'feed');
  await page.context().close();
});

test('health: plots move', async () => {
  const page = await open('#/health');
  await page.waitForFunction(() => [...document.querySelectorAll('.curve')].some((c) => /L/.test(c.getAttribute('d'))));
  await page.waitForTimeout(2500);
  await check(page, 'health');
  assert.match(await page.textContent('.facts'), /Ready/);
  await page.context().close();
});

test('requests: what a program sends, and why it is refused', async () => {
  const page = await open('#/requests');
  await page.waitForSelector('.results .empty');
  const res = await fetch(server.nosql + 'dbs/shop', { headers: { 'x-ms-date': 'never', authorization: 'type%3dmaster%26ver%3d1.0%26sig%3dAAAA' } });
  assert.equal(res.status, 401);
  const line = page.locator('.results tr:has-text("/dbs/shop")');
  await line.waitFor();
  assert.match(await line.textContent(), /401/);
  await check(page, 'requests');
  await page.focus('.results [tabindex="0"].linklike');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.inspector pre:has-text("x-ms-date: never")');
  assert.ok(!(await page.textContent('.inspector')).includes('AAAA'), 'credentials are not shown');
  await page.keyboard.press('Escape');
  await page.fill('[aria-label="Filter the requests"]', 'nothing like this');
  await page.waitForSelector('.results .empty:has-text("No request fits")');
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('scripts: a procedure is made, run, changed and deleted', async () => {
  const page = await open('#/c/shop/products/scripts');
  await page.waitForSelector('.programs h2');
  await palette(page, 'New procedure');
  await page.waitForSelector('dialog[open] input');
  await page.keyboard.type('greet');
  await page.keyboard.press('Enter');
  const area = page.locator('[aria-label="Source of greet"]');
  await area.waitFor();
  await area.fill('function greet(name) {\n  console.log("for " + name);\n  getContext().getResponse().setBody("Hi, " + name);\n}\n');
  await page.keyboard.press('Control+s');
  await page.waitForSelector('.note:has-text("Saved greet")');
  await page.focus('[aria-label="Arguments, a JSON array"]');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.runout:has-text("Hi, world"):has-text("for world")');
  await check(page, 'scripts');
  await area.fill('function greet() { throw new Error("no <b>"); }');
  await page.keyboard.press('Control+s');
  await page.waitForFunction(() => [...document.querySelectorAll('.note')].filter((n) => /Saved greet/.test(n.textContent)).length > 0);
  await page.waitForSelector('.toolbar button:has-text("Save"):disabled');
  await page.click('.runner button:has-text("Run")');
  await page.waitForSelector('.runout .problem:has-text("no <b>")');
  await palette(page, 'New function');
  await page.keyboard.type('twice');
  await page.keyboard.press('Enter');
  await page.waitForSelector('code:has-text("udf.twice")');
  await page.click('.programs .glink:has-text("greet")');
  await page.click('.pane .toolbar [aria-label=Delete]');
  await page.click('dialog button.danger');
  await page.waitForFunction(() => ![...document.querySelectorAll('.programs .glink')].some((b) => /greet/.test(b.textContent)));
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('hostile content stays text', async () => {
  const page = await open();
  const evil = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'`${alert(3)}';
  const id = 'evil <svg onload=alert(4)>';
  assert.equal(
    (await nosql(page, 'POST', '/dbs', JSON.stringify({ id: '<b onmouseover=alert(5)>db<b>' }))).status,
    201,
  );
  const db = encodeURIComponent('<b onmouseover=alert(5)>db<b>');
  assert.equal(
    (
      await nosql(
        page,
        'POST',
        `/dbs/${db}/colls`,
        JSON.stringify({ id: '<i>c<i>', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }),
      )
    ).status,
    201,
  );
  const coll = encodeURIComponent('<i>c<i>');
  assert.equal(
    (
      await nosql(page, 'POST', `/dbs/${db}/colls/${coll}/docs`, JSON.stringify({ id, pk: evil, [evil]: evil }), {
        'x-ms-documentdb-partitionkey': JSON.stringify([evil]),
      })
    ).status,
    201,
  );
  await page.reload();
  await page.waitForSelector('.tree li li');
  await page.locator('.tree .row:has-text("onmouseover")').click();
  for (const pane of ['items', 'query', 'graph', 'partitions', 'feed', 'scripts', 'settings']) {
    await goTo(page, `#/c/${db}/${coll}/${pane}`, '.panes a.on');
    await page.waitForTimeout(300);
  }
  // a browser resolves dots in paths: a delete of the item ".." must not become one of its container
  await nosql(page, 'POST', '/dbs/shop/colls/orders/docs', JSON.stringify({ id: '..', customer: 'dots' }), { 'x-ms-documentdb-partitionkey': '["dots"]' });
  await goTo(page, `#/c/shop/orders/items?where=${encodeURIComponent("c.customer = 'dots'")}`, '.grid .line');
  await page.locator('.grid .line').first().focus();
  await page.keyboard.press('Space');
  await page.click('.toolbar button.danger');
  await page.click('dialog button.danger');
  await page.waitForSelector('.note.bad:has-text("name “..”")');
  assert.equal((await nosql(page, 'GET', '/dbs/shop/colls/orders')).status, 200);
  await goTo(page, `#/c/${db}/${coll}/items`, '.grid .line');
  await page.locator('.grid .line').first().click();
  await page.waitForSelector('.inspector textarea');
  await palette(page, 'Four APIs');
  await page.waitForTimeout(600);
  await goTo(page, `#/c/${db}/${coll}/query?q=${encodeURIComponent(evil)}`, '.queryedit textarea');
  await page.focus('.queryedit textarea');
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.results .problem');
  assert.deepEqual(page.troubles, []);
  assert.equal(
    await page.evaluate(
      () => document.querySelectorAll('#app script, #app img[src=x], #app iframe, #app b[onmouseover]').length,
    ),
    0,
  );
  await page.context().close();
});

test('narrow: 360 pixels', async () => {
  const page = await open('#/c/shop/products/items', { width: 360, height: 720 });
  await page.waitForSelector('.grid .line');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360), 'nothing is wider than the screen');
  await page.click('[aria-label=Databases] >> nth=0');
  await page.waitForTimeout(250);
  await check(page, 'narrow-tree');
  await page.click('.tree .row:has-text("customers")');
  await page.waitForSelector('.grid .line:has-text("ada")');
  await page.click('.grid .line:has-text("ada")');
  await page.waitForSelector('.inspector textarea');
  await check(page, 'narrow');
  await page.context().close();
});

test('details that a daily user would miss', async () => {
  const page = await open('#/c/TablesDB/devicelog/items');
  await page.waitForSelector('.grid .line');
  // the names of the columns stay where they are
  const top = async () => (await page.locator('.grid .head').boundingBox()).y;
  const before = await top();
  await page.locator('.grid .line').first().focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.querySelector('.grid').scrollTop > 1000);
  assert.equal(await top(), before);
  assert.ok(await page.locator('.grid .head [role=columnheader]:has-text("PartitionKey"), .grid .head [role=columnheader]:has-text("$pk")').first().isVisible());

  // a name that the query gives isn't completed to something else, and Esc cancels although a list of names was open
  await goTo(page, '#/c/shop/products/query', '.queryedit textarea');
  await page.waitForTimeout(300);
  await page.fill('.queryedit textarea', '');
  await page.focus('.queryedit textarea');
  await page.keyboard.type('SELECT * FROM c');
  await page.keyboard.press('Enter');
  await page.keyboard.type('WHERE c');
  await page.keyboard.press('Enter');
  assert.equal(await page.inputValue('.queryedit textarea'), 'SELECT * FROM c\nWHERE c\n');
  await page.keyboard.type('CO');
  await page.waitForSelector('.suggest li');
  await page.route('**/products/docs', () => {});
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.pane > .status:has-text("Running")');
  assert.equal(await page.locator('.suggest').count(), 0);
  await page.keyboard.press('Escape');
  await page.waitForSelector('.pane > .status:has-text("Cancelled")');
  await page.unroute('**/products/docs');

  // a wrong filter isn't offered again as it is
  await goTo(page, '#/c/shop/products/items?where=c.n+%3E%3D', '.pane .problem');
  assert.equal(await page.locator('button:has-text("Read on")').count(), 0);

  // typed values without their wrappers, which the tooltip has
  await goTo(page, '#/c/TablesDB/devicelog/items', '.grid .line');
  const cells = await page.locator('.grid .line').first().locator('.cell').allTextContents();
  assert.ok(cells.some((c) => /^2026-\d\d-\d\dT/.test(c)), cells.join(' | '));
  assert.ok(!cells.some((c) => /\$v/.test(c)), cells.join(' | '));
  assert.ok(await page.locator('.grid .line .cell[title*="$v"]').count());
  await goTo(page, '#/c/shop/customers/items', '.grid .line');
  await page.waitForSelector('.grid .cell:text-is("2024-03-01T00:00:00Z")');

  // a container without a log of all versions says where it is switched on
  await goTo(page, '#/c/shop/customers/feed?all=1', '.problem:has-text("Log of all versions and deletes")');
  assert.equal(await page.textContent('.pane > .status'), 'Off');

  // a view that is left doesn't keep its connections: the next one is read at once
  let held = 0;
  await page.route('**/api/nosql/dbs/shop/colls/orders/**', () => held++);
  for (const v of ['scripts', 'items', 'feed', 'query']) {
    await goTo(page, '#/c/shop/orders/' + v, '.pane-' + v);
    await page.waitForTimeout(150);
  }
  assert.ok(held > 5, 'held ' + held);
  await goTo(page, '#/c/shop/products/items', '.grid .line');
  await page.unroute('**/api/nosql/dbs/shop/colls/orders/**');

  // the tree follows what programs write; a container is dropped there, with its tab
  const made = await nosql(page, 'POST', '/dbs/shop/colls', JSON.stringify({ id: 'brief', partitionKey: { paths: ['/id'], kind: 'Hash', version: 2 } }));
  assert.equal(made.status, 201);
  await page.click('[aria-label=Refresh]');
  await page.waitForSelector('.tree [data-id="c/shop/brief"]');
  await nosql(page, 'POST', '/dbs/shop/colls/brief/docs', '{"id": "1"}', { 'x-ms-documentdb-partitionkey': '["1"]' });
  await page.waitForSelector('.tree [data-id="c/shop/brief"][aria-label^="brief, 1"]');
  await page.click('.tree [data-id="c/shop/brief"] .row');
  await page.waitForSelector('.strip .tab:has-text("brief")');
  await page.focus('.tree [data-id="c/shop/brief"]');
  await page.keyboard.press('Delete');
  await page.fill('dialog input', 'brief');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.note:has-text("brief is dropped")');
  await page.waitForSelector('.tree [data-id="c/shop/brief"]', { state: 'detached' });
  assert.equal(await page.locator('.strip .tab:has-text("brief")').count(), 0);
  await page.context().close();
});

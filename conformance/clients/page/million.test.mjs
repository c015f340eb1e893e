// A container with many items: what the grid reads, holds and shows doesn't grow with it. ORRERY_ITEMS=1000000 takes
// some minutes.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { demo, start, openPage, goTo } from './browser.mjs';

const items = Number(process.env.ORRERY_ITEMS || 100_000);
let server, chrome;
before(async () => {
  server = await demo();
  chrome = await start();
  const load = spawn(process.env.ORRERY_BIN, ['import', '-', '--endpoint', server.nosql, '--db', 'shop', '--container', 'million', '--partition-key', '/pk'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  for (let at = 0; at < items; at += 1000) {
    let lines = '';
    for (let n = at; n < at + 1000; n++) lines += `{"id":"i${String(n).padStart(7, '0')}","pk":"p${n % 1000}","n":${n},"name":"item number ${n}"}\n`;
    if (!load.stdin.write(lines)) await once(load.stdin, 'drain');
  }
  load.stdin.end();
  assert.deepEqual(await once(load, 'exit'), [0, null]);
});
after(async () => {
  await chrome?.stop();
  await server?.stop();
});

test('grid: the first page, the middle and the end of many items cost the same', async () => {
  const page = await openPage(chrome.browser, server);
  /** Replies to queries of the grid: their size and charge. */
  const replies = [];
  page.on('response', async (r) => {
    if (/colls\/million\/docs$/.test(r.url())) replies.push({ charge: Number(r.headers()['x-ms-request-charge']), bytes: (await r.body().catch(() => '')).length });
  });
  const heap = async () => {
    await page.requestGC();
    return page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
  };
  /** Shows a part of the grid; the result is what it took. */
  const jump = async (name, hash, first) => {
    replies.length = 0;
    const began = Date.now();
    await goTo(page, hash, `.grid .line:has-text("${first}")`);
    const took = Date.now() - began;
    await page.waitForTimeout(200);
    const rows = await page.evaluate(() => document.querySelectorAll('.grid .line').length);
    console.log(`${name}: ${took} ms, ${replies.map((r) => `${r.charge} RU, ${r.bytes} bytes`).join('; ')}, ${rows} rows in the document`);
    assert.ok(rows < 100 && replies.length <= 2, `${rows} rows, ${replies.length} replies`);
    for (const r of replies) assert.ok(r.bytes < 100_000, `${r.bytes} bytes`);
    return { took, charge: replies[0].charge };
  };
  const id = (n) => 'i' + String(n).padStart(7, '0'),
    view = '#/c/shop/million/items?';
  await goTo(page, '#/c/shop/products/items', '.grid .line');
  const empty = await heap();
  const parts = [
    await jump('first', view + 'sort=n', id(0)),
    await jump('middle', view + 'sort=n&where=' + encodeURIComponent(`c.n >= ${items / 2}`), id(items / 2)),
    await jump('end', view + 'sort=-n', id(items - 1)),
    await jump('unsorted', view, 'item number'),
  ];
  for (const p of parts) {
    assert.ok(p.charge < 3 * parts[0].charge, 'a page costs what is on it');
    assert.ok(p.took < 5000, `${p.took} ms`);
  }

  // the way down: pages come and go, and memory stays
  await goTo(page, view + 'sort=n', `.grid .line:has-text("${id(0)}")`);
  await page.locator('.grid .line').first().focus();
  const status = () => page.textContent('.pane > .status');
  const at = async () => Number(/to ([\d,]+)/.exec(await status())[1].replaceAll(',', ''));
  for (let i = 0; i < 600 && (await at()) < 10_000; i++) {
    await page.keyboard.press('End');
    await page.waitForTimeout(10);
  }
  assert.ok((await at()) >= 10_000, await status());
  const full = await heap();
  console.log(`heap of the page: ${empty.toFixed(1)} MB before, ${full.toFixed(1)} MB after 10,000 rows`);
  assert.ok(full - empty < 20, `${full - empty} MB`);
  assert.match(await status(), /Items (8,\d\d1|[2-9],\d\d\d|\d\d,\d\d\d) to/, 'at most 2,000 rows are kept');

  // an item by its id
  const began = Date.now();
  await page.fill('[aria-label="Go to the item with this id"]', id(items - 7));
  await page.keyboard.press('Enter');
  await page.waitForSelector(`.inspector h2:has-text("${id(items - 7)}")`);
  console.log(`an item by its id: ${Date.now() - began} ms`);
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

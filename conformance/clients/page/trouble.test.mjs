// The page when something goes wrong: a server that goes away and comes back, requests that are throttled, slow pages.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { demo, start, openPage, goTo, check } from './browser.mjs';

let server, chrome;
before(async () => {
  server = await demo('--test-controls');
  chrome = await start();
});
after(async () => {
  await chrome?.stop();
  await server?.stop();
});
const open = (hash, o) => openPage(chrome.browser, server, hash, o);

/** Holds requests of the page back, or answers them, until the result is called. f gets a route of Playwright. */
async function intercept(page, path, f) {
  await page.route(path, f);
  return () => page.unroute(path);
}
const key = 'C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==';
/** Lets requests fail at the server. */
const fail = async (rule) => {
  const r = await fetch(server.admin + 'orrery/test/faults', {
    method: 'POST',
    headers: { authorization: 'Bearer ' + key },
    body: JSON.stringify(rule),
  });
  assert.equal(r.status, 200, await r.text());
};

test('cancel: a later page of rows ends, the rows before it stay, and the cursor is closed', async () => {
  const page = await open('#/c/TablesDB/devicelog/query');
  for (const [lang, text, path, isNext] of [
    ['SQL', 'SELECT * FROM c', '**/devicelog/docs', (r) => r.headers()['x-ms-continuation']],
    ['Mongo', 'find({})', '**/api/mongo/TablesDB', (r) => /getMore/.test(r.postData())],
  ]) {
    const killed = lang === 'Mongo' && page.waitForRequest((r) => /killCursors/.test(r.postData() || ''));
    const free = await intercept(page, path, (r) => (isNext(r.request()) ? undefined : r.continue()));
    await page.click(`[aria-label=Language] button:has-text("${lang}")`);
    await page.fill('.queryedit textarea', text);
    await page.keyboard.press('Control+Enter');
    await page.waitForSelector('.results .line');
    await page.waitForSelector('button:has-text("Cancel")', { state: 'hidden' });
    await page.locator('.results .line').first().focus();
    await page.keyboard.press('End');
    await page.waitForSelector('.pane > .status:has-text("Reading more")');
    await page.click('button:has-text("Cancel"):visible');
    await page.waitForSelector('.pane > .status:has-text("Cancelled")');
    assert.match(await page.textContent('.pane > .status'), /Cancelled100\+ rows/, lang);
    assert.ok((await page.locator('.results .line').count()) > 5, lang);
    if (killed) await killed;
    await page.click('[aria-label="Results as"] button:has-text("Plan")');
    await page.waitForSelector('.results .planview, .results .facts');
    await page.click('[aria-label="Results as"] button:has-text("Table")');
    await page.waitForSelector('.results .line');
    await free();
  }
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test('cursors: another query, and leaving the view, close the one that was not read to its end', async () => {
  const page = await open('#/c/TablesDB/devicelog/query');
  const killed = () => page.waitForRequest((r) => /killCursors/.test(r.postData() || ''));
  await page.click('[aria-label=Language] button:has-text("Mongo")');
  const run = async () => {
    await page.fill('.queryedit textarea', 'find({})');
    await page.keyboard.press('Control+Enter');
    await page.waitForSelector('.pane > .status:has-text("100+")');
  };
  await run();
  let wait = killed();
  await page.keyboard.press('Control+Enter');
  await wait;
  await page.waitForSelector('.pane > .status:has-text("100+")');
  wait = killed();
  await goTo(page, '#/c/TablesDB/devicelog/items', '.grid .line');
  await wait;
  await page.context().close();
});

test('a traversal that needs too much memory says what helps', async () => {
  const page = await open('#/c/graphs/g/query');
  await page.click('[aria-label=Language] button:has-text("Gremlin")');
  await page.fill('.queryedit textarea', 'g.V().repeat(__.both()).times(40).path().count()');
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.results .problem:has-text("by a filter or a limit")', { timeout: 60000 });
  assert.match(await page.textContent('.pane > .status'), /Failed/);
  await page.context().close();
});

test('a page of items that fails says so, and is read when asked again', async () => {
  const page = await open('#/c/TablesDB/devicelog/items');
  await page.waitForSelector('.grid .line');
  const free = await intercept(page, '**/devicelog/docs', (r) =>
    r.fulfill({ status: 503, contentType: 'application/json', body: '{"code":"ServiceUnavailable","message":"Busy."}' }),
  );
  page.troubles.length = 0;
  await page.locator('.grid .line').first().focus();
  await page.keyboard.press('End');
  await page.waitForSelector('.problem:has-text("Busy.")');
  assert.match(await page.textContent('.pane > .status'), /1 to 100 of 144/, 'it must not look like the end');
  await free();
  await page.click('button:has-text("Read on")');
  await page.waitForSelector('.pane > .status:has-text("1 to 144")');
  assert.equal(await page.locator('.problem').count(), 0);
  await page.context().close();
});

test('throttled requests are sent again after the time that the server names', async () => {
  const page = await open('#/c/shop/products/query');
  await page.waitForSelector('.queryedit textarea');
  for (const [api, lang, text] of [
    ['nosql', 'SQL', 'SELECT c.id FROM c'],
    ['mongo', 'Mongo', 'find({}).sort({price: 1})'],
    ['gremlin', 'Gremlin', 'g.V().count()'],
  ]) {
    await fail({ fault: '429', api, database: 'shop', container: 'products', count: 3, retryAfterMs: 20 });
    await page.click(`[aria-label=Language] button:has-text("${lang}")`);
    await page.fill('.queryedit textarea', text);
    await page.keyboard.press('Control+Enter');
    await page.waitForSelector('.pane > .status:has-text("RU")');
    assert.equal(await page.locator('.results .problem').count(), 0, lang + ': ' + (await page.textContent('.results')));
  }
  // what stays throttled is said in words, and a wait can be cancelled
  await page.click('[aria-label=Language] button:has-text("SQL")');
  await fail({ fault: '429', api: 'nosql', container: 'products', count: 10, retryAfterMs: 5 });
  await page.focus('.queryedit textarea');
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.results .problem:has-text("raise the throughput")');
  await fail({ fault: '429', api: 'nosql', container: 'products', count: 1, retryAfterMs: 60000 });
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.pane > .status:has-text("Running")');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.pane > .status:has-text("Cancelled")');
  await page.context().close();
});

test('the server stops while the page is open, and comes back', async () => {
  let other = await demo();
  const address = new URL(other.admin).host;
  try {
    const page = await openPage(chrome.browser, other, '#/c/shop/products/items', { away: true });
    await page.waitForSelector('.grid .line');
    await page.locator('.grid .line').first().click();
    await page.waitForSelector('.inspector textarea');
    await page.locator('.inspector textarea').fill('{"id": "my work"}');
    await other.stop();
    await page.click('button:has-text("Apply")');
    await page.waitForSelector('.top [role=status]:has-text("can’t be reached")');
    await page.waitForSelector('.pane .problem:has-text("Is the server running?")');
    await check(page, 'without a server');
    other = await demo('--admin-addr', address);
    // its sessions are gone: the key is asked for, and what was typed is still there
    await page.waitForSelector('.login [role=alert]:has-text("started again")');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.grid .line');
    assert.equal(await page.textContent('.top [role=status]'), '');
    await page.waitForSelector('.inspector textarea');
    assert.equal(await page.inputValue('.inspector textarea'), '{"id": "my work"}');
    await page.context().close();
  } finally {
    await other.stop();
  }
});

test('a server without log-in comes back: the views go on by themselves', async () => {
  let other = await demo('--auth=false');
  const address = new URL(other.admin).host;
  try {
    const page = await openPage(chrome.browser, other, '#/c/shop/products/items', { login: false });
    await page.waitForSelector('.grid .line');
    await other.stop();
    await page.click('button:has-text("Apply")');
    await page.waitForSelector('.pane .problem');
    other = await demo('--auth=false', '--admin-addr', address);
    await page.waitForSelector('.grid .line');
    assert.equal(await page.locator('.problem').count(), 0);
    await page.waitForSelector('.tree [aria-label], .tree li li');
    await page.context().close();
  } finally {
    await other.stop();
  }
});

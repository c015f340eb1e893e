// Each view completes a task by keyboard alone: nothing here clicks, or sets a focus or a value by script.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { demo, start, openPage, tabTo, palette, nosql } from './browser.mjs';

let server, chrome, page;
before(async () => {
  server = await demo();
  chrome = await start();
  page = await openPage(chrome.browser, server);
});
after(async () => {
  await chrome?.stop();
  await server?.stop();
});

const press = (...names) => names.reduce((p, n) => p.then(() => page.keyboard.press(n)), Promise.resolve());
const type = (text) => page.keyboard.type(text);
const see = (selector) => page.waitForSelector(selector);
/** Opens a view: the container by the palette, then the view by its number. */
async function view(container, number, selector) {
  await palette(page, container);
  await see(`.tab.on:has-text("${container.split(' / ')[1]}")`);
  await see('.grid');
  if (number > 1) await press('Alt+' + number);
  await see(selector);
}
/** Replaces the text of what has the focus. */
const replace = async (text) => {
  await press('Control+a');
  await type(text);
};

test('items: filter, sort, open, edit, save, delete', async () => {
  await view('shop / products', 1, '.grid .line');
  await press('/');
  await type("c.category = 'outdoor'");
  await press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.grid .line').length === 4);
  await palette(page, 'Sort by price');
  await see('.grid [aria-sort=ascending]:has-text("price")');
  const prices = () => page.locator('.grid .line').evaluateAll((l) => l.map((x) => Number(x.children[4].textContent)));
  const up = await prices();
  assert.deepEqual(up, [...up].sort((a, b) => a - b));
  await palette(page, 'Sort by price');
  await see('.grid [aria-sort=descending]:has-text("price")');
  assert.deepEqual(await prices(), up.reverse());
  await tabTo(page, '.grid .line', 80);
  await press('ArrowDown', 'Enter');
  await see('.inspector textarea');
  await tabTo(page, '.inspector textarea');
  await press('Control+End', 'ArrowLeft', 'ArrowLeft');
  await type(',"seen":true');
  await press('Control+s');
  await see('.note:has-text("Saved")');
  await press('Escape');
  await page.waitForFunction(() => document.activeElement?.matches('.grid .line'));
  await press('Space');
  await tabTo(page, 'button.danger', 80);
  await press('Enter');
  await see('dialog[open]:has-text("1 item of products")');
  await tabTo(page, 'dialog button.danger');
  await press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.grid .line').length === 3);
});

test('one item, four APIs: the item is shown four times, with its requests', async () => {
  await view('TablesDB / devicelog', 1, '.grid .line');
  await press('/', 'ArrowDown', 'Enter');
  await see('.inspector textarea');
  await palette(page, 'Four APIs');
  await see('.views .card:nth-child(4) pre:has-text("vertex")');
  await tabTo(page, '.views summary');
  await press('Enter');
  await see('.views details[open] pre:has-text("curl")');
  await press('Escape');
});

test('query: each language, by the palette', async () => {
  await view('shop / products', 2, '.queryedit textarea');
  for (const [lang, text, found] of [
    ['SQL', "SELECT VALUE COUNT(1) FROM c WHERE c.category = 'office'", '4'],
    ['Mongo', "countDocuments({ category: 'kitchen' })", '4'],
    ['Gremlin', "g.V().has('category', 'kitchen').values('name').limit(1)", 'kettle'],
  ]) {
    await palette(page, lang);
    await tabTo(page, '.queryedit textarea', 80);
    await replace(text);
    await press('Escape', 'Control+Enter');
    await page.waitForFunction((f) => [...document.querySelectorAll('.results .line')].some((l) => l.textContent.toLowerCase().includes(f)), found);
  }
  await palette(page, 'SQL');
  await tabTo(page, '.queryedit textarea', 80);
  await replace('SELECT c.id FROM c WHERE c.price > 10');
  await press('Control+Enter');
  await see('.results .line');
  await tabTo(page, '[role=tab]', 80, 'Plan');
  await press('Enter');
  await see('.plan .node');
});

test('graph: a vertex is found in the list, opened and expanded', async () => {
  await view('graphs / g', 3, '.glink');
  await tabTo(page, '.gside input', 80);
  await type('Narita');
  await tabTo(page, '.glink');
  await press('Enter');
  await see('.inspector dd:has-text("Narita")');
  await tabTo(page, '.inspector button', 80, 'Expand');
  await press('Enter');
  await see('.note:has-text("vertices added")');
  await press('Escape');
});

test('partitions: a partition is split', async () => {
  await view('shop / orders', 4, '.parts .meter');
  await tabTo(page, 'button[data-key^=split]', 80);
  await press('Enter');
  await see('dialog[open]');
  await tabTo(page, 'dialog button.danger');
  await press('Enter');
  await see('.note:has-text("Now 2 partitions")');
});

test('feed: from the beginning, a change is opened', async () => {
  await view('shop / customers', 5, '.feed');
  await tabTo(page, 'button', 80, 'From the beginning');
  await press('Enter');
  await see('.change:has-text("ada")');
  await tabTo(page, '.change');
  await press('Enter');
  await see('.inspector textarea');
  await press('Escape', 'p');
  await see('.toolbar button:has-text("Go on")');
});

test('scripts: a function is made, changed and saved', async () => {
  await view('shop / orders', 6, '.programs h2');
  await palette(page, 'New function');
  await see('dialog[open] input');
  await type('twice');
  await press('Enter');
  await see('[aria-label="Source of twice"]');
  await tabTo(page, '[aria-label="Source of twice"]', 80);
  await replace('function twice(x) { return 2 * x; }');
  await press('Control+s');
  await see('.note:has-text("Saved twice")');
  const made = JSON.parse((await nosql(page, 'GET', '/dbs/shop/colls/orders/udfs/twice')).text);
  assert.equal(made.body, 'function twice(x) { return 2 * x; }');
});

test('settings: the time to live is changed, the container is dropped', async () => {
  await view('shop / orders', 7, '[aria-label="Indexing policy"]');
  await tabTo(page, '[aria-label="Time to live in seconds"]', 80);
  await replace('3600');
  await tabTo(page, '.page button', 80, 'Save');
  await press('Enter');
  await see('.note:has-text("Saved.")');
  assert.equal(JSON.parse((await nosql(page, 'GET', '/dbs/shop/colls/orders')).text).defaultTtl, 3600);
  await tabTo(page, 'button', 80, 'Drop container');
  await press('Enter');
  await see('dialog[open] input');
  await type('orders');
  await press('Enter');
  await see('.note:has-text("dropped")');
});

test('connect: a program is chosen and copied', async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await palette(page, 'Connect');
  await tabTo(page, '.seg button', 80, 'Gremlin, Python');
  await press('Enter');
  await tabTo(page, 'button', 80, 'Copy the program');
  await press('Enter');
  await see('.note:has-text("Copied")');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /gremlin_python/);
});

test('health: the plots are reached', async () => {
  await palette(page, 'Health');
  await page.waitForFunction(() => [...document.querySelectorAll('.curve')].some((c) => /L/.test(c.getAttribute('d'))));
  await press('F6');
});

test('requests: a refused request is found and opened', async () => {
  await palette(page, 'Requests');
  await see('.results .empty');
  assert.equal((await fetch(server.nosql + 'dbs/shop')).status, 401);
  await see('.results tr:has-text("/dbs/shop")');
  await press('/');
  await type('401');
  await tabTo(page, '.results .linklike', 80);
  await press('Enter');
  await see('.inspector pre');
  await press('Escape');
});

test('frame: shortcuts, theme, log, tree', async () => {
  await tabTo(page, '.logline', 200); // where a text is entered, ? is a letter
  await press('?');
  await see('dialog[open]:has-text("Ctrl+K")');
  await press('Escape');
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const old = await theme();
  await palette(page, 'Light or dark');
  assert.notEqual(await theme(), old);
  await press('Alt+l');
  await see('.logbody .linklike');
  await tabTo(page, '.logbody .linklike', 80);
  await press('Enter');
  await see('dialog[open] :text("curl")');
  await press('Escape');
  for (let i = 0; i < 9 && !(await page.evaluate(() => !!document.activeElement.closest('.side'))); i++) await press('F6');
  await tabTo(page, '.tree li', 80);
  await press('Home', 'End', 'Enter');
  await see('.grid');
  assert.deepEqual(page.troubles, []);
});

test('frame: the palette opens as fast as one can type', async () => {
  for (let i = 0; i < 10; i++) {
    await press('Control+k');
    await see('dialog.palette[open]');
    await Promise.all([press(i % 2 ? 'Escape' : 'Enter'), press('Control+k')]); // it closes, and opens again
    await see('dialog.palette[open]');
    await press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog[open]'));
  }
});

test('frame: the focus stays in the log when requests come', async () => {
  await view('shop / products', 1, '.grid .line');
  if (!(await page.locator('.logbody').isVisible())) await press('Alt+l');
  await tabTo(page, '.logbody .linklike', 200);
  const lines = () => page.locator('.logbody .linklike').count();
  const before = await lines();
  await press('Alt+2');
  await see('.queryedit textarea');
  await press('Alt+1'); // reads the items again
  await see('.grid .line');
  await page.waitForFunction((n) => document.querySelectorAll('.logbody .linklike').length > n, before);
  assert.equal(await page.evaluate(() => document.activeElement.matches('.logbody .linklike')), true);
  await press('Alt+l');
});

// The page on a phone and in narrow windows: nothing is wider than the window, and every control can be seen and reached,
// with the mouse and with the keyboard.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { demo, start, openPage, goTo, palette, tabTo, check } from './browser.mjs';

/** A folder for a picture of each view, to look at them. */
const folder = process.env.ORRERY_NARROW;
let server, chrome, page;
before(async () => {
  server = await demo();
  chrome = await start();
  page = await openPage(chrome.browser, server, '', { width: 360, height: 720 });
});
after(async () => {
  await chrome?.stop();
  await server?.stop();
});

/** Parts of the page that reach beyond the window, and controls that can't be used where they are. */
const unreachable = () => {
  const name = (el) => `${el.tagName.toLowerCase()}.${el.className} ${el.getAttribute('aria-label') || el.textContent.slice(0, 40)}`,
    bad = [],
    wide = innerWidth;
  for (const el of [document.documentElement, document.body, ...document.querySelectorAll('#app, .top, .body, .main, .split, .log, dialog, .inspector:not([hidden])')])
    if (el.scrollWidth > el.clientWidth + 1 && !/auto|scroll/.test(getComputedStyle(el).overflowX) && el.clientWidth) bad.push(`wider than its place (${el.scrollWidth} > ${el.clientWidth}): ${name(el)}`);
  const top = document.querySelector('dialog[open]') || (document.body.classList.contains('side-open') && document.querySelector('.side')) || document.querySelector('.inspector:not([hidden])') || document;
  const covers = top !== document && getComputedStyle(top).position === 'fixed';
  for (const el of (covers ? top : document).querySelectorAll('button, a[href], input, select, textarea, summary, [tabindex="0"]')) {
    if (el.disabled || !el.checkVisibility({ visibilityProperty: true }) || el.matches('.skip')) continue;
    el.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const r = el.getBoundingClientRect();
    if (!r.width || !r.height) continue;
    const left = Math.max(r.left, 0),
      right = Math.min(r.right, wide),
      up = Math.max(r.top, 0),
      down = Math.min(r.bottom, innerHeight);
    if (right - left < Math.min(r.width, 24) || down - up < Math.min(r.height, 16)) {
      bad.push(`beyond the window (${Math.round(r.left)} to ${Math.round(r.right)}, ${Math.round(r.top)} to ${Math.round(r.bottom)}): ${name(el)}`);
      continue;
    }
    // the middle, or another place of it
    const hit = [0.5, 0.15, 0.85].some((f) => {
      const at = document.elementFromPoint(left + (right - left) * f, up + (down - up) / 2);
      return at && (el.contains(at) || at.contains(el) || at.closest('label')?.contains(el));
    });
    if (!hit) bad.push(`covered by ${name(document.elementFromPoint((left + right) / 2, (up + down) / 2) || document.body)}: ${name(el)}`);
  }
  return bad;
};

/** What a view shows: where it is, what must be there, and what is done first. */
const views = {
  connect: ['#/connect', '.cards pre'],
  health: ['#/health', '.plots'],
  requests: ['#/requests', '.results'],
  items: ['#/c/shop/products/items?where=c.price+%3E+20', '.grid .line'],
  item: ['#/c/shop/products/items', '.grid .line', async () => {
    await page.click('.grid .line >> nth=1');
    await page.waitForSelector('.inspector textarea');
  }],
  four: ['#/c/shop/products/items?sort=price', '.grid .line', async () => {
    await page.click('.grid .line >> nth=0');
    await page.waitForSelector('.inspector textarea');
    await palette(page, 'Four APIs');
    await page.waitForSelector('.views .card:nth-child(4) pre');
  }],
  query: ['#/c/shop/products/query?lang=sql&q=' + encodeURIComponent('SELECT c.id, c.category, c.price FROM c WHERE c.price > 5 ORDER BY c.price'), '.queryedit textarea', async () => {
    await page.click('button:has-text("Run")');
    await page.waitForSelector('.results .line');
  }],
  plan: ['#/c/shop/products/query?view=Plan&lang=sql&q=' + encodeURIComponent('SELECT c.id, c.price FROM c WHERE c.price > 50 ORDER BY c.price DESC'), '.queryedit textarea', async () => {
    await page.click('button:has-text("Run")');
    await page.waitForSelector('.plan .node');
  }],
  graph: ['#/c/graphs/g/graph', '.glink', async () => {
    await page.waitForTimeout(400);
  }],
  vertex: ['#/c/graphs/g/graph?x=1', '.glink', async () => {
    await page.click('.glink >> nth=1');
    await page.waitForSelector('.inspector dd');
  }],
  partitions: ['#/c/shop/orders/partitions', '.parts .meter'],
  feed: ['#/c/shop/orders/feed', '.feed'],
  scripts: ['#/c/shop/orders/scripts', '.programs h2'],
  settings: ['#/c/shop/orders/settings', '[aria-label="Indexing policy"]'],
  create: ['#/c/shop/orders/items', '.grid .line', async () => {
    await palette(page, 'New container');
    await page.waitForSelector('dialog[open] form, dialog[open] input');
  }, () => page.keyboard.press('Escape')],
  palette: ['#/c/shop/orders/items', '.grid .line', async () => {
    await page.keyboard.press('Control+k');
    await page.waitForSelector('dialog.palette[open] li');
  }, () => page.keyboard.press('Escape')],
  log: ['#/c/shop/orders/items', '.grid .line', async () => {
    await page.click('.logline');
    await page.waitForSelector('.logbody td');
  }, () => page.click('.logline')],
  tree: ['#/c/shop/orders/items', '.grid .line', async () => {
    if (await page.isVisible('.narrow')) await page.click('.narrow');
    await page.waitForTimeout(200);
  }, () => page.keyboard.press('Escape')],
};

// still waits until what slides in is where it stays.
const still = () => Promise.allSettled(
  document.getAnimations().filter((a) => a instanceof CSSTransition).map((a) => a.finished));

test('nothing is cut off, every control is there', async () => {
  if (folder) mkdirSync(folder, { recursive: true });
  const bad = [];
  for (const [name, [hash, wait, first, last]] of Object.entries(views)) {
    await page.setViewportSize({ width: 360, height: 720 });
    await goTo(page, hash, wait);
    await first?.();
    await page.evaluate(() => document.querySelectorAll('.note').forEach((n) => n.remove()));
    for (const width of [360, 480, 768]) {
      await page.setViewportSize({ width, height: 720 });
      await page.waitForTimeout(100);
      await page.evaluate(still);
      for (const scheme of folder ? ['dark', 'light'] : []) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.waitForTimeout(150);
        await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`) });
      }
      bad.push(...(await page.evaluate(unreachable)).map((b) => `${name}, ${width}: ${b}`));
    }
    await last?.();
  }
  assert.deepEqual(bad, []);
  assert.deepEqual(page.troubles, []);
});

test('the sheets by keyboard alone', async () => {
  await page.setViewportSize({ width: 360, height: 720 });
  await goTo(page, '#/c/shop/products/items', '.grid .line');
  const press = async (...keys) => {
    for (const k of keys) await page.keyboard.press(k);
  };
  const focused = (selector) => page.waitForFunction((s) => document.activeElement?.matches(s), selector);
  const shut = () => page.waitForFunction(() => !document.querySelector('.side').checkVisibility({ visibilityProperty: true }));
  await tabTo(page, '.top button[aria-label=Databases]');
  await press('Enter');
  await focused('.tree li');
  await check(page, 'sheet');
  await press('Escape');
  await focused('.top button[aria-label=Databases]');
  await shut();
  await press('Enter', 'End', 'Enter'); // the last container
  await page.waitForSelector('.crumb b:text-is("products")');
  await focused('.paneholder');
  await shut();
  // a view of the server is chosen in the sheet too
  await tabTo(page, '.top button[aria-label=Databases]');
  await press('Enter');
  await tabTo(page, '.servers a', 80, 'Health');
  await press('Enter');
  await page.waitForSelector('.plots');
  await shut();
  await focused('.paneholder');
  // F6 finds the details, which cover the page
  await goTo(page, '#/c/shop/products/items', '.grid .line');
  await tabTo(page, '.grid .line', 80);
  await press('Enter');
  await page.waitForSelector('.inspector textarea');
  for (let i = 0; i < 4 && !(await page.evaluate(() => document.activeElement.closest('.inspector'))); i++) await press('F6');
  assert.ok(await page.evaluate(() => document.activeElement.closest('.inspector')), 'F6 never reaches the details');
  await press('Escape');
  await page.waitForSelector('.inspector', { state: 'hidden' });
  // the view that is shown is the one whose name can be read
  await page.setViewportSize({ width: 360, height: 640 });
  await goTo(page, '#/c/shop/products/settings', '[aria-label="Indexing policy"]');
  const { left, right } = await page.evaluate(() => document.querySelector('.panes .on').getBoundingClientRect());
  assert.ok(left >= 0 && right <= 360, `Settings is at ${left} to ${right}`);
  assert.deepEqual(page.troubles, []);
});

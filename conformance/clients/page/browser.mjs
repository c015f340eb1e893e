// What the tests of the page share: a server with the sample data, a browser, and the checks that every view must pass.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const binary = process.env.ORRERY_BIN;
/** A folder whose files replace those in the binary, to try a change without building it. */
const files = process.env.ORRERY_PAGE;
const types = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html', '.svg': 'image/svg+xml', '.txt': 'text/plain' };

/** Starts `orrery demo` on free ports. */
export async function demo(...flags) {
  const ports = ['nosql', 'gremlin', 'table', 'mongo', 'admin'].flatMap((d) => [`--${d}-addr`, '127.0.0.1:0']);
  const process = spawn(binary, ['demo', ...ports, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  const ended = new Promise((done) => process.on('exit', done));
  const admin = await new Promise((done, fail) => {
    const look = (b) => {
      out += b;
      const m = /Admin\s+(http:\S+?)\{/.exec(out),
        n = /NoSQL\s+AccountEndpoint=(http:\S+?);/.exec(out),
        g = /Gremlin\s+(ws:\S+)/.exec(out),
        d = /Mongo\s+mongodb:\/\/(?:\S+@)?([\d.:]+)/.exec(out);
      if (m && n && g && d && /Data /.test(out)) done({ admin: m[1], nosql: n[1], gremlin: g[1], mongo: d[1] });
    };
    process.stdout.on('data', look);
    process.stderr.on('data', look);
    ended.then(() => fail(new Error('the server has ended: ' + out)));
  });
  for (let i = 0; i < 100; i++) {
    if ((await fetch(admin.admin + 'ready')).ok) break;
    await new Promise((r) => setTimeout(r, 50));
  }
  return {
    ...admin,
    log: () => out,
    stop: async () => {
      process.kill('SIGTERM');
      await ended;
    },
  };
}

/** Starts the browser, with a profile of its own. */
export async function start() {
  const profile = mkdtempSync(join(tmpdir(), 'orrery-page-'));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    env: { ...process.env, HOME: profile },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  return {
    browser,
    stop: async () => {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** A page that is logged in. Anything that it reports as an error, or asks from elsewhere, is in page.troubles. */
export async function openPage(browser, server, hash = '', o = {}) {
  const context = await browser.newContext({
    viewport: { width: o.width || 1280, height: o.height || 800 },
    colorScheme: o.dark ? 'dark' : 'light',
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.troubles = [];
  page.on('pageerror', (e) => page.troubles.push(e.message));
  page.on('console', (m) => {
    const known = o.away ? /status of (4\d\d|502)|net::ERR_/ : /status of (4\d\d|502)/; // away: the server will stop
    if (m.type() === 'error' && !known.test(m.text())) page.troubles.push(m.text());
  });
  page.on('request', (r) => {
    if (!r.url().startsWith(server.admin) && !/^(data|blob):/.test(r.url())) page.troubles.push('asked for ' + r.url());
  });
  page.on('dialog', (d) => {
    page.troubles.push('a dialog says ' + d.message());
    d.dismiss();
  });
  page.setDefaultTimeout(15000);
  if (files) {
    await context.route('**/_explorer/**', async (r) => {
      const name = new URL(r.request().url()).pathname.replace('/_explorer/', ''),
        file = join(files, name);
      if (name.startsWith('api/') || !name || !existsSync(file)) return r.continue();
      const reply = await r.fetch();
      await r.fulfill({
        response: reply,
        status: 200,
        body: readFileSync(file),
        headers: { ...reply.headers(), 'content-type': types[extname(name)] },
      });
    });
  }
  await page.goto(server.admin + '_explorer/index.html' + hash);
  if (o.login !== false) {
    await page.waitForSelector('.login button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.tree li li', { state: 'attached' });
  }
  return page;
}

/** Goes to another view of the page. */
export async function goTo(page, hash, wait) {
  await page.evaluate((h) => {
    location.hash = h;
  }, hash);
  await page.waitForSelector(wait);
}

/** Checks what must be true of each view: no errors, no violation of the rules for accessibility, in light and dark. */
export async function check(page, name) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(200);
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
    assert.deepEqual(
      found.violations.map(
        (v) =>
          `${v.id}: ${v.nodes
            .slice(0, 3)
            .map((n) => n.target + ' ' + (n.any[0]?.message || ''))
            .join(' | ')}`,
      ),
      [],
      `${name}, ${scheme}`,
    );
  }
  await page.emulateMedia({ colorScheme: 'light' });
  assert.deepEqual(page.troubles, [], name);
}

/** Presses Tab until an element that fits, and has a text, is focused. */
export async function tabTo(page, selector, most = 60, text = '') {
  for (let i = 0; i < most; i++) {
    const there = ([s, t]) => document.activeElement?.matches(s) && document.activeElement.textContent.includes(t);
    if (await page.evaluate(there, [selector, text])) return;
    await page.keyboard.press('Tab');
  }
  assert.fail('Tab never reaches ' + selector + ' ' + text);
}

/** A command of the palette, by keyboard. */
export async function palette(page, text) {
  await page.keyboard.press('Control+k');
  await page.waitForSelector('dialog.palette[open]');
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

/** Sends a request of the NoSQL API through the page's session. */
export function nosql(page, method, path, body, headers = {}) {
  return page.evaluate(
    async ([m, p, b, h]) => {
      const res = await fetch('api/nosql' + p, {
        method: m,
        body: b,
        headers: {
          ...h,
          'x-orrery-token': sessionStorage.getItem('orrery-token'),
          ...(b ? { 'content-type': 'application/json' } : {}),
        },
      });
      return { status: res.status, text: await res.text(), headers: Object.fromEntries(res.headers) };
    },
    [method, path, body, headers],
  );
}

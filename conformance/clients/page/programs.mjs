// The programs of the Connect view, as a user copies them: each is run where its language and its client are installed,
// by the other tests of clients, and prints what the sample data has.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { demo, start, openPage, goTo } from './browser.mjs';

const here = dirname(fileURLToPath(import.meta.url)),
  clients = dirname(here),
  run = promisify(execFile),
  folder = mkdtempSync(join(tmpdir(), 'orrery-programs-'));

/** What each program prints, by its API. */
const prints = { NoSQL: /tent-2/, MongoDB: /grace[^]*480/, Table: /64\.\d|6[5-9]/, Gremlin: /Portland|San Francisco/ };

/** How a program of a language is run, or undefined where it can't be. @type {Record<string, (api: string, text: string) => any>} */
const languages = {
  Python: (_, text) => {
    const python = join(clients, 'python/.venv/bin/python');
    return existsSync(python) && [python, ['-c', text]];
  },
  JavaScript: (api, text) => {
    if (!existsSync(join(clients, 'js/node_modules'))) return;
    const file = join(clients, 'js/node_modules', `program-of-the-page-${api}.mjs`); // beside the clients, not in the repository
    writeFileSync(file, text);
    return [process.execPath, [file]];
  },
  Go: (api, text) => {
    const file = join(folder, api, 'main.go');
    mkdirSync(dirname(file));
    writeFileSync(file, text);
    return ['go', ['run', '-C', join(clients, '..'), file]];
  },
  Java: (api, text) => {
    const lib = { NoSQL: '-sql', MongoDB: '-mongo', Table: '-sql', Gremlin: '' }[api],
      jars = join(process.env.TMPDIR || '/tmp', 'orrery-java' + lib, 'lib');
    if (!existsSync(jars)) return;
    const file = join(folder, api + '.java');
    writeFileSync(file, text);
    return ['java', ['-DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true', '-cp', jars + '/*', file]];
  },
  mongosh: (_, text) => {
    const shell = join(clients, 'mongosh/node_modules/.bin/mongosh'),
      [line, ...entered] = text.split('\n');
    return existsSync(shell) && [shell, [JSON.parse(line.slice('mongosh '.length)), '--quiet'], entered.join('\n')];
  },
  // Mono's compiler knows no top-level statements and no "using var".
  'C#': (api, text) => {
    const dotnet = join(clients, 'dotnet');
    if (api !== 'NoSQL' || !existsSync(join(dotnet, 'node_modules'))) return;
    const lines = text.split('\n'),
      usings = lines.filter((l) => /^using [\w.]+;$/.test(l)),
      rest = lines.filter((l) => !usings.includes(l)).join('\n').replace(/\busing var\b/g, 'var'),
      file = join(folder, 'program.cs');
    writeFileSync(file, `using System; using System.Threading.Tasks;\n${usings.join('\n')}
class Program { static void Main() { Run().GetAwaiter().GetResult(); } static async Task Run() {\n${rest}\n} }\n`);
    return [join(dotnet, 'run.sh'), [file]];
  },
};

let server, chrome, page;
before(async () => {
  server = await demo();
  chrome = await start();
  page = await openPage(chrome.browser, server);
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await chrome?.stop();
  await server?.stop();
});

test('each API has its programs, and each program runs', async (t) => {
  await goTo(page, '#/connect', '[aria-label=Clients] button');
  const names = await page.locator('[aria-label=Clients] button').allTextContents();
  for (const api of Object.keys(prints))
    for (const lang of ['Python', 'JavaScript', 'Go', 'Java']) assert.ok(names.includes(`${api}, ${lang}`), `${api}, ${lang}`);
  for (const name of names) {
    await t.test(name, async (t) => {
      await page.click(`[aria-label=Clients] button:text-is("${name}")`);
      const text = await page.textContent('[aria-label=Program]'),
        [api, lang] = name.split(', '),
        command = languages[lang](api, text);
      assert.doesNotMatch(text, /\{[a-z]+(String)?\}"/, 'a place is left');
      if (!command) return t.diagnostic('not run: its language or its client is not installed');
      const running = run(command[0], command[1], { timeout: 240_000, env: { ...process.env, HOME: process.env.HOME || folder } });
      running.child.stdin.end(command[2] || '');
      assert.match((await running).stdout, prints[api]);
    });
  }
});

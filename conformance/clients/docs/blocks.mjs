// The blocks of README.md and of the documents for the first hour, as a newcomer enters them: in one folder, in their
// order, against a server that has just been started there. What a document prints below a block must be its output.
//
// The info string of a block says what it is. "LANGUAGE file=NAME" is saved as a file. "sh" is run by a shell, whose exports
// hold for the blocks after it; "text result" or "json result" after it is what it prints. conformance/guides runs blocks of
// other kinds. A block that neither runs must be in notRun, with a reason.
//
// The ports are those of the test's server instead of the default ones. The clients are those that the other tests have
// installed: the lines of npm, pip, go, mvn and dotnet are checked to name them, and aren't run.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const clients = dirname(dirname(fileURLToPath(import.meta.url))),
  root = join(clients, '../..'),
  jars = join(process.env.TMPDIR || '/tmp', 'orrery-java-sql/lib'),
  read = (...path) => readFileSync(join(...path), 'utf8');

/** Blocks that aren't run: what they begin with, and why. */
const notRun = {
  'make run': 'the test starts the server, on ports of its own; `make stopwatch` runs it in a clone',
  'Orrery devel': 'the banner, which TestREADMEShowsTheBanner compares',
  'func TestShop': 'a part of a test in Go; the tests of orrerytest make the same calls',
  'var srv *orrerytest.Server': 'the same',
  'databases:': 'initial data, which TestInitDir applies',
};

/** The shells of MongoDB: how they are started, and the documents that are printed last, where n are expected. */
const key = 'C2y6yDjf5%2FR%2Bob0N8A7Cgv30VRDJIWEHLM%2B4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw%2FJw%3D%3D';
const shells = {
  mongosh: [`mongosh 'mongodb://localhost:${key}@127.0.0.1:10255/?directConnection=true' --quiet`,
    (out) => new Function('return ' + /.*> (\[ .* \])/s.exec(out)[1])()],
  'orrery shell': ['bin/orrery shell --lang mongo', (out, n) => out.trim().split('\n').slice(-n).map(JSON.parse)],
};

/** What must be installed for a command, and what says that it knows the clients that an installer's line names. */
const tools = {
  node: () => existsSync(join(clients, 'js/node_modules')),
  python: () => existsSync(join(clients, 'python/.venv')),
  java: () => existsSync(jars),
  dotnet: () => existsSync(join(clients, 'dotnet/node_modules')),
  mongosh: () => existsSync(join(clients, 'mongosh/node_modules')),
};
const installers = [
  [/^npm install (.*)/, (name) => Object.hasOwn(JSON.parse(read(clients, 'js/package.json')).dependencies, name)],
  [/^pip install (.*)/, (name) => read(clients, 'python/requirements.txt').includes(`\n${name}==`)],
  [/^go get (.*)/, (name) => read(root, 'conformance/go.mod').includes(`\t${name} v`)],
  [/^go mod init .*/, () => true],
  [/^dotnet new console --force$/, () => true],
  [/^dotnet add package (.*)/, (name) => existsSync(join(clients, 'dotnet/node_modules/@azure/mcp-linux-x64/dist', name + '.Client.dll'))],
  [/^mvn -q dependency:copy-dependencies -DoutputDirectory=lib$/, () => true],
];

/** The blocks of a document. Those without fences have no kind. */
function blocks(name) {
  const out = [];
  let fenced, open;
  for (const [i, line] of read(root, name).split('\n').entries()) {
    if (fenced) {
      if (line === '```') fenced = undefined;
      else fenced.text += line + '\n';
    } else if (line.startsWith('```')) {
      const [kind, ...args] = line.slice(3).split(' ');
      out.push((fenced = { line: i + 1, kind, args, text: '' }));
      fenced.file = args.find((a) => a.startsWith('file='))?.slice('file='.length);
    } else if (line.startsWith('    ')) {
      if (!open) out.push((open = { line: i + 1, kind: '', args: [], text: '' }));
      open.text += line.slice(4) + '\n';
      continue;
    } else if (!line && open) continue;
    open = undefined;
  }
  return out;
}

/** Starts a server in a new folder with the clients, and returns how blocks are run there. */
async function start(...flags) {
  const folder = mkdtempSync(join(tmpdir(), 'orrery-docs-')),
    env = { ...process.env, HOME: folder },
    at = {};
  const go = JSON.parse((await promisify(execFile)('go', ['env', '-json'])).stdout);
  Object.assign(env, { GOCACHE: go.GOCACHE, GOMODCACHE: go.GOMODCACHE, GOPATH: go.GOPATH, GOTOOLCHAIN: 'local' });
  env.PATH = ['python/.venv/bin', 'mongosh/node_modules/.bin'].map((d) => join(clients, d)).join(delimiter) + delimiter + env.PATH;
  env.PATH += delimiter + join(folder, 'tools');
  mkdirSync(join(folder, 'bin'));
  symlinkSync(process.env.ORRERY_BIN, join(folder, 'bin/orrery'));
  symlinkSync(join(clients, 'js/node_modules'), join(folder, 'node_modules'));
  symlinkSync(jars, join(folder, 'lib'));
  // .NET's command line can't be installed, but its client can: "dotnet run" does what the other tests of it do.
  mkdirSync(join(folder, 'tools'));
  writeFileSync(join(folder, 'tools/dotnet'), `#!/bin/sh\nexec '${join(clients, 'dotnet/run.sh')}' "$PWD/Program.cs"\n`, { mode: 0o755 });
  writeFileSync(join(folder, 'go.mod'), read(root, 'conformance/go.mod').replace('=> ../', '=> ' + root));
  cpSync(join(root, 'conformance/go.sum'), join(folder, 'go.sum'));

  const ports = ['nosql', 'gremlin', 'table', 'mongo', 'admin'].flatMap((d) => [`--${d}-addr`, '127.0.0.1:0']);
  const server = spawn('bin/orrery', ['serve', '--data', './data', ...ports, ...flags], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((done) => server.on('exit', done));
  let log = '';
  await new Promise((done, fail) => {
    const look = (b) => {
      log += b;
      const found = [...log.matchAll(/^ +(NoSQL|Table|Gremlin|Mongo|Page) .*?127\.0\.0\.1:(\d+)/gm)];
      for (const [, api, port] of found) at[api] = port;
      if (/^ +Data /m.test(log)) done();
    };
    server.stdout.on('data', look);
    server.stderr.on('data', look);
    ended.then(() => fail(new Error('the server has ended: ' + log)));
  });
  const defaults = { 8081: at.NoSQL, 8901: at.Gremlin, 8902: at.Table, 10255: at.Mongo, 8080: at.Page };
  for (let i = 0; i < 100 && !(await fetch(`http://127.0.0.1:${at.Page}/ready`)).ok; i++) await new Promise((r) => setTimeout(r, 50));
  let exported = '';
  return {
    here: (text) => text.replace(/127\.0\.0\.1:(\d+)/g, (all, port) => (defaults[port] ? '127.0.0.1:' + defaults[port] : all)),
    save: (name, text) => writeFileSync(join(folder, name), text),
    /** Runs lines of a shell with this input, and returns what they print. */
    async run(text, input = '') {
      const lines = text.split('\n');
      const running = promisify(execFile)('sh', ['-ec', exported + text], { cwd: folder, env, timeout: 240_000 });
      running.child.stdin.on('error', () => {}).end(input); // a program needn't read it
      exported += lines.filter((l) => l.startsWith('export ')).map((l) => l + '\n').join('');
      return (await running).stdout;
    },
    async stop() {
      server.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Why a block can't be run here, or undefined. */
function missing(block) {
  const tool = /^(?:.* )?(node|python|java|dotnet|mongosh) /m.exec(block.text)?.[1];
  return tool && !tools[tool]() && `${tool} or its clients are not installed`;
}

/** The commands of a block without those that install, which are checked. */
function commands(block) {
  return block.text
    .split('\n')
    .filter((line) => {
      const [match, known] = installers.map(([r, known]) => [r.exec(line), known]).find(([m]) => m) || [];
      if (!match) return true;
      for (const name of (match[1] || '').split(' ')) assert.ok(known(name), `line ${block.line}: ${name} isn't what is tested`);
    })
    .join('\n');
}

/** The documents, and how each says that the server is started. */
const documents = { 'README.md': [], 'docs/quickstart.md': [], 'docs/testing.md': ['--test-controls'] };

for (const [name, flags] of Object.entries(documents)) {
  test(name, async (t) => {
    const all = blocks(name),
      server = await start(...flags);
    t.after(() => server.stop());
    let ran = 0;
    for (const [i, block] of all.entries()) {
      const next = all[i + 1]?.args[0] === 'result' ? all[i + 1] : undefined,
        what = `${name}:${block.line} ${block.kind} ${block.text.split('\n')[0]}`;
      if (block.file) {
        if (block.file === 'pom.xml') {
          const [, client] = /<dependencies>\s*(.*)/.exec(block.text);
          assert.ok(read(clients, 'java-sql/pom.xml').includes(client), `${what}: ${client} isn't what is tested`);
        }
        server.save(block.file, server.here(block.text));
      } else if (block.kind === 'sh') {
        await t.test(what, async (t) => {
          const without = missing(block);
          if (without) return t.diagnostic('not run: ' + without);
          const out = (await server.run(server.here(commands(block)))).trim();
          if (next) assert.equal(out, next.text.trim());
          ran++;
        });
      } else if (block.kind === 'js') {
        // each shell begins with an empty database
        for (const [shell, [command, documents]] of Object.entries(shells)) {
          await t.test(`${what}, ${shell}`, async (t) => {
            if (shell in tools && !tools[shell]()) return t.diagnostic('not run: mongosh is not installed');
            const want = JSON.parse(next.text),
              out = await server.run(server.here(command), `db.getSiblingDB("shop").dropDatabase()\nuse shop\n${block.text}`);
            assert.deepEqual(documents(out, want.length), want);
            ran++;
          });
        }
      } else if (!['sql', 'gremlin', 'odata'].includes(block.kind) && block.args[0] !== 'result' && !block.args[0]?.startsWith('container=')) {
        const reason = Object.entries(notRun).find(([begin]) => block.text.startsWith(begin))?.[1];
        assert.ok(reason, `${what}: neither run nor known as one that can't be`);
        t.diagnostic(`${what}: not run: ${reason}`);
      }
    }
    assert.ok(ran > 0, 'no block was run');
  });
}

// See run.sh. Both servers listen on free ports, and keep nothing.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import assert from 'node:assert/strict';

const key = 'C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==';
const lib = resolve('target/lib'),
  work = mkdtempSync(join(tmpdir(), 'orrery-gs-')),
  running = [];

async function freePort() {
  const s = createServer().listen(0, '127.0.0.1');
  await once(s, 'listening');
  const { port } = s.address();
  s.close();
  await once(s, 'close');
  return port;
}

/** Starts a program, and waits until its output has a text. */
async function start(text, ...command) {
  const p = spawn(command[0], command.slice(1), { cwd: work });
  running.push(p);
  let out = '';
  await new Promise((done, fail) => {
    for (const s of [p.stdout, p.stderr])
      s.on('data', (b) => {
        out += b;
        if (out.includes(text)) done();
      });
    p.on('exit', () => fail(new Error(out)));
    setTimeout(() => fail(new Error('no answer: ' + out)), 120_000).unref();
  });
}

/** Gremlin Server with two graphs: the one of TinkerPop's crew at g, an empty one at h. */
async function gremlinServer() {
  const port = await freePort();
  const tinker = 'org.apache.tinkerpop.gremlin.tinkergraph';
  for (const name of ['crew', 'empty'])
    writeFileSync(join(work, name + '.properties'), `gremlin.graph=${tinker}.structure.TinkerGraph\ngremlin.tinkergraph.defaultVertexPropertyCardinality=list\n`);
  writeFileSync(join(work, 'init.groovy'), `def globals = [:]
${tinker}.structure.TinkerFactory.generateTheCrew(crew)
globals << [g: traversal().withEmbedded(crew), h: traversal().withEmbedded(empty)]
`);
  writeFileSync(join(work, 'server.yaml'), `host: 127.0.0.1
port: ${port}
evaluationTimeout: 60000
channelizer: org.apache.tinkerpop.gremlin.server.channel.WsAndHttpChannelizer
graphs: { crew: crew.properties, empty: empty.properties }
scriptEngines:
  gremlin-groovy:
    plugins:
      org.apache.tinkerpop.gremlin.server.jsr223.GremlinServerGremlinPlugin: {}
      ${tinker}.jsr223.TinkerGraphGremlinPlugin: {}
      org.apache.tinkerpop.gremlin.jsr223.ScriptFileGremlinPlugin: { files: [init.groovy] }
serializers:
  - { className: org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1 }
  - { className: org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3 }
`);
  spawn('java', ['-Xmx512m', '-cp', lib + '/*', 'org.apache.tinkerpop.gremlin.server.GremlinServer', 'server.yaml'], { cwd: work }).on('spawn', function () { running.push(this); });
  for (let i = 0; i < 600; i++) {
    try {
      await ask(port, 'g', 'g.inject(1)');
      return port;
    } catch {
      await new Promise((r) => setTimeout(r, 200));
    }
  }
  throw new Error('Gremlin Server does not answer');
}

/** The results of a script, as GraphSON 3. */
async function ask(port, source, gremlin) {
  const r = await fetch(`http://127.0.0.1:${port}/gremlin`, {
    method: 'POST',
    body: JSON.stringify({ gremlin, aliases: { g: source } }),
    headers: { 'content-type': 'application/json', accept: 'application/vnd.gremlin-v3.0+json', authorization: 'Basic ' + btoa('localhost:' + key) },
  });
  const text = await r.text();
  assert.equal(r.status, 200, text);
  return JSON.parse(text).result.data['@value'];
}

/** All elements of a graph with their properties, and these' properties; the ids of properties are given anew. */
async function content(port, source) {
  const values = "properties().project('k','v','m').by(key()).by(value()).by(valueMap()).fold()";
  const vertices = await ask(port, source, `g.V().project('i','l','p').by(id()).by(label()).by(__.${values})`);
  const edges = await ask(port, source, "g.E().project('i','l','o','n','p').by(id()).by(label()).by(__.outV().id()).by(__.inV().id()).by(__.valueMap())");
  return [vertices, edges].map((list) => list.map(plain).sort());
}

/** A value without the widths of its whole numbers, with maps and lists in one order. */
function plain(v) {
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  if (Array.isArray(v)) return '[' + v.map(plain).sort() + ']';
  const { '@type': type, '@value': value } = v;
  if (type === 'g:Map') {
    const pairs = [];
    for (let i = 0; i < value.length; i += 2) pairs.push(plain(value[i]) + ':' + plain(value[i + 1]));
    return '{' + pairs.sort() + '}';
  }
  return plain(value);
}

function copy(from, to) {
  const r = spawnSync(process.env.ORRERY_COPY, ['--from', from, '--to', to, '--from-account', 'localhost', '--to-account', 'localhost', '--from-key', 'env:KEY', '--to-key', 'env:KEY'], { cwd: work, env: { ...process.env, KEY: key }, encoding: 'utf8' });
  if (r.status) spawnSync('sh', ['-c', 'cat *.bad.jsonl >&2'], { cwd: work, stdio: 'inherit' });
  assert.equal(r.status, 0, r.stdout + r.stderr);
  return r.stdout.trim();
}

let failed = 0;
try {
  const theirs = await gremlinServer(),
    ours = await freePort();
  await start('  Data ', process.env.ORRERY_BIN, 'serve', '--memory', '--gremlin-addr', '127.0.0.1:' + ours, ...['nosql', 'table', 'mongo', 'admin'].flatMap((x) => [`--${x}-addr`, x === 'nosql' ? '127.0.0.1:0' : 'off']));
  const there = (source) => `gremlin+ws://127.0.0.1:${theirs}/${source}`,
    here = `gremlin+ws://127.0.0.1:${ours}/graphs/g`;
  // more values than bindings are allowed, and texts that Groovy could take for something else
  const odd = ["it's", 'a\\b', 'line\nbreak', '${x} $y', '日本', '"'].map((s) => JSON.stringify(s).replaceAll('$', '\\$'));
  await ask(theirs, 'g', "g.addV('odd').property(T.id, 'o\\'1')" + Array.from({ length: 24 }, (_, i) => `.property(list, 'k${i}', ${i < 12 ? odd[i % 6] : [i, i + 'L', i / 8 + 'd', 'true'][i % 4]})`).join(''));
  const crew = await content(theirs, 'g');
  assert.deepEqual([crew[0].length, crew[1].length], [7, 14], 'vertices and edges of the crew');
  for (const [name, f] of [
    ['a graph of Gremlin Server is copied to Orrery', async () => {
      assert.equal(copy(there('g'), here), '21 items, 21 of them now');
      assert.deepEqual(await content(ours, 'graphs/g'), crew);
    }],
    ['and from Orrery to another graph of Gremlin Server', async () => {
      assert.equal(copy(here, there('h')), '21 items, 21 of them now');
      assert.deepEqual(await content(theirs, 'h'), crew);
    }],
  ]) {
    try {
      await f();
      console.log('✔ ' + name);
    } catch (e) {
      failed++;
      console.log('✖ ' + name, e);
    }
  }
  console.log(`gremlinserver: ${2 - failed} passed, ${failed} failed, 2 tests`);
} finally {
  for (const p of running) p.kill();
  rmSync(work, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;

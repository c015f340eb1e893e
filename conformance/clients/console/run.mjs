// Types transcripts into a real Gremlin Console and compares its output.
//
//   node run.mjs VERSION:TRANSCRIPT ...
//
// A transcript has lines "> input". The lines up to the next such line are the expected output. The output of ">?
// input" isn't compared. A line "~ text" requires only that the output contains the text. "#" begins a comment. $NAME
// is the yaml file NAME.yaml, which is made from the variables of ../run.sh.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const env = (name) => process.env[name] ?? (() => { throw new Error(`${name} is not set: run through conformance/clients/run.sh`); })();
const gremlin = new URL(env("ORRERY_GREMLIN"));
const [account, key, nosql] = [env("ORRERY_ACCOUNT_NAME"), env("ORRERY_ACCOUNT_KEY"), env("ORRERY_NOSQL")];
const home = mkdtempSync(join(tmpdir(), "orrery-console-")); // the console keeps its history and preferences there
const [database, graph] = [`console${process.pid}`, "roads"];

// create posts to the NoSQL API with a master-key signature: graphs with a partition key are created there, as in the
// service.
async function create(type, parent, body, headers = {}) {
  const date = new Date().toUTCString();
  const mac = createHmac("sha256", Buffer.from(key, "base64"));
  mac.update(`post\n${type}\n${parent}\n${date.toLowerCase()}\n\n`);
  const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${mac.digest("base64")}`);
  const r = await fetch(`${nosql}/${parent ? parent + "/" : ""}${type}`, {
    method: "POST", headers: { authorization, "x-ms-date": date, "x-ms-version": "2018-12-31", ...headers }, body: JSON.stringify(body),
  });
  if (r.status !== 201) throw new Error(`create ${type}: ${r.status} ${await r.text()}`);
}

function yaml(name, user, serializer, config) {
  const file = join(home, `${name}.yaml`);
  writeFileSync(file, `hosts: [${gremlin.hostname}]
port: ${gremlin.port}
path: ${gremlin.pathname}
username: ${user}
password: "${key}"
connectionPool: { enableSsl: false, minSize: 1, maxSize: 2 }
serializer: { className: ${serializer}, config: { ${config} }}
`);
  return file;
}

const login = `/dbs/${database}/colls/${graph}`;
const ser = "org.apache.tinkerpop.gremlin";
const files = {
  REMOTE: yaml("remote", account, `${ser}.util.ser.GraphBinaryMessageSerializerV1`, "serializeResultToString: true"),
  TYPED: yaml("typed", account, `${ser}.util.ser.GraphBinaryMessageSerializerV1`, ""),
  GRAPHSON3: yaml("graphson3", account, `${ser}.util.ser.GraphSONMessageSerializerV3`, ""),
  WRONG: yaml("wrong", `${login}-absent`, `${ser}.driver.ser.GraphSONMessageSerializerV2d0`, "serializeResultToString: true"),
  // The file of the service's quick start, without TLS.
  COSMOS: yaml("cosmos", login, `${ser}.driver.ser.GraphSONMessageSerializerV2d0`, "serializeResultToString: true"),
  OLD: yaml("old", account, `${ser}.driver.ser.GraphBinaryMessageSerializerV1`, "serializeResultToString: true"),
};

// parse returns the steps of a transcript: {line, want, any}.
function parse(file) {
  const steps = [];
  for (const [i, l] of readFileSync(file, "utf8").split("\n").entries()) {
    if (l.startsWith("#") || l === "") continue;
    if (l.startsWith(">? ") || l.startsWith("> ")) {
      const any = l.startsWith(">? ");
      const line = l.slice(any ? 3 : 2).replace(/\$([A-Z0-9]+)/g, (_, n) => files[n]);
      steps.push({ at: `${file}:${i + 1}`, line, want: [], any });
    } else steps.at(-1).want.push(l);
  }
  return steps;
}

// matches compares line by line. Without "~" lines both texts must be equal.
const matches = (got, want) => want.some((w) => w.startsWith("~ "))
  ? want.every((w) => got.join("\n").includes(w.replace(/^~ /, "")))
  : got.join("\n") === want.join("\n");

const prompt = /(?:gremlin> |\.{3,}\d+> |Display stack trace\? \[yN\])$/;

async function run(version, file) {
  const opens = ["java.lang", "java.util"].flatMap((p) => ["--add-opens", `java.base/${p}=ALL-UNNAMED`]); // what old Groovy reflects on
  const child = spawn("java", [...opens, "-XX:TieredStopAtLevel=1", "-Djline.terminal=none", `-Duser.home=${home}`, "-cp", join("target", version, "*"),
    "org.apache.tinkerpop.gremlin.console.Console", "-C"], { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, HOME: home } });
  let out = "", wake = () => {}, ended = false;
  child.stdout.setEncoding("utf8").on("data", (s) => { out += s; wake(); });
  // Errors and the question after them are written here, and at the start messages of loggers.
  child.stderr.setEncoding("utf8").on("data", (s) => { if (!/SLF4J|prefs|WARN|INFO/.test(s)) { out += s; wake(); } });
  child.on("exit", () => { ended = true; wake(); }).stdin.on("error", () => {}); // it ended before the last line
  const waitPrompt = async () => {
    const until = Date.now() + 60_000;
    for (;;) {
      const text = out.replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, "").replace(/\r/g, "");
      if (prompt.test(text) || ended) { out = ""; return text; }
      if (Date.now() > until) { child.kill(); throw new Error(`no prompt within a minute; last output: ${text}`); }
      await new Promise((ok) => { wake = ok; setTimeout(ok, 1000); });
    }
  };
  let passed = 0, failed = 0;
  try {
    const start = await waitPrompt();
    if (ended) throw new Error(`the console did not start: ${start.slice(0, 2000)}`);
    for (const s of parse(file)) {
      child.stdin.write(s.line + "\n");
      let got = await waitPrompt();
      if (got.endsWith("[yN]")) { // the console asks after each error
        child.stdin.write("n\n");
        await waitPrompt();
        got = got.slice(0, got.lastIndexOf("\nType ':help'"));
      }
      const lines = got.split("\n").filter((l) => l !== "" && !prompt.test(l)); // without a terminal nothing is echoed
      if (process.env.ORRERY_CONSOLE_SHOW) console.log(["> " + s.line, ...lines].join("\n"));
      if (s.any) continue;
      if (matches(lines, s.want)) { passed++; continue; }
      failed++;
      console.log(`FAIL console ${version} ${s.at}: ${s.line}\n  got:  ${lines.join("\n        ")}\n  want: ${s.want.join("\n        ")}`);
    }
    child.stdin.end(":exit\n");
    for (let i = 0; i < 50 && !ended; i++) await new Promise((ok) => setTimeout(ok, 100));
  } catch (e) {
    failed++;
    console.log(`FAIL console ${version}: ${e.message}`);
  }
  if (!ended) {
    child.kill("SIGKILL");
    await new Promise((ok) => child.once("exit", ok));
  }
  return [passed, failed];
}

await create("dbs", "", { id: database });
await create("colls", `dbs/${database}`, { id: graph, partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
// Both consoles run at once: most of their time is the start of Groovy.
const results = await Promise.all(process.argv.slice(2).map((a) => run(...a.split(":"))));
const [passed, failed] = [0, 1].map((i) => results.reduce((n, r) => n + r[i], 0));
console.log(`console: ${passed} passed, ${failed} failed, ${results.length} versions`);
rmSync(home, { recursive: true, force: true, maxRetries: 3 });
process.exit(failed === 0 ? 0 : 1);

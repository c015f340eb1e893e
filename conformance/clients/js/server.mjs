// The addresses of the server under test, from ../run.sh. Every test file imports them from here.
const need = (name) => {
  const v = process.env[name];
  if (!v) throw new Error(`${name} is not set: run the tests through conformance/clients/run.sh`);
  return v;
};

export const nosql = need("ORRERY_NOSQL"); // http://127.0.0.1:port
export const table = need("ORRERY_TABLE"); // http://127.0.0.1:port
export const mongo = need("ORRERY_MONGO"); // 127.0.0.1:port
export const admin = need("ORRERY_ADMIN"); // http://127.0.0.1:port
export const gremlin = need("ORRERY_GREMLIN"); // ws://127.0.0.1:port/gremlin
export const account = need("ORRERY_ACCOUNT_NAME");
export const key = need("ORRERY_ACCOUNT_KEY");

let n = 0;
// unique returns a name that no other test uses.
export const unique = (prefix) => `${prefix}-${process.pid}-${++n}`;

// The servers share a store over a network, where everything takes longer.
export const shared = Boolean(process.env.ORRERY_ENGINE);

// The types of BSON that JavaScript lacks. Each can be called with and without new. Their instances are converted by
// convert.go, which knows them by _bsontype, and shown by inspect.go.
'use strict';

// define makes the type `name`. init sets the fields of a new instance from the arguments.
$host.types = {};
function define(name, init, members, aliases = []) {
  const type = { [name]: function (...args) {
    const self = this instanceof type ? this : Object.create(type.prototype);
    init.apply(self, args);
    return self;
  } }[name];
  Object.defineProperty(type.prototype, '_bsontype', { value: name });
  for (const [key, value] of Object.entries(members)) {
    Object.defineProperty(type.prototype, key, { value, writable: true });
  }
  $host.types[name] = type;
  for (const alias of [name, ...aliases]) globalThis[alias] = type;
  return type;
}

const quoted = (text) => "'" + text + "'";

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));

define('ObjectId', function (id) {
  if (id instanceof ObjectId) id = id.hex;
  if (id === undefined) id = $host.newObjectId();
  if (typeof id === 'number') id = $host.newObjectId(id);
  if (typeof id !== 'string' || !/^[0-9a-fA-F]{24}$/.test(id)) {
    throw new TypeError('an ObjectId has 24 hexadecimal digits, not ' + id);
  }
  this.hex = id.toLowerCase();
}, {
  toString() { return this.hex; },
  toHexString() { return this.hex; },
  toJSON() { return this.hex; },
  getTimestamp() { return new Date(parseInt(this.hex.slice(0, 8), 16) * 1000); },
  equals(other) { return this.hex === String(other); },
}, ['ObjectID']);
ObjectId.createFromHexString = (hex) => ObjectId(hex);
ObjectId.createFromTime = (seconds) => ObjectId(seconds.toString(16).padStart(8, '0') + '0'.repeat(16));
ObjectId.isValid = (id) => id instanceof ObjectId || typeof id === 'string' && /^[0-9a-fA-F]{24}$/.test(id);

// A whole number of 64 bits. Its arithmetic is that of BigInt, cut to 64 bits.
const long = (x) => {
  if (x instanceof Long) return x.big;
  if (x !== null && typeof x === 'object') x = x.toString();
  return BigInt.asIntN(64, BigInt(typeof x === 'number' ? Math.trunc(x) : x));
};
define('Long', function (value = 0) { this.big = long(value); }, {
  toString() { return this.big.toString(); },
  toJSON() { return { $numberLong: this.big.toString() }; },
  toNumber() { return Number(this.big); },
  toInt() { return Number(BigInt.asIntN(32, this.big)); },
  toBigInt() { return this.big; },
  equals(other) { return this.big === long(other); },
  compare(other) { const o = long(other); return this.big < o ? -1 : this.big > o ? 1 : 0; },
  add(other) { return Long(this.big + long(other)); },
  subtract(other) { return Long(this.big - long(other)); },
  multiply(other) { return Long(this.big * long(other)); },
  divide(other) { return Long(this.big / long(other)); },
  modulo(other) { return Long(this.big % long(other)); },
  negate() { return Long(-this.big); },
  isZero() { return this.big === 0n; },
}, ['NumberLong']);
for (const from of ['fromString', 'fromNumber', 'fromInt', 'fromBigInt']) Long[from] = (x) => Long(x);

define('Int32', function (value = 0) { this.value = Number(value) | 0; }, {
  valueOf() { return this.value; },
  toString() { return String(this.value); },
  toJSON() { return this.value; },
}, ['NumberInt']);

define('Double', function (value = 0) { this.value = Number(value); }, {
  valueOf() { return this.value; },
  toString() { return String(this.value); },
  toJSON() { return this.value; },
}, ['NumberDouble']);

define('Decimal128', function (value = 0) { this.text = $host.decimal(String(value)); }, {
  toString() { return this.text; },
  toJSON() { return { $numberDecimal: this.text }; },
}, ['NumberDecimal']);
Decimal128.fromString = (text) => Decimal128(text);

define('Binary', function (data = '', subtype = 0) {
  this.base64 = typeof data === 'string' ? $host.base64(data) : $host.base64(data.buffer ?? data);
  this.sub_type = subtype;
}, {
  toString(encoding) { return encoding === 'base64' ? this.base64 : $host.text(this.base64); },
  toJSON() { return this.base64; },
  length() { return bytesOf(this.hex()).length; },
  hex() { return $host.hex(this.base64); },
  subtype() { return this.sub_type; },
  value() { return bytesOf(this.hex()); },
  toUUID() { return this; },
});
const binary = (base64, subtype) => {
  const b = new Binary('', subtype);
  b.base64 = $host.base64(base64, 'base64');
  return b;
};
Binary.createFromBase64 = (base64, subtype = 0) => binary(base64, subtype);
Binary.createFromHexString = (hex, subtype = 0) => binary($host.base64(hex, 'hex'), subtype);
globalThis.BinData = (subtype, base64) => binary(base64, subtype);
globalThis.HexData = (subtype, hex) => binary($host.base64(hex, 'hex'), subtype);
globalThis.UUID = function (text) {
  const hex = (text === undefined ? $host.newUUID() : String(text)).replace(/-/g, '');
  if (!/^[0-9a-fA-F]{32}$/.test(hex)) throw new TypeError('a UUID has 32 hexadecimal digits, not ' + text);
  return binary($host.base64(hex, 'hex'), 4);
};
globalThis.MD5 = (hex) => binary($host.base64(hex, 'hex'), 5);

define('Timestamp', function (t = 0, i = 0) {
  if (t instanceof Long) [t, i] = [Number(BigInt.asUintN(64, t.big) >> 32n), Number(t.big & 0xffffffffn)];
  if (t !== null && typeof t === 'object') [t, i] = [t.t, t.i];
  this.t = Number(t);
  this.i = Number(i);
}, {
  toString() { return `Timestamp({ t: ${this.t}, i: ${this.i} })`; },
  toJSON() { return { $timestamp: { t: this.t, i: this.i } }; },
  getHighBits() { return this.t; },
  getLowBits() { return this.i; },
});

define('MinKey', function () {}, { toString: () => 'MinKey()', toJSON: () => ({ $minKey: 1 }) });
define('MaxKey', function () {}, { toString: () => 'MaxKey()', toJSON: () => ({ $maxKey: 1 }) });

define('Code', function (code, scope) {
  this.code = String(code);
  this.scope = scope ?? null;
}, { toString() { return this.code; }, toJSON() { return { code: this.code }; } });

// Regular expressions with options that JavaScript's don't have.
define('BSONRegExp', function (pattern, options = '') {
  this.pattern = pattern;
  this.options = options;
}, { toString() { return `/${this.pattern}/${this.options}`; } });

globalThis.DBRef = function (collection, id, db) {
  return db === undefined ? { $ref: collection, $id: id } : { $ref: collection, $id: id, $db: db };
};

globalThis.ISODate = function (text) {
  if (text === undefined) return new Date();
  let full = String(text);
  const compact = /^(\d{4})-?(\d{2})-?(\d{2})(?:[T ](\d{2})(?::?(\d{2})(?::?(\d{2})(\.\d+)?)?)?)?(Z|[+-]\d{2}:?\d{2})?$/
    .exec(full);
  if (compact) {
    const [, year, month, day, hour = '00', minute = '00', second = '00', part = '', zone = 'Z'] = compact;
    full = `${year}-${month}-${day}T${hour}:${minute}:${second}${part.slice(0, 4)}${zone.replace(/(\d\d)(\d\d)$/, '$1:$2')}`;
  }
  const date = new Date(full);
  if (isNaN(date)) throw new Error(`${quoted(String(text))} is not a valid ISODate`);
  return date;
};

globalThis.EJSON = {
  stringify(value, ...options) {
    const given = options.find((o) => o !== null && typeof o === 'object' && !Array.isArray(o)) ?? {};
    const text = $host.extended(value, given.relaxed ?? true);
    const space = options.find((o) => typeof o === 'number' || typeof o === 'string');
    return space === undefined ? text : $host.indented(text, typeof space === 'number' ? ' '.repeat(space) : space);
  },
  parse: (text) => $host.parsed(text),
  serialize: (value, options) => JSON.parse($host.extended(value, options?.relaxed ?? true)),
  deserialize: (value) => $host.parsed(JSON.stringify(value)),
};

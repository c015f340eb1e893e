// The object db of MongoDB's shell: databases, collections, cursors and sessions over one function, $host.run, which
// sends a command and returns its reply.
'use strict';

class MongoServerError extends Error {
  constructor(reply) {
    super(reply.errmsg ?? 'the command failed');
    this.name = 'MongoServerError';
    Object.assign(this, { code: reply.code, codeName: reply.codeName, errorResponse: reply });
    if (reply.keyPattern) Object.assign(this, { keyPattern: reply.keyPattern, keyValue: reply.keyValue });
    if (reply.errInfo) this.errInfo = reply.errInfo;
    if (reply.errorLabels) this.errorLabels = reply.errorLabels;
  }
  hasErrorLabel(label) { return (this.errorLabels ?? []).includes(label); }
}

class MongoBulkWriteError extends Error {
  constructor(first, errors, result) {
    super(first.errmsg);
    this.name = 'MongoBulkWriteError';
    Object.assign(this, { code: first.code, writeErrors: errors, result });
  }
}

class MongoshInvalidInputError extends Error {
  constructor(text) {
    super(text);
    this.name = 'MongoshInvalidInputError';
  }
}
Object.assign(globalThis, { MongoServerError, MongoBulkWriteError, MongoshInvalidInputError });

// number returns a count of a reply as a number: counts may be of 32 or 64 bits.
const number = (x) => (x === undefined || x === null ? 0 : Number(x.big ?? x));

const isDocument = (x) => x !== null && typeof x === 'object' && !Array.isArray(x) && !x._bsontype;

function document(x, what) {
  if (!isDocument(x)) throw new MongoshInvalidInputError(`${what} must be an object`);
  return x;
}

// defined returns the fields of an object that have a value.
function defined(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

// write options of a command.
const concern = (o) => defined({ writeConcern: o.writeConcern, comment: o.comment, let: o.let,
  bypassDocumentValidation: o.bypassDocumentValidation });

// Objects that are shown as a text, and not by their properties, have it as this property.
const shown = Symbol('shown');
$host.shown = shown;

// A Session adds its id, and that of its transaction, to the commands of its databases.
class Session {
  constructor(options = {}) {
    this.options = options;
    this.id = { id: UUID() };
    this.number = 0;
    this.state = 'none';
  }
  getDatabase(name) { return database(name, this); }
  getSessionId() { return this.id; }
  startTransaction(options = {}) {
    if (this.state === 'starting' || this.state === 'running') throw new Error('Transaction already in progress');
    this.number++;
    this.state = 'starting';
    this.transaction = options;
  }
  // dressed returns a command with what the session adds.
  dressed(command) {
    const out = { ...command, lsid: this.id };
    if (this.state !== 'starting' && this.state !== 'running') return out;
    out.txnNumber = Long(this.number);
    out.autocommit = false;
    if (this.state === 'starting') {
      out.startTransaction = true;
      if (this.transaction.readConcern) out.readConcern = this.transaction.readConcern;
      this.state = 'running';
    }
    return out;
  }
  end(command, state) {
    if (this.state !== 'starting' && this.state !== 'running') throw new Error('No transaction started');
    const begun = this.state === 'running';
    if (begun) {
      const reply = $host.run('admin', { [command]: 1, lsid: this.id, txnNumber: Long(this.number), autocommit: false });
      if (number(reply.ok) !== 1 && command === 'commitTransaction') throw new MongoServerError(reply);
    }
    this.state = state;
  }
  commitTransaction() { this.end('commitTransaction', 'committed'); }
  abortTransaction() { this.end('abortTransaction', 'aborted'); }
  withTransaction(body, options) {
    for (let attempt = 1; ; attempt++) {
      this.startTransaction(options);
      try {
        const result = body(this);
        if (this.state === 'starting' || this.state === 'running') this.commitTransaction();
        return result;
      } catch (e) {
        if (this.state === 'starting' || this.state === 'running') this.abortTransaction();
        if (attempt === 10 || !e.hasErrorLabel?.('TransientTransactionError')) throw e;
      }
    }
  }
  endSession() {
    if (this.state === 'starting' || this.state === 'running') this.abortTransaction();
    $host.run('admin', { endSessions: [this.id] });
  }
  get [shown]() { return `{ id: ${this.id.id.hex()} }`; }
}

// A Cursor is sent when its first document is asked for. Its options are the fields of its command.
class Cursor {
  constructor(db, command, namespace) {
    Object.assign(this, { db, command, namespace, started: false, id: 0n, batch: [], at: 0, fn: null, size_: undefined });
  }
  set(name, value) {
    if (this.started) throw new Error('the cursor has begun to be read');
    this.command[name] = value;
    return this;
  }
  start() {
    this.started = true;
    const { cursor } = this.db.command_(this.command);
    this.take(cursor, cursor.firstBatch);
  }
  take(cursor, batch) {
    this.id = cursor.id?.big ?? BigInt(cursor.id ?? 0);
    [, this.namespace] = /^[^.]*\.(.*)$/.exec(cursor.ns) ?? [null, this.namespace];
    this.batch = batch;
    this.at = 0;
  }
  more() {
    const command = defined({ getMore: Long(this.id), collection: this.namespace, batchSize: this.size_ });
    const { cursor } = this.db.command_(command);
    this.take(cursor, cursor.nextBatch);
  }
  hasNext() {
    if (!this.started) this.start();
    while (this.at === this.batch.length && this.id !== 0n) this.more();
    return this.at < this.batch.length;
  }
  // tryNext returns null if the server has no document at present.
  tryNext() {
    if (!this.started) this.start();
    if (this.at === this.batch.length && this.id !== 0n) this.more();
    return this.at < this.batch.length ? this.taken() : null;
  }
  taken() {
    const next = this.batch[this.at];
    this.batch[this.at++] = undefined;
    return this.fn ? this.fn(next) : next;
  }
  next() { return this.hasNext() ? this.taken() : null; }
  *[Symbol.iterator]() {
    while (this.hasNext()) yield this.taken();
  }
  forEach(f) {
    for (const x of this) if (f(x) === false) break;
  }
  map(f) {
    const before = this.fn;
    this.fn = before ? (x) => f(before(x)) : f;
    return this;
  }
  toArray() { return [...this]; }
  itcount() {
    let n = 0;
    for (; this.hasNext(); n++) this.at++;
    return n;
  }
  pretty() { return this; }
  close() {
    if (this.id !== 0n) this.db.command_({ killCursors: this.namespace, cursors: [Long(this.id)] });
    Object.assign(this, { id: 0n, batch: [], at: 0, started: true });
  }
  isClosed() { return this.started && this.id === 0n; }
  isExhausted() { return this.isClosed() && this.at === this.batch.length; }
  objsLeftInBatch() { return this.batch.length - this.at; }
  explain(verbosity = 'queryPlanner') {
    return this.db.command_({ explain: this.command, verbosity: verbosity === true ? 'allPlansExecution' : verbosity });
  }
  batchSize(n) {
    this.size_ = n;
    if (this.command.find) return this.set('batchSize', n);
    return this.set('cursor', { ...this.command.cursor, batchSize: n });
  }
  limit(n) {
    if (n < 0) this.set('singleBatch', true);
    return n === 0 ? this : this.set('limit', Math.abs(n));
  }
  count() {
    const { find, filter, hint, collation } = this.command;
    return number(this.db.command_(defined({ count: find, query: filter, hint, collation })).n);
  }
  size() {
    const { find, filter, hint, collation, limit, skip } = this.command;
    return number(this.db.command_(defined({ count: find, query: filter, hint, collation, limit, skip })).n);
  }
}
for (const [method, field] of Object.entries({ sort: 'sort', skip: 'skip', project: 'projection', hint: 'hint',
  projection: 'projection', collation: 'collation', maxTimeMS: 'maxTimeMS', comment: 'comment', min: 'min', max: 'max',
  readConcern_: 'readConcern', allowDiskUse_: 'allowDiskUse' })) {
  Cursor.prototype[method] = function (value) { return this.set(field, value); };
}
for (const [method, field] of Object.entries({ returnKey: 'returnKey', showRecordId: 'showRecordId',
  noCursorTimeout: 'noCursorTimeout', tailable: 'tailable', allowDiskUse: 'allowDiskUse' })) {
  Cursor.prototype[method] = function (value = true) { return this.set(field, value); };
}
Cursor.prototype.readConcern = function (level) { return this.set('readConcern', { level }); };
for (const ignored of ['readPref', 'addOption', 'maxAwaitTimeMS']) {
  Cursor.prototype[ignored] = function () { return this; };
}
$host.Cursor = Cursor;

// page returns the next documents of a cursor: of one that waits for changes, those that are there.
$host.page = (cursor, most) => {
  const docs = [];
  while (docs.length < most) {
    if (!cursor.live && !cursor.command.tailable) {
      if (!cursor.hasNext()) break;
      docs.push(cursor.taken());
      continue;
    }
    const next = cursor.tryNext();
    if (next === null) break;
    docs.push(next);
  }
  return docs;
};

// options of find and aggregate that are fields of their commands.
const findOptions = (o) => defined({ projection: o.projection, sort: o.sort, skip: o.skip, limit: o.limit, hint: o.hint,
  collation: o.collation, maxTimeMS: o.maxTimeMS, batchSize: o.batchSize, comment: o.comment, let: o.let,
  allowDiskUse: o.allowDiskUse, readConcern: o.readConcern });

const nameOfIndex = (keys) => Object.entries(keys).map(([path, kind]) => path + '_' + kind).join('_');

// A Collection has the methods of a collection. collection(..) adds that its further properties are collections, as in
// db.system.profile.
class Collection {
  constructor(db, name) {
    Object.defineProperty(this, '_db', { value: db });
    Object.defineProperty(this, '_name', { value: name });
  }
  get [shown]() { return this.getFullName(); }
  getName() { return this._name; }
  getDB() { return this._db; }
  getMongo() { return this._db.getMongo(); }
  getFullName() { return this._db.getName() + '.' + this._name; }
  getCollection(name) { return collection(this._db, this._name + '.' + name); }
  toString() { return this.getFullName(); }
  command_(command) { return this._db.command_(command); }
  runCommand(command, more = {}) {
    return this._db.runCommand(typeof command === 'string' ? { [command]: this._name, ...more } : command);
  }

  // Reads.
  find(filter = {}, projection, options = {}) {
    const o = { ...options, ...(projection === undefined ? {} : { projection }) };
    const command = { find: this._name, filter: document(filter, 'the filter'), ...findOptions(o) };
    const cursor = new Cursor(this._db, command, this._name);
    cursor.size_ = o.batchSize;
    return cursor;
  }
  findOne(filter = {}, projection, options = {}) {
    return this.find(filter, projection, { ...options, limit: undefined }).limit(-1).next();
  }
  aggregate(...args) {
    let [pipeline = [], options = {}] = args;
    if (!Array.isArray(pipeline)) [pipeline, options] = [args, {}];
    const { explain, batchSize, cursor, ...rest } = options;
    const command = { aggregate: this._name, pipeline, ...rest, cursor: cursor ?? defined({ batchSize }) };
    const out = new Cursor(this._db, command, this._name);
    out.size_ = batchSize;
    if (explain) return out.explain(explain);
    const last = pipeline[pipeline.length - 1] ?? {};
    if (last.$out || last.$merge) out.hasNext(); // it is run even if nobody reads it
    return out;
  }
  watch(pipeline = [], options = {}) { return watch(this._db, this._name, pipeline, options); }
  countDocuments(filter = {}, options = {}) {
    const { skip, limit, hint, collation, maxTimeMS } = options;
    const pipeline = [{ $match: filter }];
    if (skip !== undefined) pipeline.push({ $skip: skip });
    if (limit !== undefined) pipeline.push({ $limit: limit });
    pipeline.push({ $group: { _id: 1, n: { $sum: 1 } } });
    return number(this.aggregate(pipeline, defined({ hint, collation, maxTimeMS })).next()?.n);
  }
  estimatedDocumentCount(options = {}) { return number(this.command_({ count: this._name, ...options }).n); }
  count(query = {}, options = {}) { return number(this.command_({ count: this._name, query, ...options }).n); }
  distinct(key, query = {}, options = {}) {
    return this.command_({ distinct: this._name, key, query, ...options }).values;
  }
  explain(verbosity = 'queryPlanner') { return new Explainable(this, verbosity); }

  // Writes.
  // write_ runs a command with writes. Its first error is thrown; that of many as MongoBulkWriteError.
  write_(command, many) {
    const reply = this.command_(command);
    const errors = reply.writeErrors ?? (reply.writeConcernError ? [reply.writeConcernError] : []);
    if (errors.length === 0) return reply;
    if (many) throw new MongoBulkWriteError(errors[0], errors, many(reply, errors));
    throw new MongoServerError(errors[0]);
  }
  withId_(d) {
    document(d, 'the document');
    return d._id === undefined ? { _id: ObjectId(), ...d } : d;
  }
  insertOne(d, options = {}) {
    const whole = this.withId_(d);
    this.write_({ insert: this._name, documents: [whole], ...concern(options) });
    return { acknowledged: true, insertedId: whole._id };
  }
  insertMany(docs, options = {}) {
    if (!Array.isArray(docs)) throw new MongoshInvalidInputError('insertMany takes a list of documents');
    const whole = docs.map((d) => this.withId_(d));
    for (let i = 0; i < whole.length; i += 1000) {
      const documents = whole.slice(i, i + 1000);
      const done = (reply) => ({ insertedCount: i + number(reply.n) });
      this.write_({ insert: this._name, documents, ordered: options.ordered ?? true, ...concern(options) }, done);
    }
    const insertedIds = {};
    whole.forEach((d, i) => { insertedIds[i] = d._id; });
    return { acknowledged: true, insertedIds };
  }
  insert(docs, options) {
    return Array.isArray(docs) ? this.insertMany(docs, options) : this.insertMany([docs], options);
  }
  save(d) { return d._id === undefined ? this.insertOne(d) : this.replaceOne({ _id: d._id }, d, { upsert: true }); }
  update_(q, u, multi, o) {
    const { upsert, collation, arrayFilters, hint, sort } = o;
    const one = defined({ q: document(q, 'the filter'), u, multi, upsert, collation, arrayFilters, hint, sort });
    const reply = this.write_({ update: this._name, updates: [one], ...concern(o) });
    const upserted = reply.upserted ?? [];
    return { acknowledged: true, insertedId: upserted.length > 0 ? upserted[0]._id : null,
      matchedCount: number(reply.n) - upserted.length, modifiedCount: number(reply.nModified),
      upsertedCount: upserted.length };
  }
  changes_(u) {
    const first = Array.isArray(u) ? '$' : Object.keys(document(u, 'the update'))[0];
    if (first === undefined || first[0] !== '$') {
      throw new MongoshInvalidInputError('Update document requires atomic operators');
    }
    return u;
  }
  updateOne(q, u, options = {}) { return this.update_(q, this.changes_(u), false, options); }
  updateMany(q, u, options = {}) { return this.update_(q, this.changes_(u), true, options); }
  replaceOne(q, u, options = {}) {
    if ((Object.keys(document(u, 'the replacement'))[0] ?? '')[0] === '$') {
      throw new MongoshInvalidInputError('Replacement document must not contain atomic operators');
    }
    return this.update_(q, u, false, options);
  }
  update(q, u, options = {}) {
    const operators = Array.isArray(u) || (Object.keys(u)[0] ?? '')[0] === '$';
    return this.update_(q, u, operators && options.multi === true, options);
  }
  delete_(q, limit, o) {
    const one = defined({ q: document(q, 'the filter'), limit, collation: o.collation, hint: o.hint });
    const reply = this.write_({ delete: this._name, deletes: [one], ...concern(o) });
    return { acknowledged: true, deletedCount: number(reply.n) };
  }
  deleteOne(q, options = {}) { return this.delete_(q, 1, options); }
  deleteMany(q, options = {}) { return this.delete_(q, 0, options); }
  remove(q, options = {}) {
    const one = options === true || options.justOne === true;
    return this.delete_(q, one ? 1 : 0, options === true ? {} : options);
  }
  findAndModify(options) {
    const { query = {}, ...rest } = options;
    return this.command_({ findAndModify: this._name, query, ...rest }).value ?? null;
  }
  findOneAnd_(query, change, o) {
    const { returnDocument, returnNewDocument, returnOriginal, projection, includeResultMetadata, ...rest } = o;
    const command = { findAndModify: this._name, query, ...change, ...rest };
    if (projection !== undefined) command.fields = projection;
    if (!change.remove) {
      command.new = returnDocument === 'after' || returnNewDocument === true || returnOriginal === false;
    }
    const reply = this.command_(command);
    return includeResultMetadata ? reply : reply.value ?? null;
  }
  findOneAndUpdate(q, u, options = {}) { return this.findOneAnd_(q, { update: this.changes_(u) }, options); }
  findOneAndReplace(q, u, options = {}) { return this.findOneAnd_(q, { update: u }, options); }
  findOneAndDelete(q, options = {}) { return this.findOneAnd_(q, { remove: true }, options); }
  bulkWrite(operations, options = {}) {
    const result = { acknowledged: true, insertedCount: 0, insertedIds: {}, matchedCount: 0, modifiedCount: 0,
      deletedCount: 0, upsertedCount: 0, upsertedIds: {} };
    const errors = [];
    for (const [i, operation] of operations.entries()) {
      const [[kind, o]] = Object.entries(operation);
      try {
        this.bulkOne_(kind, o, i, result);
      } catch (e) {
        if (!(e instanceof MongoServerError)) throw e;
        errors.push({ index: i, code: e.code, errmsg: e.message, op: o });
        if (options.ordered !== false) break;
      }
    }
    if (errors.length > 0) throw new MongoBulkWriteError(errors[0], errors, result);
    return result;
  }
  bulkOne_(kind, o, i, result) {
    switch (kind) {
      case 'insertOne':
        result.insertedIds[i] = this.insertOne(o.document ?? o).insertedId;
        result.insertedCount++;
        return;
      case 'updateOne': case 'updateMany': case 'replaceOne': {
        const r = this[kind](o.filter, o.update ?? o.replacement, o);
        for (const n of ['matchedCount', 'modifiedCount', 'upsertedCount']) result[n] += r[n];
        if (r.upsertedCount > 0) result.upsertedIds[i] = r.insertedId;
        return;
      }
      case 'deleteOne': case 'deleteMany':
        result.deletedCount += this[kind](o.filter, o).deletedCount;
        return;
    }
    throw new MongoshInvalidInputError(`bulkWrite has no operation ${kind}`);
  }

  // Indexes and the collection itself.
  createIndex(keys, options = {}) { return this.createIndexes([keys], options)[0]; }
  ensureIndex(keys, options = {}) { return this.createIndex(keys, options); }
  createIndexes(list, options = {}) {
    const indexes = list.map((key) => ({ key, name: nameOfIndex(key), ...options }));
    this.command_({ createIndexes: this._name, indexes });
    return indexes.map((index) => index.name);
  }
  getIndexes() {
    try {
      return new Cursor(this._db, { listIndexes: this._name }, this._name).toArray();
    } catch (e) {
      if (e.code === 26) return []; // there is no such collection
      throw e;
    }
  }
  getIndexKeys() { return this.getIndexes().map((index) => index.key); }
  dropIndex(index) { return this.command_({ dropIndexes: this._name, index }); }
  dropIndexes(index = '*') { return this.command_({ dropIndexes: this._name, index }); }
  hideIndex(index) { return this.hide_(index, true); }
  unhideIndex(index) { return this.hide_(index, false); }
  hide_(index, hidden) {
    const by = typeof index === 'string' ? { name: index, hidden } : { keyPattern: index, hidden };
    return this.command_({ collMod: this._name, index: by });
  }
  drop() {
    const reply = this._db.runCommand_({ drop: this._name });
    if (number(reply.ok) === 1) return true;
    if (reply.code === 26) return true;
    throw new MongoServerError(reply);
  }
  renameCollection(to, dropTarget = false) {
    const db = this._db.getName();
    return this._db.getSiblingDB('admin').command_({ renameCollection: db + '.' + this._name, to: db + '.' + to,
      dropTarget });
  }
  exists() { return this._db.getCollectionInfos({ name: this._name })[0] ?? null; }
  options() { return this.exists()?.options; }
  isCapped() { return this.exists()?.options.capped ?? false; }
  stats(options = {}) { return this.command_({ collStats: this._name, ...options }); }
  dataSize() { return number(this.stats().size); }
  storageSize() { return number(this.stats().storageSize); }
  totalIndexSize() { return number(this.stats().totalIndexSize); }
  totalSize() { return this.storageSize() + this.totalIndexSize(); }
  validate(options = {}) { return this.command_({ validate: this._name, ...options }); }
}

function watch(db, name, pipeline, options) {
  const { batchSize, ...rest } = options;
  const command = { aggregate: name, pipeline: [{ $changeStream: rest }, ...pipeline], cursor: defined({ batchSize }) };
  const cursor = Object.assign(new Cursor(db, command, name), { live: true });
  cursor.start();
  return cursor;
}

// Explainable runs the methods of a collection as explanations.
class Explainable {
  constructor(of, verbosity) { Object.assign(this, { of, verbosity }); }
  command_(explain) {
    const verbosity = this.verbosity === true ? 'allPlansExecution' : this.verbosity;
    return this.of.command_({ explain, verbosity });
  }
  find(...args) {
    const cursor = this.of.find(...args), self = this;
    const explain = () => self.command_(cursor.command);
    return Object.assign(cursor, { next: explain, finish: explain, toArray: explain, explained: explain });
  }
  aggregate(...args) {
    const pipeline = Array.isArray(args[0]) ? args[0] : args;
    return this.command_({ aggregate: this.of._name, pipeline, cursor: {} });
  }
  count(query = {}) { return this.command_({ count: this.of._name, query }); }
  distinct(key, query = {}) { return this.command_({ distinct: this.of._name, key, query }); }
  update(q, u, o = {}) { return this.command_({ update: this.of._name, updates: [{ q, u, ...o }] }); }
  remove(q, o = {}) { return this.command_({ delete: this.of._name, deletes: [{ q, limit: o.justOne ? 1 : 0 }] }); }
  findAndModify(o) { return this.command_({ findAndModify: this.of._name, ...o }); }
}

// further makes the properties that an object lacks by a function of their names. A call of the object itself, which a
// method that there isn't ends in (db.people.finde()), is an error with its name.
function further(object, name, make) {
  const call = () => { throw new TypeError(`${name} is not a function`); };
  return new Proxy(call, {
    get(_, key) {
      if (typeof key === 'symbol' || key in object) return object[key];
      return key === '_bsontype' || key === 'toJSON' || key === 'then' ? undefined : make(key);
    },
    set(_, key, value) { object[key] = value; return true; },
    has(_, key) { return key in object; },
    deleteProperty(_, key) { return delete object[key]; },
    ownKeys() { return Reflect.ownKeys(object); },
    getOwnPropertyDescriptor(_, key) {
      const d = Reflect.getOwnPropertyDescriptor(object, key);
      return d && { ...d, configurable: true };
    },
    defineProperty(_, key, d) { return Reflect.defineProperty(object, key, d); },
    getPrototypeOf() { return Object.getPrototypeOf(object); },
  });
}

function collection(db, name) {
  if (typeof name !== 'string' || name === '') throw new MongoshInvalidInputError('a collection needs a name');
  const c = new Collection(db, name);
  return further(c, 'db.' + name, (key) => collection(db, name + '.' + key));
}

class Database {
  constructor(name, session) {
    Object.defineProperty(this, '_name', { value: name });
    Object.defineProperty(this, '_session', { value: session });
  }
  get [shown]() { return this._name; }
  toString() { return this._name; }
  getName() { return this._name; }
  getMongo() { return mongo; }
  getSession() { return this._session; }
  getSiblingDB(name) { return database(name, this._session); }
  getSisterDB(name) { return this.getSiblingDB(name); }
  getCollection(name) { return collection(this, name); }

  // runCommand_ returns a reply, also one with an error; command_ throws the error.
  runCommand_(command) { return $host.run(this._name, this._session ? this._session.dressed(command) : command); }
  command_(command) {
    const reply = this.runCommand_(command);
    if (number(reply.ok) !== 1) throw new MongoServerError(reply);
    return reply;
  }
  runCommand(command, more = {}) {
    return this.command_(typeof command === 'string' ? { [command]: 1, ...more } : command);
  }
  adminCommand(command) { return this.getSiblingDB('admin').runCommand(command); }
  aggregate(pipeline, options = {}) {
    const { batchSize, ...rest } = options;
    return new Cursor(this, { aggregate: 1, pipeline, ...rest, cursor: defined({ batchSize }) }, '$cmd.aggregate');
  }
  watch(pipeline = [], options = {}) { return watch(this, 1, pipeline, options); }
  getCollectionInfos(filter = {}, nameOnly = false) {
    return new Cursor(this, { listCollections: 1, filter, nameOnly }, '$cmd.listCollections').toArray();
  }
  getCollectionNames() { return this.getCollectionInfos({}, true).map((c) => c.name); }
  createCollection(name, options = {}) { return this.command_({ create: name, ...options }); }
  createView(name, viewOn, pipeline, options = {}) {
    return this.command_({ create: name, viewOn, pipeline, ...options });
  }
  dropDatabase() { return this.command_({ dropDatabase: 1 }); }
  stats(scale = 1) { return this.command_(typeof scale === 'object' ? { dbStats: 1, ...scale } : { dbStats: 1, scale }); }
  hello() { return this.command_({ hello: 1 }); }
  isMaster() { return this.command_({ isMaster: 1 }); }
  version() { return this.adminCommand({ buildInfo: 1 }).version; }
  serverBuildInfo() { return this.adminCommand({ buildInfo: 1 }); }
  serverStatus(options = {}) { return this.adminCommand({ serverStatus: 1, ...options }); }
  hostInfo() { return this.adminCommand({ hostInfo: 1 }); }
  listCommands() { return this.command_({ listCommands: 1 }).commands; }
  auth(user, password) {
    const { user: name, pwd } = isDocument(user) ? user : { user, pwd: password };
    $host.login(name, pwd);
    return { ok: 1 };
  }
  createUser(user, writeConcern) {
    const { user: name, ...rest } = document(user, 'the user');
    return this.command_({ createUser: name, ...rest, ...defined({ writeConcern }) });
  }
  updateUser(name, changes) { return this.command_({ updateUser: name, ...changes }); }
  changeUserPassword(name, pwd) { return this.command_({ updateUser: name, pwd }); }
  dropUser(name) { return this.command_({ dropUser: name }); }
  dropAllUsers() { return this.command_({ dropAllUsersFromDatabase: 1 }); }
  getUsers(options = {}) { return this.command_({ usersInfo: 1, ...options }); }
  getUser(name, options = {}) { return this.command_({ usersInfo: name, ...options }).users[0] ?? null; }
  grantRolesToUser(name, roles) { return this.command_({ grantRolesToUser: name, roles }); }
  revokeRolesFromUser(name, roles) { return this.command_({ revokeRolesFromUser: name, roles }); }
  createRole(role) {
    const { role: name, ...rest } = role;
    return this.command_({ createRole: name, ...rest });
  }
  updateRole(name, changes) { return this.command_({ updateRole: name, ...changes }); }
  dropRole(name) { return this.command_({ dropRole: name }); }
  getRoles(options = {}) { return this.command_({ rolesInfo: 1, ...options }).roles; }
  getRole(name, options = {}) { return this.command_({ rolesInfo: name, ...options }).roles[0] ?? null; }
}

function database(name, session) {
  if (typeof name !== 'string' || name === '' || /[/\\. "$\0]/.test(name)) {
    throw new MongoshInvalidInputError(`${JSON.stringify(name)} is no name of a database`);
  }
  const d = further(new Database(name, session), 'db', (key) => collection(d, key));
  return d;
}

// The connection. There is one: to the server that the shell was started for.
const mongo = {
  getDB: (name) => database(name),
  getDBs: () => database('admin').command_({ listDatabases: 1 }),
  getDBNames: () => mongo.getDBs().databases.map((d) => d.name),
  startSession: (options) => new Session(options),
  getURI: () => $host.address,
  setReadPref() {},
  watch: (pipeline = [], options = {}) => watch(database('admin'), 1, pipeline, { ...options, allChangesForCluster: true }),
  get [shown]() { return $host.address; },
};

// here refuses the address of another server. It returns the database that an address names.
function here(address = '') {
  const [, host, name] = /^(?:mongodb:\/\/)?(?:[^@/]*@)?([^/?]*)(?:\/([^?]*))?/.exec(address);
  const [bare] = host.split(':');
  if (!['', 'localhost', '127.0.0.1', $host.address.split(':')[0]].includes(bare)) {
    throw new MongoshInvalidInputError(`${host} is another server: this shell has one connection`);
  }
  return name || 'test';
}

Object.assign(globalThis, {
  Mongo: function (address) {
    here(address);
    return mongo;
  },
  connect: (address) => database(here(address)),
  use(name) {
    globalThis.db = database(name);
    return 'switched to db ' + name;
  },
  rs: {
    // The server is a replica set of one member from its start, so there is nothing to initiate: programs that start
    // MongoDB for tests call this, and give up on an error.
    initiate(config = {}) {
      const reply = database('admin').runCommand_({ replSetInitiate: config });
      if (number(reply.ok) !== 1 && reply.codeName !== 'AlreadyInitialized') throw new MongoServerError(reply);
      return { ok: 1 };
    },
    status: () => db.adminCommand({ replSetGetStatus: 1 }),
    conf: () => db.adminCommand({ replSetGetConfig: 1 }).config,
    config: () => rs.conf(),
    isMaster: () => db.adminCommand({ isMaster: 1 }),
    hello: () => db.adminCommand({ hello: 1 }),
  },
  print(...values) { $host.print(values.map((v) => (typeof v === 'string' ? v : $host.inspect(v))).join(' ')); },
  printjson(value) { $host.print($host.inspect(value)); },
  tojson: (value) => EJSON.stringify(value),
  sleep(ms) { $host.sleep(ms); },
  quit(code = 0) { $host.quit(code); },
  exit(code = 0) { $host.quit(code); },
  version: () => $host.version,
  isInteractive: () => $host.interactive,
  load(file) {
    $host.load(file);
    return true;
  },
});
globalThis.console = { log: print, info: print, debug: print, warn: print, error: print };
globalThis.db = database($host.database);

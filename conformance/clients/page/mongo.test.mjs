// What the editor of MongoDB sends for a text of the shell. An option or a method that it doesn't know is refused: left
// out, it would change other documents than was meant.

import test from 'node:test';
import assert from 'node:assert/strict';

Object.assign(globalThis, { window: {}, sessionStorage: { getItem: () => null } });
const { commandOf } = await import('../../../cmd/orrery/explorer/web/lang/mongo.js');

for (const [text, want] of [
  ['find()', { find: 'c', filter: {}, batchSize: 100 }],
  ["db.x.find({a: 1}, {b: 1}).sort({a: 1}).limit(3).collation({locale: 'en'}).toArray()",
    { find: 'x', filter: { a: 1 }, projection: { b: 1 }, sort: { a: 1 }, collation: { locale: 'en' }, limit: 3, batchSize: 100 }],
  ['find({}, {}, {skip: 2})', { find: 'c', filter: {}, projection: {}, batchSize: 100, skip: 2 }],
  ['find({}).count()', /method count is not known/],
  ['find({}, {}, {explain: 1})', /option explain is not known/],
  ["find({a: 'x\\0y'})", { find: 'c', filter: { a: 'x\0y' }, batchSize: 100 }],
  ['aggregate([{$limit: 1}], {allowDiskUse: true})',
    { aggregate: 'c', cursor: { batchSize: 100 }, pipeline: [{ $limit: 1 }], allowDiskUse: true }],
  ['aggregate({$match: {}}, {$limit: 1})', { aggregate: 'c', cursor: { batchSize: 100 }, pipeline: [{ $match: {} }, { $limit: 1 }] }],
  ['countDocuments({}, {limit: 5})', { count: 'c', query: {}, limit: 5 }],
  ['insertOne()', /wants 1 or more arguments/],
  ['deleteMany()', /wants 1 or more arguments/],
  ["deleteMany({a: 'x'}, {collation: {locale: 'en', strength: 2}})",
    { delete: 'c', deletes: [{ q: { a: 'x' }, limit: 0, collation: { locale: 'en', strength: 2 } }] }],
  ['deleteOne({a: 1}).sort({b: 1})', /method sort is not known/],
  ['updateOne({a: 1})', /wants 2 or more arguments/],
  ['updateOne({a: 1}, {b: 2})', /operators such as \$set/],
  ['updateMany({}, {})', /operators such as \$set/],
  ['replaceOne({a: 1}, {$set: {b: 2}})', /operators such as \$set/],
  ['replaceOne({a: 1}, {b: 2})', { update: 'c', updates: [{ q: { a: 1 }, u: { b: 2 }, multi: false }] }],
  ['updateMany({}, [{$set: {b: 1}}])', { update: 'c', updates: [{ q: {}, u: [{ $set: { b: 1 } }], multi: true }] }],
  ["updateMany({}, {$set: {'a.$[e]': 1}}, {upsert: 1, arrayFilters: [{e: 1}]})",
    { update: 'c', updates: [{ q: {}, u: { $set: { 'a.$[e]': 1 } }, multi: true, upsert: 1, arrayFilters: [{ e: 1 }] }] }],
]) {
  test(text, () => {
    if (want instanceof RegExp) assert.throws(() => commandOf(text, 'c'), want);
    else assert.deepEqual(JSON.parse(commandOf(text, 'c').command), want);
  });
}

// Adds the query functions to the collection object. They read the collection page by page and apply the program's
// functions to the documents.
(function (collection, tail, requestError, append) {
  'use strict';
  const parse = JSON.parse;
  const stringify = JSON.stringify;
  const readSize = 100; // documents of one read
  const defaultSize = 100; // results of one page

  const bad = (text) => new Error(ErrorCodes.BadRequest, text);

  // order compares values of the same or of different types, as ORDER BY does.
  const ranks = { undefined: 0, boolean: 2, number: 3, string: 4, object: 6 };
  const rank = (v) => {
    if (v === null) return 1;
    return Array.isArray(v) ? 5 : ranks[typeof v] ?? 0;
  };
  const order = (a, b) => {
    const by = rank(a) - rank(b);
    if (by !== 0 || rank(a) > 4) return by;
    if (a < b) return -1;
    return a > b ? 1 : 0;
  };
  const sorted = (list, fn, sign) => list.map((item) => ({ item, key: fn(item) }))
    .sort((a, b) => sign * order(a.key, b.key)).map((pair) => pair.item);
  const flat = (list, shallow) => list.flat(shallow ? 1 : Infinity);
  const present = (list) => list.filter((v) => v !== undefined);

  const needs = (name, argument, value, type) => {
    if (typeof value !== type) {
      throw bad(`The "${argument}" parameter of "${name}" must be of type "${type}". ` +
        `Actual type is: "${typeof value}".`);
    }
  };

  // own returns the arguments without the collection, which may be the first one, as may undefined in its place.
  const own = (args) => (args[0] === undefined || args[0] === collection ? args.slice(1) : args);

  // Each entry reads the stage's own arguments. It returns how many these are, what the stage makes of a list, and
  // whether it needs the whole list.
  const stages = {
    filter(args) {
      needs('filter', 'predicate', args[0], 'function');
      return { used: 1, apply: (list) => list.filter((doc) => args[0](doc)) };
    },
    map(args) {
      needs('map', 'transformation', args[0], 'function');
      return { used: 1, apply: (list) => present(list.map((doc) => args[0](doc))) };
    },
    pluck(args) {
      needs('pluck', 'propertyName', args[0], 'string');
      return { used: 1, apply: (list) => present(list.map((doc) => doc?.[args[0]])) };
    },
    flatten(args) {
      const given = typeof args[0] === 'boolean';
      return { used: given ? 1 : 0, apply: (list) => flat(list, given && args[0]) };
    },
    // A second function is always the result selector: a callback can only follow options.
    unwind(args) {
      needs('unwind', 'innerCollectionSelector', args[0], 'function');
      if (args[0].length !== 1) throw bad('"collectionSelector" requires one argument.');
      const pairs = typeof args[1] === 'function';
      if (pairs && args[1].length < 2) throw bad('"resultSelector" requires two arguments.');
      const inner = (doc) => {
        const list = args[0](doc);
        return Array.isArray(list) ? list : [];
      };
      return {
        used: pairs || (args[1] === undefined && args.length > 2) ? 2 : 1,
        apply: (list) => list.flatMap((doc) => (pairs ? present(inner(doc).map((e) => args[1](doc, e))) : inner(doc))),
      };
    },
    sortBy(args) {
      return sort(args, 1);
    },
    sortByDescending(args) {
      return sort(args, -1);
    },
  };
  const sort = (args, sign) => {
    const given = typeof args[0] === 'function';
    return { used: given ? 1 : 0, whole: true, apply: (list) => sorted(list, given ? args[0] : (v) => v, sign) };
  };

  // A continuation names a page of the collection, and how many results of it have been given.
  const position = (options) => {
    if (!options.continuation) return { skip: 0 };
    try {
      const at = parse(options.continuation);
      if (Number.isInteger(at.skip) && at.skip >= 0) return at;
    } catch {
      // refused below
    }
    throw bad('The continuation is invalid.');
  };

  // run answers whether the first read was accepted.
  const run = (chain, { options, callback }) => {
    const size = options.pageSize > 0 ? options.pageSize : defaultSize;
    const whole = chain.some((stage) => stage.whole);
    const results = [];
    let { page, skip } = position(options);
    let all = [];

    const finish = (next) => {
      if (callback === undefined) return append(results);
      return callback(undefined, results, next === undefined ? {} : { continuation: stringify(next) });
    };
    // take adds results of a page. It returns the position of the rest, if there is one.
    const take = (list) => {
      const end = skip + size - results.length;
      results.push(...list.slice(skip, end));
      return list.length > end ? { page, skip: end } : undefined;
    };
    const applied = (list) => chain.reduce((value, stage) => stage.apply(value), list);

    const failed = (error) => {
      if (callback === undefined) throw error;
      return callback(error, undefined, {});
    };
    // received goes on with a page of the collection. The callback gets what the program's functions throw, too.
    const received = (error, docs, info) => {
      if (error) return failed(error);
      if (whole) {
        all = all.concat(docs);
        if (info.continuation && read(info.continuation)) return undefined;
        if (info.continuation) return failed(requestError(408, 'The script has no time left to sort.'));
      }
      let rest;
      try {
        rest = take(applied(whole ? all : docs));
      } catch (thrown) {
        return failed(thrown);
      }
      if (rest || !info.continuation) return finish(rest);
      page = info.continuation;
      skip = 0;
      if (results.length >= size || !read(page)) return finish({ page, skip });
      return undefined;
    };
    const read = (continuation) =>
      collection.readDocuments(collection.getSelfLink(), { pageSize: readSize, continuation }, received);
    return read(whole ? undefined : page);
  };

  // refused is what a query that wasn't accepted returns: every further link of a chain returns it again.
  const refused = { isAccepted: false };
  const accepted = (ok) => (ok ? { isAccepted: true } : refused);

  const chained = (list) => {
    const link = { isAccepted: true };
    for (const name of Object.keys(stages)) {
      link[name] = (...all) => {
        const args = own(all);
        const stage = stages[name](args);
        for (const extra of args.slice(stage.used)) {
          if (typeof extra === 'function') {
            throw bad('When using "chain", the callback parameter can only be provided on the "value" function.');
          }
          if (extra !== undefined && extra !== null) {
            throw bad('When using "chain", options can only be provided on the call to the "value" function.');
          }
        }
        return chained([...list, stage]);
      };
    }
    link.value = (first, second) =>
      accepted(run(list, tail(typeof first === 'function' ? [second, first] : [first, second], 0)));
    return link;
  };

  for (const name of Object.keys(stages)) {
    refused[name] = () => refused;
    collection[name] = (...all) => {
      const args = own(all);
      const stage = stages[name](args);
      return accepted(run([stage], tail(args, stage.used)));
    };
  }
  refused.value = () => refused;
  collection.chain = () => chained([]);
  // Functions see the variables around them, so proxy has nothing to hand to them.
  Object.defineProperty(collection, 'proxy', {
    value(captures) {
      return Object.assign(Object.create(this), { captures });
    },
  });
})

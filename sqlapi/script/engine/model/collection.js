// Makes the collection object: each method checks its arguments, hands an operation to the host, and keeps the callback
// for the answer. Answers come in the order of the operations.
(function (host, selfLink, altLink) {
  'use strict';
  const parse = JSON.parse;
  const stringify = JSON.stringify;
  const waiting = [];
  let first = 0;

  const bad = (text) => new Error(ErrorCodes.BadRequest, text);
  const trimmed = (link) => (link.endsWith('/') ? link.slice(0, -1) : link);
  const own = [trimmed(selfLink), trimmed(altLink)];

  // checkedLink returns a link of the collection, or of one of its documents, without a slash at its end.
  const checkedLink = (link, kind) => {
    const invalid = () => bad(`Invalid ${kind} link: "${link}".`);
    if (typeof link !== 'string') throw invalid();
    const text = trimmed(link);
    const parts = text.split('/');
    const item = kind === 'document';
    if (parts.length !== (item ? 6 : 4) || parts[0] !== 'dbs' || parts[2] !== 'colls' || parts.includes('') ||
        (item && parts[4] !== 'docs')) {
      throw invalid();
    }
    if (!own.includes(parts.slice(0, 4).join('/'))) {
      throw bad('Function is not allowed to operate on resources outside current collection. Make sure that the ' +
        `link provided, "${link}", belongs to current collection.`);
    }
    return text;
  };

  // checkedDocument returns the JSON of a document. A document without an id gets one, unless the options forbid it.
  const checkedDocument = (body, options, makesId) => {
    const text = 'The document body must be an object or a string representing a JSON-serialized object.';
    let object = body;
    let json;
    if (typeof body === 'string') {
      try {
        object = parse(body);
      } catch {
        throw bad(text);
      }
      json = body;
    }
    if (typeof object !== 'object' || object === null || Array.isArray(object)) throw bad(text);
    if (makesId && !object.id && !options.disableAutomaticIdGeneration) {
      object = Object.assign({}, object, { id: host.uuid() });
      json = undefined;
    }
    return json ?? stringify(object);
  };

  const checkedQuery = (query) => {
    const spec = typeof query === 'string' ? { query } : query;
    if (typeof spec !== 'object' || spec === null || typeof spec.query !== 'string') {
      throw bad('The query must be a string or an object with the property "query".');
    }
    return stringify({ query: spec.query, parameters: spec.parameters });
  };

  const typed = (name, value, type) => {
    if (value !== undefined && value !== null && typeof value !== type) {
      throw bad(`The "${name}" parameter must be of type "${type}". Actual type is: "${typeof value}".`);
    }
  };

  // tail returns the options and the callback, both of which may be left out, from the arguments at i on.
  const tail = (args, i) => {
    let options = args[i];
    let callback = args[i + 1];
    if (typeof options === 'function' && (callback === undefined || callback === null)) {
      callback = options;
      options = undefined;
    }
    typed('options', options, 'object');
    typed('callback', callback, 'function');
    return { options: options || {}, callback: callback || undefined };
  };

  const enough = (name, args, least) => {
    if (args.length < least) {
      throw bad(`The function "${name}" requires at least ${least} argument(s) but was called with ` +
        `${args.length} argument(s).`);
    }
  };

  // send hands an operation to the host. It returns false if there is no time or room for it.
  const send = (name, link, body, query, options, callback, bare) => {
    if (!host.send(name, link, body, query, stringify(options))) return false;
    waiting.push({ callback, bare });
    return true;
  };

  const method = (name, kind, least, perform) => function () {
    enough(name, arguments, least);
    const link = checkedLink(arguments[0], kind);
    const { options, callback } = tail(arguments, least);
    return perform(link, arguments[1], options, callback);
  };
  const reads = (name, kind) => method(name, kind, 1, (link, _, options, callback) =>
    send(name, link, undefined, undefined, options, callback));
  const writes = (name, kind, makesId) => method(name, kind, 2, (link, body, options, callback) =>
    send(name, link, checkedDocument(body, options, makesId), undefined, options, callback));

  const collection = {
    getSelfLink: () => selfLink,
    getAltLink: () => altLink,
    createDocument: writes('createDocument', 'collection', true),
    upsertDocument: writes('upsertDocument', 'collection', true),
    replaceDocument: writes('replaceDocument', 'document', false),
    readDocument: reads('readDocument', 'document'),
    readDocuments: reads('readDocuments', 'collection'),
    deleteDocument: method('deleteDocument', 'document', 1, (link, _, options, callback) =>
      send('deleteDocument', link, undefined, undefined, options, callback, true)),
    queryDocuments: method('queryDocuments', 'collection', 2, (link, query, options, callback) =>
      send('queryDocuments', link, undefined, checkedQuery(query), options, callback)),
  };
  const unsupported = ['readAttachment', 'readAttachments', 'queryAttachments', 'createAttachment',
    'upsertAttachment', 'replaceAttachment', 'deleteAttachment'];
  for (let i = 0; i < unsupported.length; i++) { // an iterator's prototypes would be made first
    const name = unsupported[i];
    collection[name] = () => { throw bad(`The function "${name}" is not supported.`); };
  }

  const requestError = (status, text) => {
    const error = new Error(status, text);
    error.body = text;
    return error;
  };

  // deliver hands an answer to the callback of the oldest operation.
  const deliver = (status, text, body, options, etag) => {
    const { callback, bare } = waiting[first++];
    if (first === waiting.length) {
      waiting.length = 0;
      first = 0;
    }
    if (status !== 0) {
      const error = requestError(status, text);
      if (callback === undefined) throw error;
      if (bare) return callback(error, {});
      return callback(error, undefined, {});
    }
    if (callback === undefined) return undefined;
    const info = options ?? {};
    if (etag) info.etag = etag;
    if (bare) return callback(undefined, info);
    return callback(undefined, info.notModified ? undefined : body, info);
  };

  return { collection, deliver, tail, requestError };
})

// Puts together what procedures and triggers see: getContext(), __ and console. It returns what the engine calls.
//
// A function is an object with properties, and to make one takes longer than most programs need for what it does. So
// there are few functions here, and what many programs don't use is made when it is first used.
(function (host, globals) {
  'use strict';
  const { define, lazy } = globals;
  const { parse, stringify } = JSON;
  const itemLimit = 2 << 20;
  const replyLimit = 4 << 20;
  const { kind } = host;

  // message makes the object of a request or a response: for each property P of values getP, and setP and appendP if it
  // can be written. The body is parsed when it is first read. limit is the most bytes of a value as JSON.
  const message = ({ body, headers }, values, writable, limit) => {
    const written = [];
    if (body !== undefined) {
      let value;
      let parsed = false;
      Object.defineProperty(values, 'Body', {
        enumerable: true,
        get() {
          if (!parsed) value = parse(body);
          parsed = true;
          return value;
        },
        set(v) {
          parsed = true;
          value = v;
        },
      });
    }
    const byName = Object.create(null);
    for (let i = 0; i < headers.length; i += 2) byName[headers[i].toLowerCase()] = headers[i + 1];

    const assign = (name, value, appends) => {
      let old = appends ? values[name] : undefined;
      if (appends && old === undefined) old = ''; // a body that isn't set is an empty text
      if (typeof old === 'string') value = old.concat(value);
      else if (old !== undefined) value = old + value;
      if (host.size(stringify(value)) > limit) {
        throw new Error(ErrorCodes.RequestEntityTooLarge,
          `Resulting message would be too large because of "${name}". Return from script with current message and ` +
          'use continuation token to call the script again or modify your script.');
      }
      values[name] = value;
      if (!written.includes(name)) written.push(name);
    };
    const check = (name) => {
      if (writable.includes(name)) return;
      if (Object.hasOwn(values, name) || String(name).toLowerCase() in byName) {
        throw new Error(ErrorCodes.Forbidden, `Not a writable property: ${name}`);
      }
      throw new Error(ErrorCodes.BadRequest, `Cannot set new values: ${name}`);
    };

    const object = {
      getValue: (name) => (Object.hasOwn(values, name) ? values[name] : byName[String(name).toLowerCase()]),
      setValue: (name, value) => { check(name); assign(name, value); },
      appendValue: (name, value) => { check(name); assign(name, value, true); },
    };
    const names = Object.keys(values);
    for (let i = 0; i < names.length; i++) { // an iterator's prototypes would be made first
      const name = names[i];
      object['get' + name] = () => values[name];
      if (!writable.includes(name)) continue;
      object['set' + name] = (value) => assign(name, value);
      object['append' + name] = (value) => assign(name, value, true);
    }
    // result is the JSON of the body, undefined if it was never written.
    const result = () => {
      if (!written.includes('Body')) return undefined;
      assign('Body', values.Body); // an object may have grown since
      return stringify(values.Body);
    };
    return { object, result };
  };

  const responds = kind !== 'pre-trigger';
  const made = { request: undefined, response: undefined, collection: undefined };
  // part returns a part of the context.
  const part = (name) => {
    if (made[name] !== undefined) return made[name];
    if (name === 'request') {
      made.request = message(host.request, { Body: undefined, OperationType: host.request.operation },
        responds ? [] : ['Body'], itemLimit);
    } else if (name === 'response') {
      const { headers } = host.response;
      const values = { Body: undefined };
      if (kind === 'post-trigger') {
        values.OperationType = host.request.operation;
        values.ResourceQuotaCurrentUsage = headers[headers.indexOf('x-ms-resource-usage') + 1 || headers.length];
        values.MaxResourceQuota = headers[headers.indexOf('x-ms-resource-quota') + 1 || headers.length];
      }
      made.response = message(host.response, values, ['Body'], replyLimit);
    } else {
      made.collection = host.model('collection')(host, host.self, host.alt);
      const { collection, tail, requestError } = made.collection;
      host.model('query')(collection, tail, requestError, (results) => {
        if (!responds) {
          throw new Error(ErrorCodes.BadRequest, 'The callback function must be provided for scenarios, such as ' +
            'pre-trigger, when response object is not available.');
        }
        const { getBody, setBody, appendBody } = part('response').object;
        if (getBody() === undefined) setBody(results);
        else appendBody(stringify(results));
      });
      let spatial;
      Object.defineProperty(collection, 'spatial',
        { enumerable: true, get: () => spatial ??= host.model('spatial')(host) });
    }
    return made[name];
  };

  const context = {
    getCollection: () => part('collection').collection,
    getRequest: () => part('request').object,
    abort: (error) => host.abort(error),
  };
  if (responds) context.getResponse = () => part('response').object;
  define('getContext', () => context);
  let log;
  define('console', { log: (text, ...args) => (log ??= host.model('console')(host))(text, ...args) });
  lazy('__', () => {
    const shorthand = Object.create(part('collection').collection);
    shorthand.request = part('request').object;
    if (responds) shorthand.response = part('response').object;
    return shorthand;
  });

  return {
    deliver: (...answer) => part('collection').deliver(...answer),
    // left returns the body that the program leaves, as JSON; undefined if it has set none.
    left: (name) => made[name]?.result(),
  };
})

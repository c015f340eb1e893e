// Puts together what procedures and triggers see: getContext(), __ and console. It returns what the engine calls.
(function (host, lazy) {
  'use strict';
  const parse = JSON.parse;
  const itemLimit = 2 << 20;
  const replyLimit = 4 << 20;
  const once = (make) => {
    let value;
    return () => {
      if (value === undefined) value = make();
      return value;
    };
  };

  // message makes the object of a request or a response. Its body is parsed when it is first read.
  const message = ({ body, headers }, values, writable, limit) => {
    let value;
    let parsed = body === undefined;
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
    const byName = {};
    for (let i = 0; i < headers.length; i += 2) byName[headers[i].toLowerCase()] = headers[i + 1];
    return host.model('messages')(values, writable, byName, limit, host.size);
  };
  const { kind } = host;
  const operation = () => host.request.operation;
  const request = once(() => message(host.request, { Body: undefined, OperationType: operation() },
    kind === 'pre-trigger' ? ['Body'] : [], itemLimit));
  const quotas = (headers) => {
    const value = (name) => headers[headers.indexOf(name) + 1 || headers.length];
    return {
      OperationType: operation(),
      ResourceQuotaCurrentUsage: value('x-ms-resource-usage'),
      MaxResourceQuota: value('x-ms-resource-quota'),
    };
  };
  const response = kind === 'pre-trigger' ? undefined : once(() => message(host.response,
    { Body: undefined, ...(kind === 'post-trigger' ? quotas(host.response.headers) : {}) }, ['Body'], replyLimit));

  const append = (results) => {
    if (response === undefined) return;
    const { getBody, setBody, appendBody } = response().object;
    if (getBody() === undefined) setBody(results);
    else appendBody(JSON.stringify(results));
  };
  const made = once(() => {
    const parts = host.model('collection')(host, host.self, host.alt);
    host.model('query')(parts.collection, parts.tail, parts.requestError, append);
    const spatial = once(() => host.model('spatial')(host));
    Object.defineProperty(parts.collection, 'spatial', { enumerable: true, get: spatial });
    return parts;
  });

  const context = {
    getCollection: () => made().collection,
    getRequest: () => request().object,
    abort: (error) => host.abort(error),
  };
  if (response !== undefined) context.getResponse = () => response().object;
  lazy('getContext', () => () => context);
  lazy('__', () => {
    const shorthand = Object.create(made().collection);
    shorthand.request = request().object;
    if (response !== undefined) shorthand.response = response().object;
    return shorthand;
  });
  lazy('console', () => host.model('console')(host));

  return {
    deliver: (...answer) => made().deliver(...answer),
    // left returns the body that the program leaves, as JSON; undefined if it has set none.
    left: (name) => {
      if (name === 'request') return request().result('Body');
      return response === undefined ? undefined : response().result('Body');
    },
  };
})

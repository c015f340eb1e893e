// Defines the globals that every program has. They are made when they are first used: most programs use few of them, and
// making all would take longer than a short program. It returns the functions that define more, at once and lazily.
(function (host) {
  'use strict';
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  const lazy = (name, make) => Object.defineProperty(globalThis, name, {
    configurable: true,
    get() {
      const value = make(name);
      define(name, value);
      return value;
    },
    set(value) {
      define(name, value);
    },
  });
  const Native = Error;
  const make = (name) => (name === 'Error' ? host.model('errors')(Native, host.stack) : Object.freeze({
    BadRequest: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    RequestEntityTooLarge: 413,
    RetryWith: 449,
    InternalServerError: 500,
  }));
  lazy('Error', make);
  lazy('ErrorCodes', make);
  return { define, lazy };
})

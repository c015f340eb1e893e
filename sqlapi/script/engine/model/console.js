// Makes the console. It is silent unless the request asks for the log.
(function (host) {
  'use strict';
  const substituted = (text, args) => {
    let next = 0;
    return text.replace(/%[s%]/g, (found) => {
      if (found === '%%') return '%';
      return next < args.length ? String(args[next++]) : found;
    });
  };
  const log = (text, ...args) => {
    if (!host.logs) return;
    if (args.length > 0 && typeof text !== 'string') {
      throw new Error(ErrorCodes.BadRequest,
        'First argument to console.log should be a string containing zero or more substitution strings.');
    }
    host.log(args.length === 0 ? String(text) : substituted(text, args));
  };
  return log;
})

// Makes the Error that takes a number before the message, and whose stack traces have the service's form.
(function (Native, trace) {
  'use strict';
  const construct = Reflect.construct;

  const Extended = function (first, second) {
    const numbered = arguments.length > 1 && typeof first === 'number';
    const error = construct(Native, numbered ? [second] : arguments, new.target || Extended);
    if (numbered) error.number = first;
    Object.defineProperty(error, 'stack',
      { value: trace(error.stack), writable: true, configurable: true });
    return error;
  };
  Object.defineProperty(Extended, 'name', { value: 'Error', configurable: true });
  Extended.prototype = Native.prototype;
  Object.defineProperty(Extended.prototype, 'constructor', { value: Extended, writable: true, configurable: true });
  return Extended;
})

// Makes the request and the response object: for each property P getP, and setP and appendP if it can be written.
//
// values has the properties by name, headers the other readable values by name in lower case. limit is the most bytes of
// a value as JSON; size measures it.
(function (values, writable, headers, limit, size) {
  'use strict';
  const stringify = JSON.stringify;
  const written = [];

  const check = (name) => {
    if (!Object.hasOwn(values, name)) throw new Error(ErrorCodes.BadRequest, `Cannot set new values: ${name}`);
    if (!writable.includes(name)) {
      throw new Error(ErrorCodes.Forbidden, `Not a writable property: ${name}`);
    }
  };
  const assign = (name, value) => {
    if (size(stringify(value)) > limit) {
      throw new Error(ErrorCodes.RequestEntityTooLarge,
        `Resulting message would be too large because of "${name}". Return from script with current message and ` +
        'use continuation token to call the script again or modify your script.');
    }
    values[name] = value;
    if (!written.includes(name)) written.push(name);
  };
  const append = (name, value) => {
    const old = values[name];
    if (old === undefined) return assign(name, value);
    assign(name, typeof old === 'string' ? old.concat(value) : old + value);
  };

  const object = {
    getValue: (name) =>
      (Object.hasOwn(values, name) ? values[name] : headers[String(name).toLowerCase()]),
    setValue: (name, value) => { check(name); assign(name, value); },
    appendValue: (name, value) => { check(name); append(name, value); },
  };
  const names = Object.keys(values);
  for (let i = 0; i < names.length; i++) { // an iterator's prototypes would be made first
    const name = names[i];
    object['get' + name] = () => values[name];
    if (!writable.includes(name)) continue;
    object['set' + name] = (value) => assign(name, value);
    object['append' + name] = (value) => append(name, value);
  }

  // result is the JSON of a property, undefined if it was never written.
  const result = (name) => {
    if (!written.includes(name)) return undefined;
    assign(name, values[name]); // an object may have grown since
    return stringify(values[name]);
  };
  return { object, result };
})

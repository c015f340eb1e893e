// Makes __.spatial. Geometries are GeoJSON objects.
(function (host) {
  'use strict';
  const text = (value) => JSON.stringify(value) ?? 'null';
  const pair = (name) => (a, b) => host.spatial(name, text(a), text(b));
  return {
    distance: pair('distance'),
    intersects: pair('intersects'),
    within: pair('within'),
    isValid: (a) => host.invalid(text(a)) === undefined,
    isValidDetailed: (a) => {
      const reason = host.invalid(text(a));
      return reason === undefined ? { valid: true } : { valid: false, reason };
    },
  };
})

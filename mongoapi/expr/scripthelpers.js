// What MongoDB's server gives to programs besides the types: functions of its manual's page on $where, and those that
// its pages on mapReduce use. Only a program that names one of them gets them, because each call reads them anew.
function assert(ok, text) { if (!ok) { doassert("assert failed" + (text === undefined ? "" : " : " + text)); } }
function doassert(text) { throw new Error(typeof text === "function" ? text() : text); }
function gc() {}
function printjson() {}
function printjsononeline() {}
function isNumber(v) { return typeof v === "number"; }
function isString(v) { return typeof v === "string"; }
function isObject(v) { return typeof v === "object" && v !== null; }
function sleep(ms) { for (var end = Date.now() + Number(ms); Date.now() < end;) {} }
function DBRef(coll, id, db) {
	var r = { $ref: coll, $id: id };
	if (db !== undefined) { r.$db = db; }
	return r;
}
function DBPointer(ns, id) { return new Other$({ $dbPointer: { $ref: ns, $id: encode$(id) } }); }
function HexData(type, hex) { return new BinData(type, base64$(hex)); }
function MD5(hex) { return HexData(5, hex); }
function UUID(text) {
	var hex = text === undefined ? hex$(32) : String(text).replace(/-/g, "");
	if (text === undefined) {
		hex = hex.substring(0, 12) + "4" + hex.substring(13, 16) + "89ab".charAt(hex.charCodeAt(16) & 3) + hex.substring(17);
	}
	if (!/^[0-9a-f]{32}$/i.test(hex)) { throw new Error("Invalid UUID string: " + text); }
	return HexData(4, hex);
}
function base64$(hex) {
	var abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", out = "";
	for (var i = 0; i < hex.length; i += 6) {
		var part = hex.substring(i, i + 6), n = parseInt((part + "0000").substring(0, 6), 16);
		for (var k = 0; k < 4; k++) { out += k * 2 > part.length ? "=" : abc.charAt(n >> 18 - 6 * k & 63); }
	}
	return out;
}
function hex_md5(text) {
	var s = unescape(encodeURIComponent(text)), n = s.length, words = [], sum = "", i;
	for (i = 0; i < n; i++) { words[i >> 2] |= s.charCodeAt(i) << i % 4 * 8; }
	words[n >> 2] |= 128 << n % 4 * 8;
	var last = (n + 8 >> 6) * 16 + 14;
	words[last] = n << 3;
	var turns = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]], h = [1732584193, -271733879,
		-1732584194, 271733878];
	for (var at = 0; at <= last; at += 16) {
		var a = h[0], b = h[1], c = h[2], d = h[3];
		for (i = 0; i < 64; i++) {
			var round = i >> 4, f = [b & c | ~b & d, d & b | ~d & c, b ^ c ^ d, c ^ (b | ~d)][round];
			var word = words[at + [i, 5 * i + 1, 3 * i + 5, 7 * i][round] % 16] | 0;
			f = f + a + word + Math.floor(Math.abs(Math.sin(i + 1)) * 4294967296) | 0;
			var by = turns[round][i & 3];
			a = d; d = c; c = b;
			b = b + (f << by | f >>> 32 - by) | 0;
		}
		h = [h[0] + a | 0, h[1] + b | 0, h[2] + c | 0, h[3] + d | 0];
	}
	for (i = 0; i < 16; i++) { sum += (256 + (h[i >> 2] >> i % 4 * 8 & 255)).toString(16).substring(1); }
	return sum;
}
function tojsononeline(v) { return tojson(v, "", true); }
function tojson(v, indent, nolint) {
	indent = indent || "";
	switch (typeof v) {
	case "string": return JSON.stringify(v);
	case "object": break;
	case "function": if (v === MinKey || v === MaxKey) { return '{ "$' + v.name.replace("M", "m") + '" : 1 }'; }
	default: return String(v);
	}
	if (v === null) { return "null"; }
	if (v instanceof Date) { return 'ISODate("' + v.toISOString().replace(".000Z", "Z") + '")'; }
	if (v instanceof RegExp || [ObjectId, NumberLong, NumberInt, NumberDecimal, Timestamp, BinData].some(function (t) {
		return v instanceof t;
	})) { return v.toString(); }
	var s = tojsonObject(v, indent, nolint);
	return indent === "" && nolint !== false && s.length < 80 ? s.replace(/[\t\r\n]+/g, " ") : s;
}
function tojsonObject(v, indent, nolint) {
	indent = indent || "";
	var list = Array.isArray(v), line = nolint ? " " : "\n", inner = nolint ? "" : indent + "\t";
	if (list && v.length === 0) { return "[ ]"; }
	var parts = Object.keys(v).filter(function (k) { return list || typeof v[k] !== "function"; }).map(function (k) {
		return inner + (list ? "" : JSON.stringify(k) + " : ") + tojson(v[k], inner || " ", nolint);
	});
	return (list ? "[" : "{") + line + (parts.length ? parts.join("," + line) + line : "") + (nolint ? "" : indent) +
		(list ? "]" : "}");
}
[["contains", function (a, v) { return a.indexOf(v) >= 0; }],
	["unique", function (a) { return a.filter(function (v, i) { return a.indexOf(v) === i; }); }],
	["sum", function (a) { return a.length ? a.reduce(function (x, y) { return x + y; }) : null; }],
	["avg", function (a) { return a.length ? Array.sum(a) / a.length : null; }],
	["stdDev", function (a) {
		var avg = Array.avg(a);
		return Math.sqrt(Array.sum(a.map(function (v) { return Math.pow(v - avg, 2); })) / a.length);
	}],
	["tojson", function (a, indent, nolint) { return tojsonObject(a, indent, nolint); }],
].forEach(function (x) { Object.defineProperty(Array, x[0], { value: x[1], writable: true, configurable: true }); });

// The types of BSON in JavaScript, and their form between the server and a program. It is the beginning of the body of
// every function that the server runs for the MongoDB API.
function ObjectId(s) { if (!(this instanceof ObjectId)) { return new ObjectId(s); } this.str = String(s); }
ObjectId.prototype.toString = function () { return 'ObjectId("' + this.str + '")'; };
ObjectId.prototype.valueOf = function () { return this.str; };
ObjectId.prototype.equals = function (o) { return o instanceof ObjectId && o.str === this.str; };
ObjectId.prototype.getTimestamp = function () { return new Date(parseInt(this.str.substring(0, 8), 16) * 1000); };
function NumberLong(s) { if (!(this instanceof NumberLong)) { return new NumberLong(s); } this.text = String(s); }
NumberLong.prototype.valueOf = function () { return Number(this.text); };
NumberLong.prototype.toNumber = NumberLong.prototype.valueOf;
NumberLong.prototype.toString = function () { return 'NumberLong("' + this.text + '")'; };
function NumberInt(n) { if (!(this instanceof NumberInt)) { return new NumberInt(n); } this.n = Number(n) | 0; }
NumberInt.prototype.valueOf = function () { return this.n; };
function NumberDecimal(s) {
	if (!(this instanceof NumberDecimal)) { return new NumberDecimal(s); }
	this.text = String(s);
}
NumberDecimal.prototype.valueOf = function () { return Number(this.text); };
function ISODate(s) { return s === undefined ? new Date() : new Date(s); }
function Other$(v) { this.v = v; }
function tojson(v) { return JSON.stringify(v); }
function tojsononeline(v) { return JSON.stringify(v); }
function print() {}
function printjson() {}
function printjsononeline() {}
function isNumber(v) { return typeof v === "number"; }
function isString(v) { return typeof v === "string"; }
function isObject(v) { return typeof v === "object" && v !== null; }
function doassert(msg) { throw new Error(typeof msg === "function" ? msg() : msg); }
function assert(b, msg) { if (!b) { doassert("assert failed" + (msg === undefined ? "" : " : " + msg)); } }
function sleep(ms) { for (var end = Date.now() + Number(ms); Date.now() < end;) {} }
function decode$(v) {
	if (v === null || typeof v !== "object") { return v; }
	if (Array.isArray(v)) { return v.map(decode$); }
	var names = Object.keys(v), first = names[0];
	if (names.length === 1 && first.charAt(0) === "$") {
		var x = v[first];
		switch (first) {
		case "$date": return new Date(Number(x));
		case "$oid": return new ObjectId(x);
		case "$numberLong": return new NumberLong(x);
		case "$numberDouble": return Number(x);
		case "$numberDecimal": return new NumberDecimal(x);
		case "$regularExpression":
			try { return new RegExp(x.pattern, x.options.replace(/[^gimsuy]/g, "")); } catch (e) { return new Other$(v); }
		case "$undefined": return undefined;
		}
		return new Other$(v);
	}
	var o = {};
	names.forEach(function (n) { o[n] = decode$(v[n]); });
	return o;
}
function encode$(v) {
	switch (typeof v) {
	case "number": return { $numberDouble: String(v) };
	case "undefined": case "function": case "symbol": return { $undefined: true };
	case "bigint": return { $numberLong: String(v) };
	case "object": break;
	default: return v;
	}
	if (v === null) { return null; }
	if (Array.isArray(v)) { return v.map(encode$); }
	if (v instanceof Date) { return { $date: { $numberLong: String(v.getTime()) } }; }
	if (v instanceof RegExp) { return { $regularExpression: { pattern: v.source, options: v.flags.replace(/[^ims]/g, "") } }; }
	if (v instanceof ObjectId) { return { $oid: v.str }; }
	if (v instanceof NumberLong) { return { $numberLong: v.text }; }
	if (v instanceof NumberInt) { return { $numberInt: String(v.n) }; }
	if (v instanceof NumberDecimal) { return { $numberDecimal: v.text }; }
	if (v instanceof Other$) { return v.v; }
	if (v instanceof Number || v instanceof String || v instanceof Boolean) { return encode$(v.valueOf()); }
	var o = {};
	Object.keys(v).forEach(function (n) {
		if (v[n] !== undefined && typeof v[n] !== "function") { o[n] = encode$(v[n]); }
	});
	return o;
}

// The types of BSON in JavaScript, and their form between the server and a program. It is the beginning of the body of
// every function that the server runs for the MongoDB API.
function hex$(n) {
	var s = "";
	while (s.length < n) { s += "0123456789abcdef".charAt(Math.floor(Math.random() * 16)); }
	return s;
}
function ObjectId(s) {
	if (!(this instanceof ObjectId)) { return new ObjectId(s); }
	this.str = s === undefined ? Math.floor(Date.now() / 1000).toString(16) + hex$(16) : String(s).toLowerCase();
	if (!/^[0-9a-f]{24}$/.test(this.str)) { throw new Error("invalid object id: " + s); }
}
ObjectId.prototype.toString = function () { return 'ObjectId("' + this.str + '")'; };
ObjectId.prototype.valueOf = function () { return this.str; };
ObjectId.prototype.equals = function (o) { return o instanceof ObjectId && o.str === this.str; };
ObjectId.prototype.getTimestamp = function () { return new Date(parseInt(this.str.substring(0, 8), 16) * 1000); };
function NumberLong(s) { if (!(this instanceof NumberLong)) { return new NumberLong(s); } this.text = String(s); }
NumberLong.prototype.valueOf = function () { return Number(this.text); };
NumberLong.prototype.toNumber = NumberLong.prototype.valueOf;
NumberLong.prototype.toString = function () {
	return "NumberLong(" + (Number(this.text) === (this.text | 0) ? this.text : '"' + this.text + '"') + ")";
};
function NumberInt(n) { if (!(this instanceof NumberInt)) { return new NumberInt(n); } this.n = Number(n) | 0; }
NumberInt.prototype.valueOf = function () { return this.n; };
function NumberDecimal(s) {
	if (!(this instanceof NumberDecimal)) { return new NumberDecimal(s); }
	this.text = String(s);
}
NumberDecimal.prototype.valueOf = function () { return Number(this.text); };
NumberDecimal.prototype.toString = function () { return 'NumberDecimal("' + this.text + '")'; };
NumberInt.prototype.toNumber = NumberInt.prototype.valueOf;
NumberInt.prototype.toString = function () { return "NumberInt(" + this.n + ")"; };
function Timestamp(t, i) {
	if (!(this instanceof Timestamp)) { return new Timestamp(t, i); }
	this.t = Number(t) || 0;
	this.i = Number(i) || 0;
}
Timestamp.prototype.getTime = function () { return this.t; };
Timestamp.prototype.getInc = function () { return this.i; };
Timestamp.prototype.toString = function () { return "Timestamp(" + this.t + ", " + this.i + ")"; };
function BinData(type, text) {
	if (!(this instanceof BinData)) { return new BinData(type, text); }
	this.type = type;
	this.text = text;
}
BinData.prototype.subtype = function () { return this.type; };
BinData.prototype.base64 = function () { return this.text; };
BinData.prototype.length = function () { return this.text.replace(/=/g, "").length * 3 >> 2; };
BinData.prototype.toString = function () { return "BinData(" + this.type + ',"' + this.text + '")'; };
function MinKey() { return MinKey; }
function MaxKey() { return MaxKey; }
function ISODate(s) { return s === undefined ? new Date() : new Date(s); }
function Other$(v) { this.v = v; }
function print() {}
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
		case "$timestamp": return new Timestamp(x.t, x.i);
		case "$binary": return new BinData(parseInt(x.subType, 16), x.base64);
		case "$minKey": return MinKey;
		case "$maxKey": return MaxKey;
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
	case "function": if (v === MinKey) { return { $minKey: 1 }; } else if (v === MaxKey) { return { $maxKey: 1 }; }
	case "undefined": case "symbol": return { $undefined: true };
	case "bigint": return { $numberLong: String(v) };
	case "object": break;
	default: return v;
	}
	if (v === null) { return null; }
	if (Array.isArray(v)) { return v.map(encode$); }
	if (v instanceof Date) { return { $date: { $numberLong: String(v.getTime()) } }; }
	if (v instanceof RegExp) {
		return { $regularExpression: { pattern: v.source, options: v.flags.replace(/[^ims]/g, "") } };
	}
	if (v instanceof ObjectId) { return { $oid: v.str }; }
	if (v instanceof NumberLong) { return { $numberLong: v.text }; }
	if (v instanceof NumberInt) { return { $numberInt: String(v.n) }; }
	if (v instanceof NumberDecimal) { return { $numberDecimal: v.text }; }
	if (v instanceof Timestamp) { return { $timestamp: { t: v.t, i: v.i } }; }
	if (v instanceof BinData) { return { $binary: { base64: v.text, subType: v.type.toString(16) } }; }
	if (v instanceof Other$) { return v.v; }
	if (v instanceof Number || v instanceof String || v instanceof Boolean) { return encode$(v.valueOf()); }
	var o = {};
	Object.keys(v).forEach(function (n) {
		var kept = typeof v[n] === "function" ? v[n] === MinKey || v[n] === MaxKey : v[n] !== undefined;
		if (kept) { o[n] = encode$(v[n]); }
	});
	return o;
}
// function$ makes a function of a text, as MongoDB does: of a function, of the body of one, which has a return at its
// top level, or of statements, whose value is that of the last one.
function function$(text$) {
	text$ = text$.replace(/[\s;]+$/, "");
	if (/^\s*(async\s+)?(\(*\s*function\b|\([^()]*\)\s*=>|[\w$]+\s*=>)/.test(text$)) {
		try {
			var made$ = eval("(" + text$ + "\n)");
			if (typeof made$ === "function") { return made$; }
		} catch (e) { /* statements that begin with a function */ }
	}
	made$ = eval("(function () {" + text$ + "\n})");
	try { eval("if (false) {" + text$ + "\n}"); } catch (e) { return made$; }
	return function () { return eval(text$); };
}

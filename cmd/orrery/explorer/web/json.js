// JSON without loss. JSON.parse turns 9007199254740993 into 9007199254740992, 1.0 into 1, and drops the first of two
// members with one name. Here a value remembers where it stands in the text, so each can be shown as it was written.
//
//   {"a": 1.0, "a": 9007199254740993}
//    parse -> Obj with two members, both numbers with their text
//    format -> the same members and digits, with line breaks

/** A number as its text. */
export class Num {
	/** @param {string} text */
	constructor(text) {
		this.text = text;
	}
	toString() {
		return this.text;
	}
	get value() {
		return Number(this.text);
	}
}

/** An object: members in order, also several with one name. */
export class Obj {
	constructor() {
		/** @type {[string, any][]} */ this.members = [];
		this.start = 0;
		this.end = 0;
	}
	/** The last member with a name. @param {string} name */
	get(name) {
		for (let i = this.members.length - 1; i >= 0; i--) if (this.members[i][0] === name) return this.members[i][1];
		return undefined;
	}
	keys() {
		return this.members.map((m) => m[0]);
	}
}

/** An array with its place. */
export class Arr extends Array {
	constructor() {
		super();
		this.start = 0;
		this.end = 0;
	}
	static get [Symbol.species]() {
		return Array;
	}
}

export class JSONError extends Error {
	/** @param {string} message @param {number} at @param {string} text */
	constructor(message, at, text) {
		const before = text.slice(0, at),
			line = before.split('\n').length,
			col = at - before.lastIndexOf('\n');
		super(`${message} in line ${line}, column ${col}`);
		this.at = at;
		this.line = line;
	}
}

const token =
	/[ \t\n\r]*(?:([{}[\]:,])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))|(true|false|null)\b)/y;

/**
 * Calls f with each token: its text, where it starts, and its kind: p (punctuation), s (text), n (number), w (word).
 * @param {string} text @param {(t: string, at: number, kind: string) => void} f
 */
function scan(text, f) {
	token.lastIndex = 0;
	let at = 0;
	for (;;) {
		const m = token.exec(text);
		if (!m) break;
		at = token.lastIndex;
		const t = m[1] || m[2] || m[3] || m[4];
		f(t, at - t.length, m[1] ? 'p' : m[2] ? 's' : m[3] ? 'n' : 'w');
		token.lastIndex = at;
	}
	while (at < text.length && ' \t\n\r'.includes(text[at])) at++;
	if (at < text.length)
		throw new JSONError(`JSON can't go on with ${JSON.stringify(text.slice(at, at + 12))}`, at, text);
}

/** Parses a text. Numbers become Num, objects Obj, arrays Arr. @param {string} text @returns {any} */
export function parse(text) {
	/** @type {any[]} */ const open = [];
	/** @type {any} */ let root;
	/** @type {string|null} */ let name = null;
	// what may come: v a value, V a value or ], k a name, K a name or }, ':' , ',' a comma or the end, '' nothing
	let want = 'v';
	/** @param {any} v */
	const put = (v) => {
		const top = open[open.length - 1];
		if (top === undefined) root = v;
		else if (top instanceof Obj) {
			top.members.push([/** @type {string} */ (name), v]);
			name = null;
		} else top.push(v);
		want = open.length ? ',' : '';
	};
	scan(text, (t, at, kind) => {
		const fail = () => {
			throw new JSONError(`${JSON.stringify(t.slice(0, 20))} is not expected`, at, text);
		};
		if (kind === 'p') {
			if ((t === '{' || t === '[') && (want === 'v' || want === 'V')) {
				const v = t === '{' ? new Obj() : new Arr();
				v.start = at;
				put(v);
				open.push(v);
				want = t === '{' ? 'K' : 'V';
			} else if (
				(t === '}' && (want === ',' || want === 'K') && open[open.length - 1] instanceof Obj) ||
				(t === ']' && (want === ',' || want === 'V') && Array.isArray(open[open.length - 1]))
			) {
				open.pop().end = at + 1;
				want = open.length ? ',' : '';
			} else if (t === ':' && want === ':') want = 'v';
			else if (t === ',' && want === ',') want = open[open.length - 1] instanceof Obj ? 'k' : 'v';
			else fail();
		} else if (kind === 's' && (want === 'k' || want === 'K')) {
			name = JSON.parse(t);
			want = ':';
		} else if (want === 'v' || want === 'V')
			put(
				kind === 's'
					? JSON.parse(t)
					: kind === 'n'
						? new Num(t)
						: t === 'true'
							? true
							: t === 'false'
								? false
								: null,
			);
		else fail();
	});
	if (want !== '') throw new JSONError('The JSON is not complete', text.length, text);
	return root;
}

/**
 * Lays a JSON text out on several lines; every token stays as it is. In a long text, what is short is on one line,
 * because the time of an editor grows with the number of lines.
 * @param {string} text
 */
export function format(text) {
	/** @type {string[]} */ const out = [];
	/** @type {[number, number][]} */ const open = []; // of each open bracket: its place in out, and the characters so far
	const dense = text.length > 100000;
	let last = '',
		size = 0;
	const line = () => out.push('\n' + '  '.repeat(open.length));
	scan(text, (t, _, kind) => {
		const closes = kind === 'p' && (t === '}' || t === ']');
		/** @type {any} */ let from;
		if (closes) {
			from = open.pop() || [0, 0];
			if (last !== '{' && last !== '[') line();
		} else if (last === '{' || last === '[' || last === ',') line();
		if (kind === 'p' && (t === '{' || t === '[')) open.push([out.length, size]);
		out.push(t === ':' ? ': ' : t);
		size += t.length;
		if (closes && dense && size - from[1] < 100) out.push(out.splice(from[0]).join('').replace(/\n */g, ' '));
		last = kind === 'p' ? t : 'x';
	});
	return out.join('');
}

/** Takes the blanks between the tokens of a JSON text away. @param {string} text */
export function compact(text) {
	/** @type {string[]} */ const out = [];
	scan(text, (t) => out.push(t));
	return out.join('');
}

/** Writes a value on one line. @param {any} v @returns {string} */
export function print(v) {
	if (v instanceof Num) return v.text;
	if (v instanceof Obj) return '{' + v.members.map(([k, x]) => JSON.stringify(k) + ':' + print(x)).join(',') + '}';
	if (Array.isArray(v)) return '[' + v.map(print).join(',') + ']';
	return v === undefined ? '' : JSON.stringify(v);
}

/** The value as people read it in a cell: a text without quotes. @param {any} v */
export function show(v) {
	return typeof v === 'string' ? v : v === undefined ? '' : print(v);
}

/**
 * The value as a cell of a grid has it: what Table and MongoDB wrap to keep its type, without the wrapper.
 *
 *	{"$t":18,"$v":"00000000000000000042"}   42
 *	{"$date":"2026-01-01T00:00:00Z"}        2026-01-01T00:00:00Z
 *
 * @param {any} v
 */
export function plain(v) {
	if (!(v instanceof Obj)) return show(v);
	const [[k, x] = ['', null], [k2, y] = ['', null]] = v.members,
		n = show(y);
	if (v.members.length === 1 && /^\$(date|oid|uuid|number[A-Z]\w+)$/.test(k)) return plain(x);
	if (v.members.length !== 2 || k !== '$t' || k2 !== '$v') return show(v);
	if (!/^-?\d{19,20}$/.test(n)) return n;
	if (show(x) === '18') return String(BigInt(n));
	// the 100 ns since the year 1; what is below a millisecond isn't shown
	const at = new Date(Number(BigInt(n) / 10000n - 62135596800000n));
	return show(x) === '9' && Number(at) < 2.6e14 ? at.toISOString() : n;
}

/** The value at a path such as /address/city. @param {any} v @param {string} path */
export function at(v, path) {
	for (const p of path.split('/').slice(1)) {
		if (!(v instanceof Obj)) return undefined;
		v = v.get(p.replace(/^"|"$/g, ''));
	}
	return v;
}

/** A JSON text in ASCII, for a header. @param {string} s */
export function ascii(s) {
	return s.replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

/** The parts of a JSON text for colouring: [kind, text]. @param {string} text @returns {[string, string][]} */
export function colours(text) {
	/** @type {[string, string][]} */ const out = [];
	const re = /("(?:[^"\\\n]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;
	let at = 0;
	for (let m; (m = re.exec(text)); ) {
		if (m.index > at) out.push(['', text.slice(at, m.index)]);
		if (m[1]) {
			out.push([m[2] ? 'key' : 'str', m[1]]);
			if (m[2]) out.push(['', m[2]]);
		} else out.push([m[3] ? 'num' : 'word', m[0]]);
		at = re.lastIndex;
	}
	if (at < text.length) out.push(['', text.slice(at)]);
	return out;
}

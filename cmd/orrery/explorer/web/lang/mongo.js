// Commands of MongoDB, as one writes them in its shell: find({..}).sort({..}), aggregate([..]), updateMany(..), or a
// command as a document. Literals become Extended JSON without going through numbers of JavaScript.

import { mongo as send, ApiError } from '../api.js';
import { parse, print, Obj, Num } from '../json.js';
import { painter, word } from './words.js';

const methods =
	'find findOne aggregate countDocuments distinct insertOne insertMany updateOne updateMany replaceOne deleteOne deleteMany sort limit skip hint'.split(
		' ',
	);
const operators =
	'$match $group $project $sort $limit $skip $unwind $lookup $count $addFields $set $unset $facet $eq $ne $gt $gte $lt $lte $in $nin $exists $regex $and $or $not $elemMatch $sum $avg $min $max $first $last $push $inc'.split(
		' ',
	);

/** Reads literals of the shell. @param {string} text */
function reader(text) {
	let at = 0;
	/** @param {string} what @returns {never} */
	const fail = (what) => {
		throw new ApiError(
			0,
			'Syntax',
			`${what} at character ${at + 1}: ${JSON.stringify(text.slice(at, at + 16))}`,
			'Correct the text and run it again.',
		);
	};
	const blank = () => {
		const m = /^(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*/.exec(text.slice(at));
		at += m ? m[0].length : 0;
	};
	/** @param {RegExp} re */
	const take = (re) => {
		blank();
		const m = re.exec(text.slice(at));
		if (m && m.index === 0) {
			at += m[0].length;
			return m;
		}
		return null;
	};
	/** @param {string} s */
	const is = (s) => {
		blank();
		if (text.startsWith(s, at)) {
			at += s.length;
			return true;
		}
		return false;
	};
	const string = () => {
		const m = take(/^(["'\x60])((?:[^\\]|\\[^])*?)\1/);
		if (!m) return null;
		return JSON.stringify(
			m[2].replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^])/g, (_, e) =>
				/^[ux]./.test(e)
					? String.fromCharCode(parseInt(e.slice(1), 16))
					: ({ n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', 0: '\0', '\n': '' }[/** @type {'n'} */ (e)] ?? e),
			),
		);
	};
	/** A value as Extended JSON. @returns {string} */
	const value = () => {
		blank();
		if (is('{')) return object();
		if (is('[')) {
			const out = [];
			while (!is(']')) {
				out.push(value());
				if (!is(',')) {
					if (!is(']')) fail('A comma or ] is missing');
					break;
				}
			}
			return '[' + out.join(',') + ']';
		}
		const s = string();
		if (s !== null) return s;
		let m = take(/^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/);
		if (m)
			return m[0]
				.replace(/^\+/, '')
				.replace(/^(-?)\./, '$10.')
				.replace(/\.(?!\d)/, '.0');
		m = take(/^\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\]|\\.)*\])+)\/([a-z]*)/);
		if (m) return JSON.stringify({ $regularExpression: { pattern: m[1], options: [...m[2]].sort().join('') } });
		m = take(/^(?:new\s+)?([A-Za-z_$][\w$]*)/);
		if (!m) return fail('A value is missing');
		if (m[1] === 'true' || m[1] === 'false' || m[1] === 'null') return m[1];
		if (m[1] === 'undefined') return 'null';
		if (m[1] === 'Infinity' || m[1] === 'NaN') return `{"$numberDouble":"${m[1]}"}`;
		if (m[1] === 'MinKey' || m[1] === 'MaxKey') {
			if (is('(')) is(')');
			return `{"$${m[1][0].toLowerCase()}${m[1].slice(1)}":1}`;
		}
		if (!is('(')) return fail('The name ' + m[1] + ' is not known');
		const args = [];
		while (!is(')')) {
			args.push(value());
			if (!is(',')) {
				if (!is(')')) fail('A ) is missing');
				break;
			}
		}
		const a = args[0] === undefined ? undefined : String(args[0]),
			q = (/** @type {string|undefined} */ x) => (x && x[0] === '"' ? x : JSON.stringify(x));
		switch (m[1]) {
			case 'ObjectId':
				return `{"$oid":${q(a)}}`;
			case 'ISODate':
			case 'Date':
				return `{"$date":${a === undefined ? JSON.stringify(new Date().toISOString()) : a[0] === '"' ? JSON.stringify(new Date(JSON.parse(a)).toISOString()) : `{"$numberLong":"${a}"}`}}`;
			case 'NumberLong':
			case 'Long':
				return `{"$numberLong":${q(a)}}`;
			case 'NumberInt':
			case 'Int32':
				return `{"$numberInt":${q(a)}}`;
			case 'Double':
				return `{"$numberDouble":${q(a)}}`;
			case 'NumberDecimal':
			case 'Decimal128':
				return `{"$numberDecimal":${q(a)}}`;
			case 'UUID':
				return `{"$uuid":${q(a)}}`;
			case 'Timestamp':
				return `{"$timestamp":{"t":${args[0]},"i":${args[1]}}}`;
		}
		return fail('The function ' + m[1] + ' is not known');
	};
	const object = () => {
		const out = [];
		while (!is('}')) {
			const name = string() ?? JSON.stringify((take(/^[A-Za-z_$][\w$.]*|^\d+/) || fail('A name is missing'))[0]);
			if (!is(':')) fail('A : is missing');
			out.push(name + ':' + value());
			if (!is(',')) {
				if (!is('}')) fail('A comma or } is missing');
				break;
			}
		}
		return '{' + out.join(',') + '}';
	};
	return {
		value,
		is,
		take,
		string,
		fail,
		end: () => {
			blank();
			return at >= text.length || (is(';') && (blank(), at >= text.length));
		},
		begin: () => {
			blank();
			return text[at];
		},
	};
}

/** The fewest arguments of methods: without one a method would change other documents than was meant. */
const least = /** @type {Record<string, number>} */ ({
	distinct: 1,
	insertOne: 1,
	insertMany: 1,
	updateOne: 2,
	updateMany: 2,
	replaceOne: 2,
	deleteOne: 1,
	deleteMany: 1,
});

/** The methods that may follow a find, besides those without an effect here. */
const ofFind = 'project projection sort skip limit hint collation maxTimeMS ';

/** The command for a text of the shell. @param {string} text @param {string} coll @returns {{command: string, one?: boolean}} */
export function commandOf(text, coll) {
	const r = reader(text);
	if (r.begin() === '{') {
		const command = r.value();
		if (!r.end()) r.fail('The command has ended');
		return { command };
	}
	let target = coll;
	if (r.take(/^db\b/)) {
		const g = r.take(/^\.\s*getCollection\s*\(/);
		if (g) {
			const s = r.string();
			if (s === null || !r.is(')')) r.fail('A name is missing');
			target = JSON.parse(/** @type {string} */ (s));
		} else {
			const m = r.take(/^\.\s*([A-Za-z_][\w]*(?:\.[A-Za-z_][\w]*)*?)(?=\s*\.\s*[A-Za-z]+\s*\()/);
			if (m) target = m[1];
		}
		if (!r.is('.')) r.fail('A method is missing');
	}
	/** @type {[string, string[]][]} */ const calls = [];
	do {
		const m = r.take(/^([A-Za-z]+)\s*\(/);
		if (!m) return r.fail('A method such as find(..) is missing');
		const args = [];
		while (!r.is(')')) {
			args.push(r.value());
			if (!r.is(',')) {
				if (!r.is(')')) r.fail('A ) is missing');
				break;
			}
		}
		calls.push([m[1], args]);
	} while (r.is('.'));
	if (!r.end()) r.fail('The text goes on');
	const [[name, args], ...more] = calls,
		c = JSON.stringify(target),
		last = (/** @type {string} */ n) => more.filter((x) => x[0] === n).pop()?.[1][0];
	const obj = (/** @type {number} */ i) => args[i] ?? '{}';
	// an option or a method that is left out would change what the command does
	const options = (/** @type {number} */ i, /** @type {string} */ known) => {
		const o = parse(obj(i));
		if (!(o instanceof Obj)) return r.fail('Options are a document');
		return o.members
			.map(([k, v]) => {
				if (!known.split(' ').includes(k)) r.fail(`The option ${k} is not known here`);
				return `,"${k}":${print(v)}`;
			})
			.join('');
	};
	for (const [m] of more)
		if (!((name === 'find' ? ofFind : '') + 'toArray pretty').split(' ').includes(m))
			r.fail(`The method ${m} is not known here`);
	if (args.length < (least[name] || 0)) r.fail(`${name} wants ${least[name]} or more arguments`);
	switch (name) {
		case 'find':
		case 'findOne': {
			const parts = [`"find":${c}`, `"filter":${obj(0)}`];
			const projection = last('project') ?? last('projection') ?? args[1];
			if (projection) parts.push(`"projection":${projection}`);
			for (const n of ['sort', 'skip', 'hint', 'collation', 'maxTimeMS']) if (last(n)) parts.push(`"${n}":${last(n)}`);
			const limit = name === 'findOne' ? '1' : last('limit');
			if (limit) parts.push(`"limit":${limit}`);
			return { command: `{${parts.join(',')},"batchSize":100${options(2, ofFind)}}` };
		}
		case 'aggregate':
			return {
				command: `{"aggregate":${c},"cursor":{"batchSize":100},"pipeline":${args[0]?.[0] === '{' ? `[${args}]` : (args[0] ?? '[]') + options(1, 'allowDiskUse collation hint let maxTimeMS')}}`,
			};
		case 'countDocuments':
		case 'count':
			return { command: `{"count":${c},"query":${obj(0)}${options(1, ofFind)}}` };
		case 'estimatedDocumentCount':
			return { command: `{"count":${c}}` };
		case 'distinct':
			return { command: `{"distinct":${c},"key":${args[0]},"query":${obj(1)}${options(2, 'collation hint maxTimeMS')}}` };
		case 'insertOne':
			return { command: `{"insert":${c},"documents":[${args[0]}]}` };
		case 'insertMany':
			return { command: `{"insert":${c},"documents":${args[0]}${options(1, 'ordered')}}` };
		case 'updateOne':
		case 'updateMany':
		case 'replaceOne':
			if (/^(\[|{"\$)/.test(args[1]) === (name === 'replaceOne'))
				r.fail('Changes have operators such as $set, and what replaces a document has none');
			return {
				command: `{"update":${c},"updates":[{"q":${args[0]},"u":${args[1]},"multi":${name === 'updateMany'}${options(2, 'upsert arrayFilters collation hint')}}]}`,
			};
		case 'deleteOne':
		case 'deleteMany':
			return {
				command: `{"delete":${c},"deletes":[{"q":${args[0]},"limit":${name === 'deleteOne' ? 1 : 0}${options(1, 'collation hint')}}]}`,
			};
		case 'getIndexes':
			return { command: `{"listIndexes":${c}}` };
	}
	return r.fail('The method ' + name + ' is not known here');
}

/** Canonical Extended JSON as people read it: numbers as numbers, with all their digits. @param {any} v @returns {any} */
export function relax(v) {
	if (Array.isArray(v)) return v.map(relax);
	if (!(v instanceof Obj)) return v;
	if (v.members.length === 1) {
		const [k, x] = v.members[0];
		if ((k === '$numberInt' || k === '$numberLong') && typeof x === 'string') return new Num(x);
		if (k === '$numberDouble' && typeof x === 'string' && /^-?\d/.test(x)) return new Num(x);
		if (k === '$date' && x instanceof Obj && x.get('$numberLong')) {
			const n = Number(x.get('$numberLong'));
			if (Math.abs(n) < 8.64e15) {
				const o = new Obj();
				o.members.push(['$date', new Date(n).toISOString()]);
				return o;
			}
		}
	}
	const o = new Obj();
	o.members = v.members.map(([k, x]) => [k, relax(x)]);
	return o;
}

/** @type {Language} */
export const mongo = {
	name: 'mongo',
	title: 'Mongo',
	api: 'mongo',
	sample: () => 'find({})',
	paint: painter(['true', 'false', 'null', 'new', 'db'], { comment: '//[^\\n]*' }),
	complete: (text, at, names, colls) =>
		word(text, at, (before) => {
			if (/\b(from|coll|into)\s*:\s*['"]$/.test(before)) return colls;
			if (!/(^|\.)\s*$/.test(before)) return [...operators, ...names];
			return /\bdb\.$/.test(before) ? [...colls, ...methods] : methods;
		}),
	code: (c, text) =>
		`db.getSiblingDB(${JSON.stringify(c.db)}).` +
		(/^\s*\{/.test(text)
			? `runCommand(${text})`
			: `getCollection(${JSON.stringify(c.coll)}).${text.trim().replace(/^db\.\w+\./, '')}`),
	async page(ctx, text, o) {
		const body = o.next ? o.next : commandOf(text, ctx.coll).command;
		const r = await send(ctx.db, body, { signal: o.signal });
		const cursor = r.v.get('cursor');
		if (!cursor) {
			const v = relax(r.v),
				shown = v.get('values') || [without(v)];
			return {
				rows: shown.map((/** @type {any} */ x) => ({ v: x, text: print(x) })),
				next: '',
				charge: r.charge,
				ms: r.ms,
				plan: null,
			};
		}
		const batch = relax(cursor.get('firstBatch') || cursor.get('nextBatch') || []);
		const id = cursor.get('id')?.get('$numberLong') || '0',
			ns = String(cursor.get('ns')).split('.').slice(1).join('.');
		return {
			rows: batch.map((/** @type {any} */ x) => ({ v: x, text: print(x) })),
			charge: r.charge,
			ms: r.ms,
			plan: null,
			next:
				id === '0'
					? ''
					: `{"getMore":{"$numberLong":"${id}"},"collection":${JSON.stringify(ns)},"batchSize":100}`,
		};
	},
	/** Closes a cursor of which no more is read: the server would keep it for ten minutes. */
	forget(ctx, next) {
		const m = /^\{"getMore":(.*),"collection":(.*),"batchSize"/.exec(next);
		if (m) send(ctx.db, `{"killCursors":${m[2]},"cursors":[${m[1]}]}`, { quiet: true }).catch(() => {});
	},
	async explain(ctx, text, signal) {
		const r = await send(ctx.db, `{"explain":${commandOf(text, ctx.coll).command},"verbosity":"executionStats"}`, {
			signal,
		});
		const v = relax(r.v),
			planner = v.get('queryPlanner'),
			tree = planner?.get('orrery'),
			stats = v.get('executionStats');
		const n = (/** @type {string} */ k) => Number(stats?.get(k)?.text || 0);
		return {
			plan: planner?.get('winningPlan')?.get('orrery') || '',
			tree: tree ? JSON.parse(print(tree)) : null,
			entries: n('totalKeysExamined'),
			items: n('totalDocsExamined'),
			rows: n('nReturned'),
		};
	},
};

/** A reply without what drivers use. @param {any} v */
function without(v) {
	const o = new Obj();
	o.members = v.members.filter((/** @type {[string, any]} */ [k]) => !['$clusterTime', 'operationTime'].includes(k));
	return o;
}

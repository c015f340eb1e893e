// The only place that sends requests. Everything goes through the bridge to one of the doors, and into the page's log.

import { parse, print, ascii, at, Obj } from './json.js';

/** What a door has refused, in words. */
export class ApiError extends Error {
	/** @param {number} status @param {string} code @param {string} message @param {string} [next] */
	constructor(status, code, message, next) {
		super(message);
		this.status = status;
		this.code = code;
		this.next = next || hint(status, code, message);
	}
}

/** Whether the same request may succeed later. @param {any} e */
export const passes = (e) => e.code !== 'Cancelled' && (!e.status || e.status >= 500 || [408, 410, 429, 449].includes(e.status));

/** What to do about an error. @param {number} status @param {string} code @param {string} message */
function hint(status, code, message) {
	if (code === 'Cancelled') return 'Run it again to get the result.';
	if (status === 0) return 'Is the server running? Try again in a moment.';
	if (status === 401) return 'Log in again.';
	if (code === 'ReadOnly') return 'Log in with the account’s key to change data.';
	if (status === 403) return 'The session or the state of the store does not allow this: Health shows the state.';
	if (status === 404) return 'It may have been deleted: refresh the tree.';
	if (status === 408) return 'Narrow the query, or start the server with a longer --max-time.';
	if (status === 409) return 'Choose another id, or open the item that has it.';
	if (status === 412) return 'Somebody has changed it: compare both versions.';
	if (status === 413) return 'Make it smaller: a NoSQL item has at most 2 MB.';
	if (status === 429) return 'Wait a moment, or raise the throughput in Settings.';
	if (/bytes of memory/.test(message)) return 'Make it smaller, by a filter or a limit.';
	if (/syntax|near|token|parse/i.test(message)) return 'Correct the text and run it again.';
	return 'Correct the request and try again.';
}

/** @type {string} */ let token = '';
/** @type {Logged[]} */ export const log = [];
/** @type {Set<() => void>} */ export const logged = new Set();
let number = 0;
const most = 300,
	mostText = 20000;

/** Called when the session has ended. @type {{f: () => void}} */
export const onLoggedOut = { f: () => {} };

/** Whether the server can't be reached; f is called when that changes. @type {{lost: boolean, f: () => void}} */
export const connection = { lost: false, f: () => {} };
/** @param {boolean} lost */
export function lose(lost) {
	if (lost === connection.lost) return;
	connection.lost = lost;
	connection.f();
}

/**
 * What ends the reads of the pane that is shown. A browser has six connections to a server: those that a pane has left
 * would be missing to the next one. Writes go on.
 */
let shown = new AbortController();
export function leave() {
	shown.abort();
	shown = new AbortController();
}
/** For reads that are not of a pane. */
export const always = new AbortController().signal;

const tabKey = 'orrery-token';
const others = 'BroadcastChannel' in window ? new BroadcastChannel('orrery') : null;
if (others) {
	others.onmessage = (e) => {
		if (e.data === 'who' && token) others.postMessage({ token });
	};
}

/** Asks the other tabs of this page for their session, which a new tab shares. @returns {Promise<string>} */
function askTabs() {
	return new Promise((done) => {
		if (!others) return done('');
		const timer = setTimeout(() => done(''), 60);
		others.addEventListener('message', function got(e) {
			if (!e.data || !e.data.token) return;
			others.removeEventListener('message', got);
			clearTimeout(timer);
			done(e.data.token);
		});
		others.postMessage('who');
	});
}

/**
 * Opens a session: without a key the one of this tab or of another tab, if there is one.
 * @param {string} [key] @returns {Promise<any>} the server's welcome; its token is missing if a key is needed
 */
export async function logIn(key) {
	token = token || sessionStorage.getItem(tabKey) || '';
	let hello = await session(key);
	if (!hello.token && !key && (token = await askTabs())) hello = await session();
	if (hello.token) {
		token = hello.token;
		sessionStorage.setItem(tabKey, token);
	} else token = '';
	return hello;
}

/** @param {string} [key] */
async function session(key) {
	/** @type {Record<string, string>} */ const headers = { 'content-type': 'application/json' };
	if (token) headers['x-orrery-token'] = token;
	const res = await fetch('api/session', { method: 'POST', headers, body: JSON.stringify(key ? { key } : {}) });
	return res.json();
}

export async function logOut() {
	await fetch('api/session/end', {
		method: 'POST',
		headers: { 'x-orrery-token': token, 'content-type': 'application/json' },
	});
	token = '';
	sessionStorage.removeItem(tabKey);
}

/** How long to wait before a request that was throttled is sent again, in ms; 0 if it wasn't. @param {Response} res */
const throttled = (res) => (res.status === 429 ? Number(res.headers.get('x-ms-retry-after-ms')) || 100 : 0);

/**
 * Sends a request to a door. A status of 400 or more is an error, unless it is in o.also. What the throughput doesn't
 * allow now is sent again after the time that the server names, nine times at most, as the SDKs do.
 * @param {string} door @param {string} method @param {string} path encoded @param {CallOptions} [o] @returns {Promise<Reply>}
 */
export async function call(door, method, path, o = {}) {
	for (let tries = 0; ; tries++) {
		const r = await send(door, method, path, o, tries < 9 ? o.throttled || throttled : () => 0);
		if (!r.wait) return r;
		await pause(r.wait, o.signal);
	}
}

/** @param {number} time @param {AbortSignal} [signal] @returns {Promise<void>} */
function pause(time, signal) {
	return new Promise((done, fail) => {
		const timer = setTimeout(done, time);
		signal?.addEventListener('abort', () => {
			clearTimeout(timer);
			fail(cancelled());
		});
	});
}
const cancelled = () => new ApiError(0, 'Cancelled', 'The request was cancelled.');

/**
 * Sends a request once.
 * @param {string} door @param {string} method @param {string} path @param {CallOptions} o
 * @param {(res: Response, text: string) => number} throttle @returns {Promise<Reply & {wait?: number}>}
 */
async function send(door, method, path, o, throttle) {
	const began = performance.now();
	/** @type {Logged} */
	const line = {
		n: ++number,
		at: Date.now(),
		door,
		method,
		path,
		status: 0,
		charge: 0,
		ms: 0,
		headers: o.headers || {},
		body: (o.body || '').slice(0, mostText),
		replyHeaders: [],
		reply: '',
		error: '',
	};
	try {
		/** @type {Record<string, string>} */ const headers = { ...o.headers, 'x-orrery-token': token };
		if (o.body !== undefined) headers['content-type'] = 'application/json';
		const res = await fetch('api/' + door + path, {
			method,
			headers,
			body: o.body,
			signal: o.signal || (method === 'GET' || o.headers?.['x-ms-documentdb-isquery'] ? shown.signal : null),
			cache: 'no-store',
		});
		const text = await res.text();
		lose(false);
		line.status = res.status;
		line.replyHeaders = [...res.headers.entries()];
		line.reply = text.slice(0, mostText);
		line.charge = Number(res.headers.get('x-ms-request-charge')) || 0;
		line.ms = performance.now() - began;
		if (res.status === 401 && /"code":"LogIn"/.test(text)) onLoggedOut.f();
		const wait = throttle(res, text);
		if (!wait && res.status >= 400 && !(o.also || []).includes(res.status)) throw refusal(res.status, text);
		return { status: res.status, headers: res.headers, text, charge: line.charge, ms: line.ms, wait };
	} catch (e) {
		const err =
			e instanceof ApiError
				? e
				: /** @type {any} */ (e).name === 'AbortError'
					? cancelled()
					: new ApiError(
							0,
							'NoReply',
							'The server can’t be reached: ' + /** @type {Error} */ (e).message + '.',
						);
		if (err.code === 'NoReply') lose(true);
		line.error = err.message;
		line.ms = performance.now() - began;
		throw err;
	} finally {
		if (!o.quiet || line.error) {
			log.unshift(line);
			log.length = Math.min(log.length, most);
			for (const f of logged) f();
		}
	}
}

/** The error in a reply of any of the doors. @param {number} status @param {string} text */
function refusal(status, text) {
	let code = String(status),
		message = text.trim().slice(0, 600);
	try {
		const v = JSON.parse(text);
		const e = v['odata.error'];
		if (e) [code, message] = [e.code, e.message.value];
		else if (v.message !== undefined) [code, message] = [v.code || v['Exception-Class'] || code, v.message];
		const inside = /^Message: (\{[^]*?\})\r\nActivityId/.exec(message);
		if (inside) {
			const m = JSON.parse(inside[1]);
			if (m.Errors) message = m.Errors.join(' ');
			else if (m.errors)
				message = m.errors.map((/** @type {any} */ x) => x.message + (x.code ? ` (${x.code})` : '')).join(' ');
		}
	} catch {
		/* the text itself is the message */
	}
	return new ApiError(status, String(code).replace(/^.*\./, ''), message || 'The server answered ' + status + '.');
}

/** An id in a path. Browsers resolve dots in paths, in any spelling: the request would be about the parent. @param {string} s */
export function enc(s) {
	if (s === '.' || s === '..')
		throw new ApiError(0, 'Dots', `A browser can't name “${s}” in a path.`, 'Use an SDK for it.');
	return encodeURIComponent(s);
}
/** @param {string} db @param {string} [coll] */
export const link = (db, coll) => '/dbs/' + enc(db) + (coll === undefined ? '' : '/colls/' + enc(coll));

/** All resources of a feed of the NoSQL API. @param {string} path @param {string} name @param {CallOptions} [o] */
export async function feed(path, name, o = {}) {
	/** @type {any[]} */ const out = [];
	for (let next = ''; ; ) {
		const r = await call('nosql', 'GET', path, {
			...o,
			headers: { ...o.headers, ...(next ? { 'x-ms-continuation': next } : {}) },
		});
		out.push(...JSON.parse(r.text)[name]);
		next = r.headers.get('x-ms-continuation') || '';
		if (!next) return out;
	}
}

/**
 * A page of a SQL query.
 * @param {string} db @param {string} coll @param {string} text
 * @param {{size?: number, next?: string, signal?: AbortSignal, explain?: boolean, quiet?: boolean, key?: string, params?: any[]}} [o]
 * @returns {Promise<Reply & {rows: Row[], next: string}>}
 */
export async function query(db, coll, text, o = {}) {
	/** @type {Record<string, string>} */
	const headers = {
		'x-ms-documentdb-isquery': 'true',
		'x-ms-documentdb-query-enablecrosspartition': 'true',
		'x-orrery-strict': 'none',
		'x-ms-max-item-count': String(o.size || 100),
	};
	if (o.next) headers['x-ms-continuation'] = o.next;
	if (o.explain) headers['x-orrery-explain'] = 'true';
	if (o.key) headers['x-ms-documentdb-partitionkey'] = o.key;
	const r = await call('nosql', 'POST', link(db, coll) + '/docs', {
		headers,
		signal: o.signal,
		quiet: o.quiet,
		body: JSON.stringify({ query: text, parameters: o.params || [] }),
	});
	return { ...r, rows: rows(r.text, 'Documents'), next: r.headers.get('x-ms-continuation') || '' };
}

/** The elements of an array in a reply, with their text. @param {string} text @param {string} name */
export function rows(text, name) {
	const list = /** @type {Obj} */ (parse(text)).get(name) || [];
	return list.map((/** @type {any} */ v) => ({ v, text: v && v.end ? text.slice(v.start, v.end) : print(v) }));
}

/** The header value of the partition key of an item. @param {any} def the container @param {any} item */
export function keyOf(def, item) {
	const paths = (def.partitionKey && def.partitionKey.paths) || [];
	return ascii(
		'[' +
			paths
				.map((/** @type {string} */ p) => {
					const v = at(item, p);
					return v === undefined || v instanceof Obj || Array.isArray(v) ? '{}' : print(v);
				})
				.join(',') +
			']',
	);
}

/** Runs a MongoDB command. A reply whose ok is 0 is an error. @param {string} db @param {string} body @param {CallOptions} [o] */
export async function mongo(db, body, o = {}) {
	const r = await call('mongo', 'POST', '/' + enc(db), {
		...o,
		body,
		throttled: (_, text) => Number(/"errmsg":"Error=16500, RetryAfterMs=(\d+)/.exec(text)?.[1]) || 0,
	});
	const v = parse(r.text);
	const plain = (/** @type {any} */ x) =>
		Number(x instanceof Obj ? x.get('$numberDouble') || x.get('$numberInt') || x.get('$numberLong') : x);
	if (plain(v.get('ok')) !== 1) {
		throw new ApiError(400, String(v.get('codeName') || show(v.get('code'))), String(v.get('errmsg')));
	}
	return { ...r, v };
}
const show = (/** @type {any} */ v) => (v === undefined ? '' : print(v));

/** A file of the page itself. @param {string} name */
export async function file(name) {
	return (await fetch(name)).text();
}

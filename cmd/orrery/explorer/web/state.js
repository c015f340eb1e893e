// What the page remembers: the address has all that can be shared, the browser's storage what is this user's.

const prefix = 'orrery.' + location.host + '.';

/** @template T @param {string} key @param {T} other @returns {T} */
export function load(key, other) {
	try {
		const text = localStorage.getItem(prefix + key);
		return text === null ? other : JSON.parse(text);
	} catch {
		return other;
	}
}

/** Stores a value; undefined removes it. @param {string} key @param {any} value */
export function keep(key, value) {
	try {
		if (value === undefined) localStorage.removeItem(prefix + key);
		else localStorage.setItem(prefix + key, JSON.stringify(value));
		return true;
	} catch {
		return false;
	}
}

/**
 * Reads the address: #/c/DATABASE/CONTAINER/PANE?name=value, or #/PANE for a pane of the server.
 * @returns {Route}
 */
export function route() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	const parts = path.split('/').map(decode);
	/** @type {Record<string, string>} */ const params = {};
	for (const [k, v] of new URLSearchParams(query || '')) params[k] = v;
	if (parts[0] === 'c' && parts.length >= 3)
		return { kind: 'container', db: parts[1], coll: parts[2], pane: parts[3] || 'items', params };
	return { kind: 'server', db: '', coll: '', pane: parts[0] || 'connect', params };
}

/** @param {string} s */
function decode(s) {
	try {
		return decodeURIComponent(s);
	} catch {
		return s;
	}
}

/** @param {Partial<Route>} r */
export function address(r) {
	const q = new URLSearchParams(
		Object.entries(r.params || {}).filter(([, v]) => v !== '' && v !== undefined),
	).toString();
	const path =
		r.kind === 'server'
			? r.pane
			: ['c', r.db, r.coll, r.pane || 'items'].map((x) => encodeURIComponent(String(x))).join('/');
	return '#/' + path + (q ? '?' + q : '');
}

/** @param {Partial<Route>} r */
export function go(r) {
	location.hash = address(r);
}

/** Changes parameters of the address without another entry of the history. @param {Record<string, string|undefined>} params */
export function setParams(params) {
	const r = route();
	for (const [k, v] of Object.entries(params))
		if (v) r.params[k] = v;
		else delete r.params[k];
	history.replaceState(null, '', address(r));
}

/** The session: what the server has said at the log-in. @type {{readOnly: boolean, account: string, version: string, apis: string[], auth: boolean}} */
export const session = { readOnly: false, account: '', version: '', apis: [], auth: false };

/** The definitions of containers that were read. @type {Map<string, any>} */
export const definitions = new Map();

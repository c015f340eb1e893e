// The health of the server, as moving plots of its metrics.

import { h, fill, count, bytes, fact } from '../dom.js';
import { call } from '../api.js';
import { plot } from '../parts/plot.js';
import { problem } from '../parts/dialog.js';

const every = 1000,
	kept = 120,
	apis = ['nosql', 'mongo', 'gremlin', 'table'];

/** Reads the text format of Prometheus. @param {string} text @returns {Metrics} */
export function metrics(text) {
	/** @type {Metrics} */ const out = new Map();
	for (const line of text.split('\n')) {
		const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
		if (!m) continue;
		/** @type {Record<string, string>} */ const labels = {};
		for (const l of (m[2] || '').matchAll(/([\w]+)="((?:[^"\\]|\\.)*)"/g)) labels[l[1]] = l[2];
		const list = out.get(m[1]) || [];
		list.push({ labels, value: Number(m[3]) });
		out.set(m[1], list);
	}
	return out;
}

/** @param {Metrics} m @param {string} name @param {(l: Record<string, string>) => boolean} [which] */
function sum(m, name, which) {
	return (m.get(name) || []).reduce((n, x) => n + (!which || which(x.labels) ? x.value : 0), 0);
}

/** A percentile of the requests between two readings, in seconds. @param {Metrics} a @param {Metrics} b @param {string} api @param {number} q */
function percentile(a, b, api, q) {
	/** @type {Map<number, number>} */ const buckets = new Map();
	const put = (/** @type {Metrics} */ m, /** @type {number} */ sign) => {
		for (const x of m.get('orrery_request_duration_seconds_bucket') || [])
			if (x.labels.api === api && x.labels.operation !== 'watch') {
				const le = x.labels.le === '+Inf' ? Infinity : Number(x.labels.le);
				buckets.set(le, (buckets.get(le) || 0) + sign * x.value);
			}
	};
	put(b, 1);
	put(a, -1);
	const list = [...buckets].sort((x, y) => x[0] - y[0]),
		total = list.length ? list[list.length - 1][1] : 0;
	if (!total) return null;
	let below = 0,
		from = 0;
	for (const [le, n] of list) {
		if (n >= q * total)
			return le === Infinity ? from : from + ((le - from) * (q * total - below)) / Math.max(1, n - below);
		below = n;
		from = le;
	}
	return from;
}

/** @param {HTMLElement} el */
export function mount(el) {
	const head = h('div', { class: 'facts' }),
		trouble = h('div');
	const plots = {
		rate: plot({ title: 'Requests per second' }),
		ru: plot({ title: 'Request units per second' }),
		p50: plot({ title: 'Latency, median', unit: 'ms' }),
		p99: plot({ title: 'Latency, 99 % are faster', unit: 'ms' }),
		errors: plot({ title: 'Errors per second' }),
		throttled: plot({ title: 'Throttled (429) per second' }),
		memory: plot({ title: 'Memory of requests', format: bytes }),
		disk: plot({ title: 'Disk and compaction', format: bytes }),
		conns: plot({ title: 'Connections', format: (n) => count(Math.round(n)) }),
	};
	fill(
		el,
		h(
			'div',
			{ class: 'page wide' },
			head,
			trouble,
			h(
				'div',
				{ class: 'plots' },
				Object.values(plots).map((p) => p.el),
			),
		),
	);
	/** @type {{at: number, m: Metrics}|null} */ let before = null;
	/** @type {Record<string, (number|null)[]>} */ const series = {};
	let left = false,
		timer = 0;
	read();
	return () => {
		left = true;
		clearTimeout(timer);
	};

	async function read() {
		try {
			const [m, s] = await Promise.all([
				call('admin', 'GET', '/metrics', { quiet: true }),
				call('admin', 'GET', '/status', { quiet: true }),
			]);
			if (left) return;
			const now = { at: performance.now(), m: metrics(m.text) };
			fill(trouble);
			top(JSON.parse(s.text));
			if (before) draw(before, now);
			before = now;
		} catch (e) {
			if (!left) fill(trouble, problem(e));
		}
		if (!left) timer = /** @type {any} */ (setTimeout(read, every));
	}

	/** @param {string} name @param {number|null} v */
	function push(name, v) {
		const s = (series[name] = series[name] || []);
		s.push(v);
		if (s.length > kept) s.shift();
		return s;
	}

	/** @param {{at: number, m: Metrics}} a @param {{at: number, m: Metrics}} b */
	function draw(a, b) {
		const dt = (b.at - a.at) / 1000,
			rate = (/** @type {string} */ n, /** @type {any} */ f) =>
				Math.max(0, (sum(b.m, n, f) - sum(a.m, n, f)) / dt);
		const by = (/** @type {string} */ key, /** @type {(api: string) => number|null} */ f) =>
			apis.map((x) => ({ name: titles[x], values: push(key + x, f(x)) }));
		plots.rate.set(by('rate', (x) => rate('orrery_requests_total', (/** @type {any} */ l) => l.api === x)));
		plots.ru.set(by('ru', (x) => rate('orrery_request_units_total', (/** @type {any} */ l) => l.api === x)));
		plots.p50.set(
			by('p50', (x) => {
				const p = percentile(a.m, b.m, x, 0.5);
				return p === null ? null : p * 1000;
			}),
		);
		plots.p99.set(
			by('p99', (x) => {
				const p = percentile(a.m, b.m, x, 0.99);
				return p === null ? null : p * 1000;
			}),
		);
		const ended = (/** @type {string} */ x, /** @type {(status: string) => boolean} */ which) =>
			rate('orrery_request_duration_seconds_count', (/** @type {any} */ l) => l.api === x && which(l.status));
		plots.errors.set(by('bad', (x) => ended(x, (s) => (x === 'mongo' ? s !== 'ok' : !/^[23]/.test(s)))));
		plots.throttled.set(by('429', (x) => ended(x, (s) => s === '429' || s === '16500')));
		plots.memory.set([
			{ name: 'used', values: push('mem', sum(b.m, 'orrery_memory_budget_used_bytes')) },
			{ name: 'temporary files', values: push('spill', sum(b.m, 'orrery_spill_bytes')) },
			{ name: 'process', values: push('rss', sum(b.m, 'process_resident_memory_bytes')) },
		]);
		plots.disk.el.hidden = !b.m.has('orrery_store_disk_bytes');
		plots.disk.set([
			{ name: 'store', values: push('disk', sum(b.m, 'orrery_store_disk_bytes')) },
			{ name: 'to compact', values: push('debt', sum(b.m, 'orrery_store_compaction_debt_bytes')) },
		]);
		plots.conns.set(by('conns', (x) => sum(b.m, 'orrery_connections_open', (l) => l.api === x)));
	}

	/** @param {any} s */
	function top(s) {
		const up = s.uptimeSeconds,
			time = up < 120 ? up + ' s' : up < 7200 ? Math.round(up / 60) + ' min' : (up / 3600).toFixed(1) + ' h';
		const state = s.health?.state || 'well';
		fill(
			head,
			fact(
				s.ready ? 'Ready' : 'Not ready',
				s.health?.reason || 'store is ' + state,
				s.ready && state === 'well' ? 'ok' : 'bad',
			),
			fact(time, 'since the start'),
			fact(s.engine, s.durability === 'none' ? 'nothing is kept' : 'durability ' + s.durability),
			s.requestMemory &&
				fact(bytes(s.requestMemory.usedBytes), 'of ' + bytes(s.requestMemory.limitBytes) + ' for requests'),
			fact(count((s.containers || []).length + (s.containersMore || 0)), 'containers'),
			s.backup && fact(s.backup.state || '–', 'last backup'),
			fact(s.version, 'version'),
		);
	}
}
const titles = /** @type {Record<string, string>} */ ({
	nosql: 'NoSQL',
	mongo: 'Mongo',
	gremlin: 'Gremlin',
	table: 'Table',
});

// The change feed of a container as it comes: latest versions, or all versions and deletes where there is a log of them.

import { h, fill, button, count } from '../dom.js';
import { call, link, rows } from '../api.js';
import { show, Obj } from '../json.js';
import { offer } from '../keys.js';
import { inspect } from '../parts/inspect.js';
import { editor } from '../parts/editor.js';
import { pretty } from '../parts/exchange.js';
import { problem } from '../parts/dialog.js';

const most = 500;

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	const { db, coll } = ctx;
	/** @type {{at: number, kind: string, id: string, lsn: string, text: string, range: string}[]} */ let list = [];
	/** @type {Map<string, string>} */ let tags = new Map();
	let left = false,
		timer = 0,
		life = 0,
		paused = false,
		all = ctx.params.all === '1',
		start = ctx.params.from || 'now',
		seen = 0,
		charge = 0,
		at = 0,
		frame = 0;
	const body = h('div', { class: 'results feed', role: 'list', 'aria-label': 'Changes' }),
		status = h('div', { class: 'status', role: 'status' }),
		trouble = h('div', { role: 'alert' });
	const kind = h('div', { class: 'seg', role: 'group', 'aria-label': 'Which versions' }),
		from = h('div', { class: 'seg', role: 'group', 'aria-label': 'Since when' });
	const pause = button(
		'Pause',
		() => {
			paused = !paused;
			pause.lastChild.textContent = paused ? 'Go on' : 'Pause';
			tell();
		},
		{ icon: 'stop' },
	);
	fill(
		el,
		h(
			'div',
			{ class: 'toolbar' },
			kind,
			from,
			h('span', { class: 'grow' }),
			pause,
			button(
				'Clear',
				() => {
					list = [];
					draw();
				},
				{},
			),
		),
		trouble,
		body,
		status,
	);
	const takeBack = offer('pane', () => [
		{ name: 'Pause or go on', group: 'Feed', keys: 'P', act: () => pause.click() },
	]);
	body.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
		if (!step) return;
		e.preventDefault();
		at = Math.max(0, Math.min(list.length - 1, at + step));
		[...body.querySelectorAll('button')].forEach((b, i) => {
			b.tabIndex = i === at ? 0 : -1;
			if (i === at) b.focus();
		});
	});
	draw();
	restart();
	return () => {
		left = true;
		life++;
		clearTimeout(timer);
		takeBack();
	};

	function choices() {
		const seg = (/** @type {HTMLElement} */ where, /** @type {[string, boolean, () => void][]} */ of) =>
			fill(
				where,
				of.map(([t, on, f]) => h('button', { type: 'button', 'aria-pressed': String(on), onclick: f }, t)),
			);
		seg(kind, [
			[
				'Latest versions',
				!all,
				() => {
					all = false;
					change();
				},
			],
			[
				'All versions and deletes',
				all,
				() => {
					all = true;
					change();
				},
			],
		]);
		seg(from, [
			[
				'From now',
				start === 'now',
				() => {
					start = 'now';
					change();
				},
			],
			[
				'From the beginning',
				start !== 'now',
				() => {
					start = 'all';
					change();
				},
			],
		]);
	}
	function change() {
		ctx.setParams({ all: all ? '1' : undefined, from: start === 'now' ? undefined : start });
		restart();
	}

	function restart() {
		choices();
		life++;
		clearTimeout(timer);
		list = [];
		tags = new Map();
		seen = 0;
		charge = 0;
		fill(trouble);
		draw();
		read(life);
	}

	/** There is nothing to wait for. */
	function stop() {
		cancelAnimationFrame(frame);
		frame = 0;
		fill(body);
		fill(status, h('span', null, 'Off'));
	}

	/** Reads what has changed in all ranges. @param {number} mine */
	async function read(mine) {
		try {
			if (!paused) {
				const ranges = JSON.parse(
					(await call('nosql', 'GET', link(db, coll) + '/pkranges', { quiet: true })).text,
				).PartitionKeyRanges;
				for (const r of ranges) {
					for (let page = 0; page < 20; page++) {
						/** @type {Record<string, string>} */ const headers = {
							'a-im': all ? 'Full-Fidelity Feed' : 'Incremental feed',
							'x-ms-documentdb-partitionkeyrangeid': r.id,
							'x-ms-max-item-count': '100',
						};
						if (all) headers['x-ms-cosmos-changefeed-wire-format-version'] = '2021-09-15';
						const tag =
							tags.get(r.id) ||
							(r.parents || []).map((/** @type {string} */ p) => tags.get(p)).find(Boolean);
						if (tag) headers['if-none-match'] = tag;
						else if (start === 'now') headers['if-none-match'] = '*';
						else if (all) headers['if-modified-since'] = new Date(Date.now() - 43200 * 60000).toUTCString();
						const x = await call('nosql', 'GET', link(db, coll) + '/docs', {
							headers,
							quiet: true,
							also: [304],
						});
						if (left || mine !== life) return;
						tags.set(r.id, x.headers.get('etag') || tag || '');
						charge += x.charge;
						if (x.status === 304) break;
						const got = rows(x.text, 'Documents');
						for (const c of got) put(c, r.id);
						if (!got.length) break;
					}
				}
				tell();
			}
		} catch (e) {
			if (left || mine !== life) return;
			if (/** @type {any} */ (e).status !== 410) {
				const off = all && /retentionDuration/.test(/** @type {any} */ (e).message);
				const next = 'Settings has how long they are kept, below “Log of all versions and deletes”.';
				fill(trouble, problem(off ? { ...Object(e), message: 'This container keeps no log of all versions.', next } : e));
				tell();
				if (off) return stop();
				if (all) return;
			}
		}
		if (!left && mine === life) timer = /** @type {any} */ (setTimeout(() => read(mine), 700));
	}

	/** @param {{v: any, text: string}} c @param {string} range */
	function put(c, range) {
		const meta = c.v.get('metadata'),
			now = c.v.get('current'),
			before = c.v.get('previous'),
			wrapped = meta instanceof Obj;
		const v = wrapped
			? now instanceof Obj && now.get('id') !== undefined
				? now
				: before instanceof Obj
					? before
					: meta
			: c.v;
		const type = wrapped ? show(meta.get('operationType')) || 'replace' : 'change';
		list.unshift({
			at: Number(show(wrapped ? meta.get('crts') : c.v.get('_ts'))) * 1000,
			kind: type,
			id: show(v.get('id')),
			lsn: show(wrapped ? meta.get('lsn') : c.v.get('_lsn')),
			text: c.text,
			range,
		});
		seen++;
		list.length = Math.min(list.length, most);
		draw();
	}

	function draw() {
		if (frame) return;
		frame = requestAnimationFrame(() => {
			frame = 0;
			const had = body.contains(document.activeElement);
			if (!list.length) {
				fill(
					body,
					h(
						'div',
						{ class: 'empty', role: 'listitem' },
						start === 'now' ? 'Waiting for a change …' : 'No changes.',
					),
				);
				return;
			}
			at = Math.min(at, list.length - 1);
			fill(
				body,
				list.slice(0, 200).map((c, i) =>
					h(
						'div',
						{ role: 'listitem' },
						h(
							'button',
							{
								type: 'button',
								class: 'change',
								tabindex: i === at ? '0' : '-1',
								onclick: () => {
									at = i;
									open(c);
								},
							},
							h('span', { class: 'tag ' + ({ create: 'ok', delete: 'bad' }[c.kind] || 'soft') }, c.kind),
							h('b', { class: 'mono ellipsis' }, c.id || '(unknown)'),
							h('span', { class: 'dim small' }, `partition ${c.range}${c.lsn ? ' · LSN ' + c.lsn : ''}`),
							h('span', { class: 'dim small right' }, c.at ? new Date(c.at).toLocaleTimeString() : ''),
						),
					),
				),
			);
			if (had) /** @type {HTMLElement|null} */ (body.querySelector('[tabindex="0"]'))?.focus();
		});
	}

	/** @param {{id: string, text: string}} c */
	function open(c) {
		const ed = editor({ label: 'Change of ' + c.id, value: pretty(c.text), readOnly: true });
		inspect(ctx.inspector, c.id, ed.el, () =>
			/** @type {HTMLElement|null} */ (body.querySelector('[tabindex="0"]'))?.focus(),
		);
	}
	function tell() {
		fill(
			status,
			h('span', null, paused ? 'Paused' : 'Live'),
			h('span', null, count(seen) + ' changes'),
			h('span', null, charge.toFixed(1) + ' RU'),
		);
	}
}

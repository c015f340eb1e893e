// The physical partitions of a container as bars: storage, items, request units; the heaviest keys; splits as they happen.

import { h, fill, button, count, bytes, fact } from '../dom.js';
import { call, enc } from '../api.js';
import { confirm, note, problem } from '../parts/dialog.js';

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	const { db, coll } = ctx;
	const page = h('div', { class: 'page' });
	fill(el, page);
	fill(page, h('p', { class: 'empty' }, 'Reading …'));
	let left = false,
		timer = 0;
	/** @type {string} */ let ids = '';
	read();
	return () => {
		left = true;
		clearTimeout(timer);
	};

	async function read() {
		try {
			const r = await call('admin', 'GET', `/orrery/partitions?database=${enc(db)}&container=${enc(coll)}`, {
				quiet: true,
			});
			if (left) return;
			draw(JSON.parse(r.text));
		} catch (e) {
			if (!left) fill(page, problem(e));
		}
		if (!left) timer = /** @type {any} */ (setTimeout(read, 1000));
	}

	/** @param {any} r */
	function draw(r) {
		const had = page.contains(document.activeElement) ? document.activeElement?.getAttribute('data-key') : null;
		const ps = r.partitions,
			now = ps.map((/** @type {any} */ p) => p.id).join(' ');
		const fresh =
			ids && now !== ids
				? new Set(now.split(' ').filter((/** @type {string} */ i) => !ids.split(' ').includes(i)))
				: new Set();
		if (fresh.size)
			note(
				`Now ${count(ps.length)} partitions: ${[...fresh].join(', ')} ${fresh.size === 1 ? 'is' : 'are'} new.`,
				'ok',
			);
		ids = now;
		const most = {
			bytes: Math.max(1, ...ps.map((/** @type {any} */ p) => p.bytes)),
			items: Math.max(1, ...ps.map((/** @type {any} */ p) => p.items)),
			ru: Math.max(1, ...ps.map((/** @type {any} */ p) => Math.max(p.ruPerSecond, p.ruPerSecondMost || 0))),
		};
		const bar = (/** @type {number} */ v, /** @type {number} */ m, /** @type {string} */ text, hot = false) =>
			h(
				'div',
				{ class: 'meter' + (hot ? ' hot' : '') },
				h('span', { style: { width: Math.max(v ? 1 : 0, (100 * v) / m) + '%' } }),
				h('b', null, text),
			);
		const heavy = Math.max(1, ...r.heaviestKeys.map((/** @type {any} */ k) => k.bytes));
		fill(
			page,
			h(
				'div',
				{ class: 'facts' },
				fact(count(ps.length), 'physical partitions'),
				fact(count(ps.reduce((/** @type {number} */ n, /** @type {any} */ p) => n + p.items, 0)), 'items'),
				fact(
					bytes(ps.reduce((/** @type {number} */ n, /** @type {any} */ p) => n + p.bytes, 0)),
					'in documents',
				),
				fact(r.throughput ? count(r.throughput) : '–', 'RU/s provisioned'),
			),
			r.resizing &&
				h('p', { class: 'tag warn', role: 'status' }, 'Partitions are being split for the throughput.'),
			r.advice && h('p', { class: 'advice' + (/ bad/.test(r.advice) ? ' hot' : '') }, r.advice),
			h('h2', null, 'Physical partitions'),
			h(
				'div',
				{ class: 'tablebox', tabindex: '0', role: 'region', 'aria-label': 'Physical partitions' },
				h(
					'table',
					{ class: 'table parts' },
					h(
						'thead',
						null,
						h(
							'tr',
							null,
							['Id', 'Storage', 'Items', 'RU per second'].map((x) => h('th', null, x)),
							!ctx.readOnly && h('th', null, h('span', { class: 'sr' }, 'Actions')),
						),
					),
					h(
						'tbody',
						null,
						ps.map((/** @type {any} */ p, /** @type {number} */ i) =>
							h(
								'tr',
								null,
								h(
									'td',
									null,
									h('b', { class: 'mono' }, p.id),
									fresh.has(p.id) && h('span', { class: 'tag ok' }, 'new'),
									p.parents.length
										? h('div', { class: 'dim small' }, 'from ' + p.parents.join(', '))
										: null,
									h(
										'div',
										{
											class: 'dim small mono',
											title: `Hashes of partition keys: ${p.minInclusive || '00'} to ${p.maxExclusive}`,
										},
										`${hash(p.minInclusive || '00')}–${hash(p.maxExclusive)}`,
									),
								),
								h('td', null, bar(p.bytes, most.bytes, bytes(p.bytes))),
								h('td', null, bar(p.items, most.items, count(p.items))),
								h(
									'td',
									null,
									bar(
										p.ruPerSecond,
										most.ru,
										(p.ruPerSecond < 100 ? p.ruPerSecond.toFixed(1) : count(Math.round(p.ruPerSecond))) +
											(p.ruPerSecondMost ? ' of ' + count(Math.round(p.ruPerSecondMost)) : ''),
										p.ruPerSecondMost && p.ruPerSecond > 0.8 * p.ruPerSecondMost,
									),
								),
								!ctx.readOnly &&
									h(
										'td',
										null,
										h(
											'div',
											{ class: 'inline tight' },
											act('Split', p.id, 'split'),
											i < ps.length - 1 && act('Merge with next', p.id, 'merge'),
										),
									),
							),
						),
					),
				),
			),
			h('h2', null, 'Heaviest partition keys'),
			r.heaviestKeys.length
				? h(
						'div',
						{ class: 'tablebox', tabindex: '0', role: 'region', 'aria-label': 'Heaviest partition keys' },
						h(
							'table',
							{ class: 'table parts' },
							h(
								'thead',
								null,
								h(
									'tr',
									null,
									['Key', 'Partition', 'Items', 'Storage'].map((x) =>
										h('th', { class: x === 'Items' ? 'num' : '' }, x),
									),
								),
							),
							h(
								'tbody',
								null,
								r.heaviestKeys.map((/** @type {any} */ k) =>
									h(
										'tr',
										null,
										h('td', { class: 'mono' }, JSON.stringify(k.key)),
										h('td', { class: 'mono' }, k.partition),
										h('td', { class: 'num' }, count(k.items)),
										h('td', null, bar(k.bytes, heavy, bytes(k.bytes))),
									),
								),
							),
						),
					)
				: h('p', { class: 'dim' }, 'There are no items.'),
			r.keysSeen
				? h(
						'p',
						{ class: 'dim small' },
						r.allKeysSeen
							? `Of ${count(r.keysSeen)} keys.`
							: `Of the ${count(r.keysSeen)} keys that were looked at; there are more.`,
					)
				: null,
		);
		if (had) /** @type {HTMLElement|null} */ (page.querySelector(`[data-key="${CSS.escape(had)}"]`))?.focus();
	}

	/** @param {string} label @param {string} id @param {string} what */
	function act(label, id, what) {
		const b = button(
			label,
			async () => {
				if (
					!(await confirm(
						label,
						what === 'split'
							? `Partition ${id} will be split in two. Requests go on.`
							: `Partition ${id} will be merged with the one after it. Requests go on.`,
						label,
					))
				)
					return;
				try {
					await call('admin', 'POST', '/orrery/partitions', {
						body: JSON.stringify({ database: db, container: coll, partition: id, do: what }),
					});
				} catch (e) {
					note(/** @type {Error} */ (e));
				}
			},
			{ class: 'quiet' },
		);
		b.setAttribute('data-key', what + id);
		return b;
	}
}

/** The beginning of a hash of 32 digits, which is enough to tell partitions apart. @param {string} s */
const hash = (s) => (s.length > 10 ? s.slice(0, 8) + '…' : s);

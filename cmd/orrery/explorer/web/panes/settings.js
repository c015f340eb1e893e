// What a container is: its key, indexing policy, TTL, throughput, unique keys. What can be changed, can be changed here.

import { h, fill, button, count, bytes } from '../dom.js';
import { call, feed, link, enc } from '../api.js';
import { format } from '../json.js';
import { definitions } from '../state.js';
import { editor } from '../parts/editor.js';
import { note, problem } from '../parts/dialog.js';
import { dropContainer } from '../parts/create.js';

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	const { db, coll } = ctx;
	const page = h('div', { class: 'page' });
	fill(el, page);
	fill(page, h('p', { class: 'empty' }, 'Reading …'));
	let timer = 0,
		left = false;
	draw();
	return () => {
		left = true;
		clearTimeout(timer);
	};

	async function draw() {
		/** @type {any} */ let def, /** @type {any} */ offer, /** @type {any} */ reply, /** @type {any} */ items;
		try {
			reply = await call('nosql', 'GET', link(db, coll), {
				headers: { 'x-ms-documentdb-populatequotainfo': 'true' },
			});
			def = JSON.parse(reply.text);
			definitions.set(db + '/' + coll, def);
			items = /documentsCount=(\d+)/.exec(reply.headers.get('x-ms-resource-usage') || '')?.[1];
			offer = (await feed('/offers', 'Offers', { quiet: true })).find(
				(/** @type {any} */ o) => o.resource.replace(/\/$/, '') === def._self.replace(/\/$/, ''),
			);
		} catch (e) {
			return fill(page, problem(e));
		}
		if (left) return;
		const policy = editor({
			label: 'Indexing policy',
			value: format(JSON.stringify(def.indexingPolicy)),
			readOnly: ctx.readOnly,
		});
		const trouble = h('div', { role: 'alert' }),
			progress = h('span', { class: 'tag', role: 'status' });
		const ttl = h('input', {
			type: 'text',
			class: 'mono',
			value: def.defaultTtl === undefined ? '' : String(def.defaultTtl),
			placeholder: 'off',
			'aria-label': 'Time to live in seconds',
			disabled: ctx.readOnly,
		});
		const feedFor = h('input', {
			type: 'text',
			class: 'mono',
			value: def.changeFeedPolicy?.retentionDuration ? String(def.changeFeedPolicy.retentionDuration) : '',
			placeholder: 'off',
			'aria-label': 'Minutes of the log of all versions',
			disabled: ctx.readOnly,
		});
		const auto = offer?.content?.offerAutopilotSettings?.maxThroughput,
			manual = offer?.content?.offerThroughput;
		const ru = h('input', {
			type: 'number',
			min: '400',
			step: '100',
			value: String(auto || manual || ''),
			'aria-label': 'Throughput in RU/s',
			disabled: ctx.readOnly || !offer,
		});
		const usage = Object.fromEntries(
			(reply.headers.get('x-ms-resource-usage') || '').split(';').map((/** @type {string} */ x) => x.split('=')),
		);
		const row = (/** @type {string} */ k, /** @type {any} */ v) => [h('dt', null, k), h('dd', null, v)];
		fill(
			page,
			h('h2', null, 'Container'),
			h(
				'dl',
				{ class: 'kv' },
				row(
					'Partition key',
					h(
						'span',
						{ class: 'mono' },
						(def.partitionKey?.paths || []).join(', ') +
							(def.partitionKey?.kind === 'MultiHash' ? ' (hierarchical)' : ''),
					),
				),
				row(
					'Unique keys',
					def.uniqueKeyPolicy?.uniqueKeys?.length
						? h(
								'span',
								{ class: 'mono' },
								def.uniqueKeyPolicy.uniqueKeys
									.map((/** @type {any} */ k) => k.paths.join(', '))
									.join('; '),
							)
						: 'none',
				),
				row('Items', items ? count(Number(items)) : '–'),
				row('Size', usage.documentsSize ? bytes(Number(usage.documentsSize) * 1024) : '–'),
				row('Resource id', h('span', { class: 'mono' }, def._rid)),
			),
			h('h2', null, 'Time to live'),
			h(
				'p',
				{ class: 'dim' },
				'Seconds until an item expires after its last change. -1: only items with a ttl of their own do. Empty: none does.',
			),
			h('div', { class: 'inline' }, ttl),
			h('h2', null, 'Log of all versions and deletes'),
			h(
				'p',
				{ class: 'dim' },
				'Minutes for which the feed of all versions goes back, up to 43,200. Empty: there is no log.',
			),
			h('div', { class: 'inline' }, feedFor),
			h('h2', null, 'Throughput'),
			offer
				? h(
						'p',
						{ class: 'dim' },
						auto
							? 'The most of an autoscale throughput, in RU/s.'
							: 'In RU/s. More than one physical partition serves splits it.',
					)
				: h('p', { class: 'dim' }, 'This container shares the throughput of its database, or has none.'),
			h(
				'div',
				{ class: 'inline' },
				ru,
				!ctx.readOnly &&
					offer &&
					button('Change the throughput', () => change(offer, Number(ru.value), auto), {}),
			),
			h('h2', null, 'Indexing policy'),
			progress,
			h('div', { class: 'boxed' }, policy.el),
			trouble,
			!ctx.readOnly &&
				h(
					'div',
					{ class: 'buttons left stay' },
					button('Save', save, { icon: 'save', class: 'primary' }),
					button('Drop container', drop, { icon: 'trash', class: 'danger' }),
				),
		);
		follow();

		function follow() {
			const n = Number(reply.headers.get('x-ms-documentdb-collection-index-transformation-progress') || 100);
			progress.hidden = n >= 100;
			fill(progress, `The index is being built: ${n} %`);
			if (n < 100 && !left)
				timer = /** @type {any} */ (
					setTimeout(async () => {
						try {
							reply = await call('nosql', 'GET', link(db, coll), {
								quiet: true,
								headers: { 'x-ms-documentdb-populatequotainfo': 'true' },
							});
							follow();
						} catch {
							/* the next look will say */
						}
					}, 1000)
				);
		}

		async function save() {
			fill(trouble);
			try {
				const next = { ...def, indexingPolicy: JSON.parse(policy.value) };
				if (ttl.value.trim()) next.defaultTtl = number(ttl.value, 'The time to live');
				else delete next.defaultTtl;
				if (feedFor.value.trim())
					next.changeFeedPolicy = { retentionDuration: number(feedFor.value, 'The log') };
				else delete next.changeFeedPolicy;
				reply = await call('nosql', 'PUT', link(db, coll), { body: JSON.stringify(next) });
				note('Saved.', 'ok');
				draw();
			} catch (e) {
				fill(trouble, problem(e));
			}
		}

		/** @param {any} o @param {number} n @param {number|undefined} isAuto */
		async function change(o, n, isAuto) {
			fill(trouble);
			try {
				const next = { ...o, content: { ...o.content } };
				if (isAuto)
					next.content.offerAutopilotSettings = { ...o.content.offerAutopilotSettings, maxThroughput: n };
				else next.content.offerThroughput = n;
				await call('nosql', 'PUT', '/offers/' + enc(o.id), { body: JSON.stringify(next) });
				note(`The throughput is ${count(n)} RU/s.`, 'ok');
				ctx.refresh();
				draw();
			} catch (e) {
				fill(trouble, problem(e));
			}
		}

		async function drop() {
			if (!(await dropContainer(db, coll, items === undefined ? undefined : Number(items)))) return;
			location.hash = '#/connect';
			ctx.refresh();
		}
	}
}

/** @param {string} s @param {string} what */
function number(s, what) {
	const n = Number(s.trim());
	if (!Number.isInteger(n)) throw Object.assign(new Error(what + ' is not a whole number.'), { next: 'Correct it.' });
	return n;
}

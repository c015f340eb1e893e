// What programs have sent while this view is open: what it cost, and why it was refused.

import { h, fill, button, ms, count } from '../dom.js';
import { call } from '../api.js';
import { offer, rove } from '../keys.js';
import { inspect } from '../parts/inspect.js';
import { problem } from '../parts/dialog.js';
import { pretty } from '../parts/exchange.js';

const most = 500;

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	/** @type {any[]} */ let list = [];
	let last = 0,
		left = false,
		timer = 0,
		paused = false,
		begun = false;
	const find = h('input', {
		type: 'search',
		placeholder: 'Path, status, client',
		'aria-label': 'Filter the requests',
		class: 'grow',
		oninput: () => draw(),
	});
	const bad = h('input', { type: 'checkbox', id: 'bad', onchange: () => draw() });
	const pause = button(
		'Pause',
		() => {
			paused = !paused;
			pause.lastChild.textContent = paused ? 'Go on' : 'Pause';
		},
		{ icon: 'stop' },
	);
	const rows = h('tbody'),
		status = h('div', { class: 'status', role: 'status' }),
		trouble = h('div');
	fill(
		el,
		h(
			'div',
			{ class: 'toolbar' },
			find,
			h('label', { class: 'check flat', for: 'bad' }, bad, 'Refused only'),
			pause,
			button('Clear', () => {
				list = [];
				draw();
			}),
		),
		trouble,
		h(
			'div',
			{ class: 'results', tabindex: '0', role: 'region', 'aria-label': 'Requests' },
			h(
				'table',
				{ class: 'table' },
				h(
					'thead',
					null,
					h(
						'tr',
						null,
						['Time', 'Status', 'API', 'Operation', 'Target', 'RU', 'Took', 'Client'].map((x) =>
							h('th', { class: x === 'RU' || x === 'Took' ? 'num' : '' }, x),
						),
					),
				),
				rows,
			),
		),
		status,
	);
	rove(rows, 'button');
	const back = offer('pane', () => [
		{ name: 'Filter', group: 'Requests', keys: '/', act: () => find.focus() },
		{ name: 'Pause or go on', group: 'Requests', keys: 'P', act: () => pause.click() },
	]);
	read();
	return () => {
		left = true;
		clearTimeout(timer);
		back();
	};

	async function read() {
		try {
			if (!paused) {
				const r = JSON.parse(
					(await call('admin', 'GET', '/orrery/requests?after=' + last, { quiet: true })).text,
				);
				if (left) return;
				if (r.last < last) list = [];
				last = r.last;
				if (begun) list = [...r.requests.reverse(), ...list].slice(0, most);
				else list = r.requests.reverse();
				if (r.requests.length || !begun) draw();
				begun = true;
				fill(trouble);
			}
		} catch (e) {
			if (!left) fill(trouble, problem(e));
		}
		if (!left) timer = /** @type {any} */ (setTimeout(read, 800));
	}

	/** @param {any} r */
	function isBad(r) {
		return Number(r.status) >= 400 || (r.api === 'mongo' && r.status !== 'ok');
	}

	function draw() {
		const words = find.value.toLowerCase(),
			had = rows.contains(document.activeElement) ? document.activeElement?.getAttribute('data-n') : null;
		const shown = list.filter(
			(r) =>
				(!bad.checked || isBad(r)) &&
				(!words || [r.api, r.operation, r.target, r.status, r.client].join(' ').toLowerCase().includes(words)),
		);
		fill(
			rows,
			shown
				.slice(0, 200)
				.map((r, i) =>
					h(
						'tr',
						null,
						h('td', { class: 'mono' }, r.at.slice(11, 23)),
						h(
							'td',
							null,
							h('span', { class: 'tag ' + (isBad(r) ? 'bad' : r.left ? 'warn' : 'ok') }, r.status),
							r.left && r.status !== 'left' && h('span', { class: 'tag warn' }, 'left'),
						),
						h('td', null, r.api),
						h('td', null, r.operation),
						h(
							'td',
							{ class: 'mono path' },
							h(
								'button',
								{
									type: 'button',
									class: 'linklike',
									tabindex: i ? '-1' : '0',
									'data-n': String(r.n),
									onclick: () => open(r),
								},
								r.target || '(none)',
							),
						),
						h('td', { class: 'num' }, r.charge ? r.charge.toFixed(2) : ''),
						h('td', { class: 'num' }, ms(r.ms)),
						h('td', { class: 'mono dim' }, r.client),
					),
				),
		);
		if (!shown.length)
			fill(
				rows,
				h(
					'tr',
					null,
					h(
						'td',
						{ colspan: '8' },
						h(
							'div',
							{ class: 'empty' },
							list.length
								? 'No request fits the filter.'
								: 'Requests of programs show here as they come. This page’s own are below.',
						),
					),
				),
			);
		if (had) /** @type {HTMLElement|null} */ (rows.querySelector(`[data-n="${had}"]`))?.focus();
		fill(
			status,
			h('span', null, count(list.length) + (list.length === 1 ? ' request' : ' requests')),
			h('span', null, list.reduce((n, r) => n + r.charge, 0).toFixed(1) + ' RU'),
			h('span', { class: 'right' }, 'Recorded only while this view is open'),
		);
	}

	/** Why a request was refused, in the reply's words. @param {any} r */
	function why(r) {
		try {
			const v = JSON.parse(r.reply),
				text = v.message || v['odata.error']?.message?.value || '';
			return (
				/"message":"((?:[^"\\]|\\.)*)"|\{"Errors":\["((?:[^"\\]|\\.)*)/.exec(text)?.slice(1).find(Boolean) ||
				text.split('\r\n')[0]
			);
		} catch {
			return '';
		}
	}

	/** @param {any} r */
	function open(r) {
		const side = (/** @type {string} */ title, /** @type {any} */ headers, /** @type {string} */ text) => [
			h('h2', null, title),
			h(
				'pre',
				{ class: 'code wrap', tabindex: '0', 'aria-label': title },
				Object.entries(headers || {})
					.map(([k, v]) => `${k}: ${v}\n`)
					.join('') + (text ? '\n' + pretty(text) : ''),
			),
		];
		inspect(
			ctx.inspector,
			r.operation + ' ' + r.target,
			h(
				'div',
				{ class: 'page' },
				h(
					'p',
					null,
					h('span', { class: 'tag ' + (isBad(r) ? 'bad' : 'ok') }, r.status),
					` ${r.api} · ${r.charge} RU · ${ms(r.ms)} · ${r.client}`,
				),
				isBad(r) && why(r) && h('p', { class: 'bad' }, why(r)),
				r.plan && [
					h('h2', null, 'Query and plan'),
					h('pre', { class: 'code wrap', tabindex: '0', 'aria-label': 'Query and plan' }, r.plan),
				],
				r.headers && side('Request', r.headers, r.body),
				r.replyHeaders && side('Reply', r.replyHeaders, r.reply),
			),
			() => /** @type {HTMLElement|null} */ (rows.querySelector(`[data-n="${r.n}"]`))?.focus(),
		);
	}
}

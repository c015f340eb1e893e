// A graph on a canvas, with a list of the same vertices and edges beside it for the keyboard and for screen readers.

import { h, fill, button, count } from '../dom.js';
import { query } from '../api.js';
import { evaluate } from '../lang/gremlin.js';
import { print, show, at, Num, Obj } from '../json.js';
import { inspect as detail } from '../parts/inspect.js';
import { note, problem } from '../parts/dialog.js';
import { pretty } from '../parts/exchange.js';
import { rove } from '../keys.js';

const palette = [
	'#4f74e3',
	'#2f9e72',
	'#d9822b',
	'#b5489a',
	'#7a63d8',
	'#2b93b5',
	'#c2504a',
	'#8a7a2c',
	'#5c8f2f',
	'#8a6d5a',
];

/** What tells an element apart: two elements may have the same id. @param {any[]} pk @param {string} id */
function keyOf(pk, id) {
	return print([...pk.map((v) => (v instanceof Num && !/^-?\d+$/.test(v.text) ? v.value : v)), id]);
}

/**
 * The vertices and edges in some rows, also inside of paths, lists and maps. Each partition may have a vertex 'x' and an
 * edge 'e'. An edge is where the vertex is that it leaves. Only its stored item tells where the other one is.
 *
 * @param {Context} ctx @param {Row[]} rows @returns {Promise<Found>}
 */
export async function elementsOf(ctx, rows) {
	/** @type {string[]} */ let paths = (await ctx.definition()).partitionKey?.paths || [];
	if (['/_partitionKey', '/id'].includes(paths.join())) paths = []; // ids are unique
	/** @type {Found} */ const out = { paths, vertices: new Map(), edges: new Map(), charge: 0 };
	const vertex = (/** @type {any[]} */ pk, /** @type {any} */ id, /** @type {any} */ label) => {
		const key = keyOf(pk, show(id)),
			n = out.vertices.get(key) || { key, pk, id: show(id), label: '', v: null, x: 0, y: 0, at: 0 };
		n.label = n.label || show(label);
		out.vertices.set(key, n);
		return n;
	};
	/** @param {any} v @param {number} depth */
	const walk = (v, depth) => {
		if (depth > 6) return;
		if (Array.isArray(v)) return v.forEach((x) => walk(x, depth + 1));
		if (!(v instanceof Obj)) return;
		const type = v.get('type'),
			id = show(v.get('id'));
		if (type !== 'vertex' && type !== 'edge') return walk(v.members.map((m) => m[1]), depth);
		const pk = paths.map((p) => {
			const [, first, ...deeper] = p.split('/'),
				x = at(v, '/properties/' + first);
			return at(Array.isArray(x) ? at(x[0], '/value') : x, ['', ...deeper].join('/'));
		});
		if (type === 'vertex') vertex(pk, id, v.get('label')).v = v;
		else {
			const from = vertex(pk, v.get('outV'), v.get('outVLabel')).key,
				key = keyOf(pk, id);
			out.edges.set(key, { key, id, label: show(v.get('label')), v, from, to: '' });
		}
	};
	rows.forEach((r) => walk(r.v, 0));
	/** @type {Map<string, any[]>} */ const ends = new Map();
	const ids = paths.length ? [...new Set([...out.edges.values()].map((e) => e.id))] : [],
		parts = paths.map((p) => `{v: c${p.replace(/\/"?([^/"]+)"?/g, '["$1"]')}}`);
	for (let i = 0, next = ''; i < ids.length; next || (i += 1000)) {
		const r = await query(
			ctx.db,
			ctx.coll,
			`SELECT c.id, c._sinkPartition, [${parts}] AS pk FROM c WHERE c._isEdge = true AND ARRAY_CONTAINS(@ids, c.id)`,
			{ next, size: 1000, params: [{ name: '@ids', value: ids.slice(i, i + 1000) }] },
		);
		next = r.next;
		out.charge += r.charge;
		for (const { v } of r.rows) {
			const to = v.get('_sinkPartition');
			ends.set(keyOf(v.get('pk').map((/** @type {any} */ x) => x.get('v')), v.get('id')), parts[1] ? to : [to]);
		}
	}
	for (const e of out.edges.values()) e.to = vertex(ends.get(e.key) || [], e.v.get('inV'), e.v.get('inVLabel')).key;
	return out;
}

/** The edges out of some vertices. @param {Context} ctx @param {Found} found */
export async function edgesOf(ctx, found) {
	const list = [...found.vertices.values()].slice(0, 500),
		ids = list.map((n) => (n.pk.length === 1 && (n.pk[0] ?? null) !== null ? [n.pk[0], n.id] : n.id));
	if (ids.length === 2) ids.push(ids[1]); // V(['a', 'b']) may be the vertex b of the partition a
	const r = await evaluate(ctx, 'g.V(ids).outE().limit(1000)', undefined, { ids }),
		more = await elementsOf(ctx, r.rows);
	more.charge += r.charge;
	return more;
}

/** @type {any} */ let policy = null;
/** The address of the worker; under the page's policy only this one is trusted. */
function workerAddress() {
	const url = new URL('./layout.js', import.meta.url).href;
	if (!window.trustedTypes) return url;
	policy =
		policy ||
		window.trustedTypes.createPolicy('orrery-worker', {
			createScriptURL: (/** @type {string} */ s) => {
				if (s !== url) throw new TypeError('not the worker');
				return s;
			},
		});
	return policy.createScriptURL(url);
}

/**
 * @param {HTMLElement} el @param {Context} ctx @param {Found} found
 * @returns {{close: () => void, frames: () => number[]}}
 */
export function graphView(el, ctx, found) {
	const canvas = h('canvas', {
		class: 'canvas',
		role: 'img',
		'aria-label': 'The graph; the list beside it has the same content',
	});
	const list = h('div', { class: 'glist scroll', role: 'list', 'aria-label': 'Vertices and edges' }),
		legend = h('div', { class: 'legend' }),
		trouble = h('div');
	const filter = h('input', {
		type: 'search',
		placeholder: 'Find',
		'aria-label': 'Find a vertex or edge',
		oninput: () => drawList(),
	});
	const holder = h(
		'div',
		{ class: 'gholder' },
		canvas,
		legend,
		h(
			'div',
			{ class: 'gtools' },
			button('Zoom in', () => zoom(1.25), { icon: 'plus', only: true }),
			button('Zoom out', () => zoom(0.8), { icon: 'minus', only: true }),
			button('Fit', () => fit(true), { icon: 'fit', only: true }),
		),
	);
	const root = h(
		'div',
		{ class: 'graphview' },
		holder,
		h('div', { class: 'gside' }, h('div', { class: 'inline pad' }, filter), list),
	);
	fill(el, trouble, root);
	const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
	const { vertices, edges } = found;
	/** @type {Vertex[]} */ let nodes = [];
	/** @type {Edge[]} */ let links = [];
	/** @type {Map<string, string>} */ const colour = new Map();
	let scale = 1,
		ox = 0,
		oy = 0,
		chosen = '',
		frame = 0,
		round = 0,
		fitted = false,
		moved = false,
		closed = false;
	/** @type {number[]} */ const frames = [];
	const worker = new Worker(/** @type {any} */ (workerAddress()));
	worker.onmessage = (e) => {
		if (closed || e.data.round !== round) return;
		for (let i = 0; i < nodes.length; i++)
			if (nodes[i] !== drag) {
				nodes[i].x = e.data.x[i];
				nodes[i].y = e.data.y[i];
			}
		if (!fitted) fit();
		if (e.data.done) fitted = true;
		redraw();
	};

	function relayout(heat = 1) {
		nodes = [...vertices.values()];
		links = [...edges.values()].filter((x) => vertices.has(x.from) && vertices.has(x.to));
		nodes.forEach((n, i) => {
			n.at = i;
			if (!n.x && !n.y) {
				const r = 14 * Math.sqrt(i + 1),
					a = i * 2.4;
				n.x = r * Math.cos(a);
				n.y = r * Math.sin(a);
			}
			if (!colour.has(n.label)) colour.set(n.label, palette[colour.size % palette.length]);
		});
		round++;
		worker.postMessage({
			round,
			heat,
			n: nodes.length,
			edges: Int32Array.from(
				links.flatMap((l) => [
					/** @type {any} */ (vertices.get(l.from)).at,
					/** @type {any} */ (vertices.get(l.to)).at,
				]),
			),
			x: Float32Array.from(nodes, (n) => n.x),
			y: Float32Array.from(nodes, (n) => n.y),
			fixed: new Uint8Array(nodes.length),
		});
		fill(
			legend,
			[...colour].map(([l, k]) => h('span', null, h('i', { style: { background: k } }), l)),
		);
		drawList();
		redraw();
	}

	function drawList() {
		const w = filter.value.toLowerCase(),
			has = (/** @type {string} */ s) => !w || s.toLowerCase().includes(w);
		const vs = nodes.filter((n) => has(n.label + ' ' + n.id + ' ' + nameOf(n))),
			es = links.filter((l) => has(l.label + ' ' + l.id + ' ' + endsOf(l)));
		/** @type {Set<string>} */ const ids = new Set(),
			twins = new Set(nodes.map((n) => n.id).filter((id) => ids.has(id) || !ids.add(id)));
		const row = (/** @type {string} */ id, /** @type {any} */ content, /** @type {number} */ i) =>
			h(
				'button',
				{
					type: 'button',
					class: 'glink' + (id === chosen ? ' on' : ''),
					'data-id': id,
					tabindex: i ? '-1' : '0',
					onclick: () => choose(id, true),
				},
				content,
			);
		fill(
			list,
			h('div', { class: 'dim small pad' }, `${count(nodes.length)} vertices, ${count(links.length)} edges`),
			[
				...vs
					.slice(0, 300)
					.map((n, i) =>
						row(
							n.key,
							[
								h('i', { style: { background: colour.get(n.label) } }),
								h('span', { class: 'ellipsis' }, nameOf(n)),
								twins.has(n.id) && h('span', { class: 'dim small' }, n.pk.map(show).join(', ')),
								h('span', { class: 'dim small' }, n.label),
							],
							i,
						),
					),
				...es
					.slice(0, 300)
					.map((l, i) =>
						row(
							'e:' + l.key,
							[
								h('span', { class: 'dim' }, '→'),
								h('span', { class: 'ellipsis' }, endsOf(l)),
								h('span', { class: 'dim small' }, l.label),
							],
							vs.length + i,
						),
					),
			].map((/** @type {any} */ x) => h('div', { role: 'listitem' }, x)),
		);
	}
	rove(list, 'button');

	/** @param {Edge} l */
	function endsOf(l) {
		return `${vertices.get(l.from)?.id} – ${vertices.get(l.to)?.id}`;
	}
	/** @param {Vertex} n */
	function nameOf(n) {
		const p = n.v?.get('properties')?.get('name');
		const v = Array.isArray(p) ? p[0]?.get?.('value') : undefined;
		return typeof v === 'string' ? v : n.id;
	}

	function redraw() {
		if (!frame && !closed) frame = requestAnimationFrame(paint);
	}
	function paint() {
		const began = performance.now();
		frame = 0;
		const ratio = devicePixelRatio || 1,
			w = holder.clientWidth,
			hgt = holder.clientHeight;
		if (!w || !hgt) return;
		if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(hgt * ratio)) {
			canvas.width = Math.round(w * ratio);
			canvas.height = Math.round(hgt * ratio);
		}
		const css = getComputedStyle(document.documentElement),
			text = css.getPropertyValue('--text'),
			line = css.getPropertyValue('--strong'),
			accent = css.getPropertyValue('--accent'),
			panel = css.getPropertyValue('--panel');
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, w, hgt);
		c.translate(w / 2 + ox, hgt / 2 + oy);
		c.scale(scale, scale);
		const names = scale > 0.55 && nodes.length * scale < 600;
		c.lineWidth = 1.2 / Math.max(scale, 0.5);
		c.strokeStyle = line;
		c.fillStyle = line;
		c.beginPath();
		for (const l of links) {
			const a = /** @type {Vertex} */ (vertices.get(l.from)),
				b = /** @type {Vertex} */ (vertices.get(l.to));
			if (a === b) (c.moveTo(a.x + 22, a.y - 12), c.arc(a.x + 12, a.y - 12, 10, 0, 7));
			else {
				c.moveTo(a.x, a.y);
				c.lineTo(b.x, b.y);
			}
		}
		c.stroke();
		if (scale > 0.3) {
			c.beginPath();
			for (const l of links) {
				const a = /** @type {Vertex} */ (vertices.get(l.from)),
					b = /** @type {Vertex} */ (vertices.get(l.to)),
					dx = b.x - a.x,
					dy = b.y - a.y,
					d = Math.hypot(dx, dy);
				if (d < 40) continue;
				const ux = dx / d,
					uy = dy / d,
					x = b.x - ux * 15,
					y = b.y - uy * 15;
				c.moveTo(x, y);
				c.lineTo(x - ux * 8 - uy * 3.6, y - uy * 8 + ux * 3.6);
				c.lineTo(x - ux * 8 + uy * 3.6, y - uy * 8 - ux * 3.6);
			}
			c.fill();
		}
		const mark = chosen.startsWith('e:') ? edges.get(chosen.slice(2)) : null;
		if (mark) {
			const a = vertices.get(mark.from),
				b = vertices.get(mark.to);
			if (a && b) {
				c.strokeStyle = accent;
				c.lineWidth = 3;
				c.beginPath();
				c.moveTo(a.x, a.y);
				c.lineTo(b.x, b.y);
				c.stroke();
			}
		}
		c.font = '11px system-ui, sans-serif';
		c.textAlign = 'center';
		if (names) {
			c.fillStyle = css.getPropertyValue('--dim');
			for (const l of links) {
				if (links.length > 16 && l.from !== chosen && l.to !== chosen) continue;
				const a = /** @type {Vertex} */ (vertices.get(l.from)),
					b = /** @type {Vertex} */ (vertices.get(l.to));
				c.fillText(l.label.slice(0, 20), (a.x + b.x) / 2, (a.y + b.y) / 2 - 3);
			}
		}
		for (const [label, k] of colour) {
			c.fillStyle = k;
			c.beginPath();
			for (const n of nodes)
				if (n.label === label) {
					c.moveTo(n.x + 12, n.y);
					c.arc(n.x, n.y, 12, 0, 7);
				}
			c.fill();
		}
		const on = vertices.get(chosen);
		if (on) {
			c.strokeStyle = accent;
			c.lineWidth = 3;
			c.beginPath();
			c.arc(on.x, on.y, 16, 0, 7);
			c.stroke();
		}
		if (names) {
			c.lineWidth = 3;
			c.strokeStyle = panel;
			c.fillStyle = text;
			for (const n of nodes) {
				const t = nameOf(n).slice(0, 24);
				c.strokeText(t, n.x, n.y + 26);
				c.fillText(t, n.x, n.y + 26);
			}
		}
		frames.push(performance.now() - began);
		if (frames.length > 600) frames.shift();
	}

	/** @param {boolean} [asked] */
	function fit(asked) {
		if (!nodes.length) return;
		const xs = nodes.map((n) => n.x),
			ys = nodes.map((n) => n.y),
			l = Math.min(...xs),
			r = Math.max(...xs),
			t = Math.min(...ys),
			b = Math.max(...ys);
		scale = Math.min(1.5, (holder.clientWidth - 90) / (r - l + 1), (holder.clientHeight - 110) / (b - t + 1));
		scale = Math.max(0.05, scale);
		ox = (-(l + r) / 2) * scale;
		oy = (-(t + b) / 2) * scale;
		if (asked) moved = false;
		if (asked) redraw();
	}
	/** @param {number} by @param {number} [x] @param {number} [y] */
	function zoom(by, x = 0, y = 0) {
		moved = fitted = true;
		const to = Math.max(0.05, Math.min(4, scale * by)),
			k = to / scale;
		ox = x - (x - ox) * k;
		oy = y - (y - oy) * k;
		scale = to;
		redraw();
	}

	/** @param {string} id @param {boolean} [centre] */
	function choose(id, centre) {
		chosen = id;
		const n = vertices.get(id),
			e = id.startsWith('e:') ? edges.get(id.slice(2)) : null;
		const seen =
			n &&
			Math.abs(n.x * scale + ox) < holder.clientWidth / 2 - 30 &&
			Math.abs(n.y * scale + oy) < holder.clientHeight / 2 - 40;
		if (centre && n && !seen) {
			moved = fitted = true;
			ox = -n.x * scale;
			oy = -n.y * scale;
		}
		for (const b of list.querySelectorAll('.glink')) b.classList.toggle('on', b.getAttribute('data-id') === id);
		redraw();
		if (n)
			inspect(n.label + ' ' + n.id, n.v, [
				button(n.open ? 'Neighbours are shown' : 'Expand', () => expand(n), {
					icon: 'plus',
					disabled: !!n.open,
				}),
				button('Hide', () => hide(n), {}),
			]);
		else if (e) inspect(e.label + ' ' + e.id, e.v, []);
	}
	/** @param {string} title @param {any} v @param {any[]} actions */
	function inspect(title, v, actions) {
		const props = v?.get('properties');
		const rows =
			props instanceof Obj
				? props.members.map(([k, x]) => [
						k,
						Array.isArray(x)
							? x.map((/** @type {any} */ y) => show(y.get ? y.get('value') : y)).join(', ')
							: show(x),
					])
				: [];
		detail(
			ctx.inspector,
			title,
			h(
				'div',
				{ class: 'page' },
				rows.length
					? h(
							'dl',
							{ class: 'kv' },
							rows.map(([k, x]) => [h('dt', null, k), h('dd', { class: 'mono' }, x)]),
						)
					: h('p', { class: 'dim' }, v ? 'No properties.' : 'Expand it to read its properties.'),
				v &&
					h(
						'details',
						null,
						h('summary', null, 'As the API answers'),
						h('pre', { class: 'code', tabindex: '0' }, pretty(print(v))),
					),
			),
			() => {
				redraw();
				/** @type {HTMLElement|null} */ (list.querySelector('.on, button'))?.focus();
			},
			actions,
		);
		ctx.inspector.classList.add('slim');
		requestAnimationFrame(redraw);
	}

	/** Reads the neighbours of a vertex. @param {Vertex} n */
	async function expand(n) {
		try {
			/** @type {Record<string, any>} */ const given = { i: n.id };
			const its = n.pk.map((v, i) => {
				[given['k' + i], given['v' + i]] = [found.paths[i].replace(/^\/"?|"$/g, ''), v];
				if (given['k' + i].includes('/')) return '';
				return v === undefined ? `.hasNot(k${i})` : `.has(k${i}, v${i})`;
			});
			const r = await evaluate(
				ctx,
				`g.V(i)${its.join('')}.union(__.identity(), __.bothE().limit(200), __.both().limit(200))`,
				undefined,
				given,
			);
			const more = await elementsOf(ctx, r.rows);
			let added = 0;
			for (const [k, v] of more.vertices) {
				const old = vertices.get(k);
				if (old) {
					if (v.v) old.v = v.v;
				} else {
					added++;
					v.x = n.x + 60 * Math.cos(added);
					v.y = n.y + 60 * Math.sin(added);
					vertices.set(k, v);
				}
			}
			for (const [k, v] of more.edges) if (!edges.has(k)) edges.set(k, v);
			n.open = true;
			relayout(0.5);
			choose(n.key);
			note(`${count(added)} vertices added, ${(r.charge + more.charge).toFixed(2)} RU.`, 'ok');
		} catch (e) {
			fill(trouble, problem(e));
		}
	}
	/** @param {Vertex} n */
	function hide(n) {
		vertices.delete(n.key);
		for (const [k, e] of edges) if (e.from === n.key || e.to === n.key) edges.delete(k);
		chosen = '';
		ctx.inspector.hidden = true;
		relayout(0.3);
	}

	/** @param {PointerEvent|WheelEvent|MouseEvent} e */
	const place = (e) => {
		const b = canvas.getBoundingClientRect();
		return { x: e.clientX - b.left - b.width / 2, y: e.clientY - b.top - b.height / 2 };
	};
	/** @param {{x: number, y: number}} p */
	const hit = (p) => {
		const x = (p.x - ox) / scale,
			y = (p.y - oy) / scale,
			r = 15 / Math.min(1, scale);
		let best = null,
			d = r * r;
		for (const n of nodes) {
			const q = (n.x - x) ** 2 + (n.y - y) ** 2;
			if (q < d) {
				d = q;
				best = n;
			}
		}
		return best;
	};
	/** @type {Vertex|null} */ let drag = null;
	/** @type {{x: number, y: number}|null} */ let from = null;
	let pulled = false;
	canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ e) => {
		from = place(e);
		drag = hit(from);
		pulled = false;
		canvas.setPointerCapture(e.pointerId);
	});
	canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ e) => {
		if (!from) {
			canvas.style.cursor = hit(place(e)) ? 'pointer' : 'grab';
			return;
		}
		const p = place(e),
			dx = p.x - from.x,
			dy = p.y - from.y;
		if (!pulled && Math.hypot(dx, dy) < 4) return;
		pulled = moved = fitted = true;
		if (drag) {
			drag.x += dx / scale;
			drag.y += dy / scale;
		} else {
			ox += dx;
			oy += dy;
		}
		from = p;
		redraw();
	});
	canvas.addEventListener('pointerup', () => {
		if (!pulled && drag) choose(drag.key);
		if (pulled && drag) relayout(0.02);
		drag = null;
		from = null;
	});
	canvas.addEventListener('dblclick', (/** @type {MouseEvent} */ e) => {
		const n = hit(place(e));
		if (n && !n.open) expand(n);
	});
	canvas.addEventListener(
		'wheel',
		(/** @type {WheelEvent} */ e) => {
			e.preventDefault();
			const p = place(e);
			zoom(Math.exp(-e.deltaY / 500), p.x, p.y);
		},
		{ passive: false },
	);
	// what was fitted is fitted again when the room changes, unless it was moved by hand
	const watch = new ResizeObserver(() => {
		if (!moved) fit();
		redraw();
	});
	watch.observe(holder);
	const theme = new MutationObserver(redraw);
	theme.observe(document.documentElement, { attributes: true });
	relayout();
	return {
		close() {
			closed = true;
			worker.terminate();
			watch.disconnect();
			theme.disconnect();
		},
		frames: () => frames,
	};
}

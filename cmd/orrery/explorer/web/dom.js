// Elements without markup: all text goes in as text, so nothing that a database holds can become code.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Makes an element. A property that begins with "on" is a listener, "class" the classes, "style" an object of
 * properties, a property that the element has and that is no string is set as such, and anything else an attribute.
 * @param {string} tag
 * @param {Props|null} [props]
 * @param {...any} kids
 * @returns {any}
 */
export function h(tag, props, ...kids) {
	const el = document.createElement(tag);
	for (const [k, v] of Object.entries(props || {})) {
		if (v === undefined || v === null || (v === false && !(k in el))) continue;
		if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
		else if (k === 'class') el.className = v;
		else if (k === 'style')
			for (const [p, x] of Object.entries(v)) el.style.setProperty(p, /** @type {string} */ (x));
		else if (k === 'value' || (typeof v !== 'string' && k in el)) /** @type {any} */ (el)[k] = v;
		else el.setAttribute(k, v === true ? '' : String(v));
	}
	add(el, kids);
	return el;
}

/** @param {Node} el @param {any[]} kids */
export function add(el, kids) {
	for (const k of kids) {
		if (Array.isArray(k)) add(el, k);
		else if (k instanceof Node) el.appendChild(k);
		else if (k !== null && k !== undefined && k !== false) el.appendChild(document.createTextNode(String(k)));
	}
}

/** Replaces the children of an element. @param {Element} el @param {...any} kids */
export function fill(el, ...kids) {
	el.replaceChildren();
	add(el, kids);
	return el;
}

/** @type {Record<string, string>} the outlines of the icons, on a grid of 16 by 16 */
const shapes = {
	db: 'M2.5 4c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2zm0 0v8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V4M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2',
	box: 'M2 5l6-3 6 3v6l-6 3-6-3zM2 5l6 3 6-3M8 8v6',
	plus: 'M8 3v10M3 8h10',
	minus: 'M3 8h10',
	fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
	close: 'M4 4l8 8M12 4l-8 8',
	right: 'M6 3.5L10.5 8 6 12.5',
	down: 'M3.5 6L8 10.5 12.5 6',
	refresh: 'M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3',
	trash: 'M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5M7 7v4M9 7v4',
	save: 'M3 3h8l2 2v8H3zM5.5 3v3h4V3M5 13V9h6v4',
	play: 'M5 3.2v9.6L12.5 8z',
	stop: 'M4.5 4.5h7v7h-7z',
	sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9',
	menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
	search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3L14 14',
	copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
	plug: 'M5.5 2v3M10.5 2v3M3.5 5h9v2.5a4.5 4.5 0 0 1-9 0zM8 12v2.5',
	pulse: 'M1.5 8.5h3L6.5 3l3 10 2-4.5h3',
	out: 'M6.5 3H3v10h3.5M6 8h7.5M11 5.5L13.5 8 11 10.5',
	star: 'M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z',
	upload: 'M8 10.5V2.5M4.8 5.5L8 2.5l3.2 3M2.5 11v2.5h11V11',
	download: 'M8 2.5v8M4.8 7.5L8 10.5l3.2-3M2.5 11v2.5h11V11',
	code: 'M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5',
};

/** An icon, which is no text for screen readers. @param {string} name */
export function icon(name) {
	const svg = document.createElementNS(SVG, 'svg');
	svg.setAttribute('viewBox', '0 0 16 16');
	svg.setAttribute('class', 'icon');
	svg.setAttribute('aria-hidden', 'true');
	const path = document.createElementNS(SVG, 'path');
	path.setAttribute('d', shapes[name] || '');
	svg.appendChild(path);
	return svg;
}

/** @param {string} tag @param {Record<string, any>} attrs @param {...any} kids @returns {SVGElement} */
export function svg(tag, attrs, ...kids) {
	const el = document.createElementNS(SVG, tag);
	for (const [k, v] of Object.entries(attrs)) if (v !== undefined && v !== null) el.setAttribute(k, String(v));
	add(el, kids);
	return el;
}

/**
 * A button.
 * @param {string} label @param {(e: Event) => any} act @param {{icon?: string, class?: string, title?: string, only?: boolean, disabled?: boolean}} [o]
 */
export function button(label, act, o = {}) {
	return h(
		'button',
		{
			type: 'button',
			class: 'button ' + (o.class || '') + (o.only ? ' only' : ''),
			title: o.title || (o.only ? label : undefined),
			'aria-label': o.only ? label : undefined,
			disabled: !!o.disabled,
			onclick: act,
		},
		o.icon && icon(o.icon),
		!o.only && label,
	);
}

/** @param {number} n */
export function count(n) {
	return Number(n).toLocaleString('en-US');
}

/** @param {number} n bytes */
export function bytes(n) {
	for (const u of ['B', 'KB', 'MB', 'GB']) {
		if (n < 1000) return (n < 10 && u !== 'B' ? n.toFixed(1) : Math.round(n)) + ' ' + u;
		n /= 1000;
	}
	return n.toFixed(1) + ' TB';
}

/** @param {number} n milliseconds */
export function ms(n) {
	return n < 10 ? n.toFixed(1) + ' ms' : n < 10000 ? Math.round(n) + ' ms' : (n / 1000).toFixed(1) + ' s';
}

/** A number that counts, with what it is. @param {any} n @param {string} what @param {string} [kind] */
export function fact(n, what, kind = '') {
	return h('div', { class: 'fact' }, h('b', { class: kind }, n), h('span', null, what));
}

/** A short number. @param {number} n */
export function short(n) {
	return n < 10000 ? count(n) : n < 1e6 ? (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + 'k' : (n / 1e6).toFixed(1) + 'M';
}

/** Calls f once things have been quiet for a while. @param {() => void} f @param {number} wait */
export function later(f, wait) {
	/** @type {any} */ let timer;
	return () => {
		clearTimeout(timer);
		timer = setTimeout(f, wait);
	};
}

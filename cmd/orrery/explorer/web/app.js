// The page: log-in, tree, tabs, and which pane is shown.

import { h, fill, icon, button, count, bytes, short, ms } from './dom.js';
import { always, call, connection, feed, leave, link, log, logged, logIn, logOut, lose, onLoggedOut } from './api.js';
import { load, keep, route, address, go, setParams, session, definitions } from './state.js';
import { offer, palette } from './keys.js';
import { tree } from './parts/tree.js';
import { note, problem } from './parts/dialog.js';

/** The panes: name, title, and the module. */
const containerPanes = [
	['items', 'Items'],
	['query', 'Query'],
	['graph', 'Graph'],
	['partitions', 'Partitions'],
	['feed', 'Feed'],
	['scripts', 'Scripts'],
	['settings', 'Settings'],
];
const serverPanes = [
	['connect', 'Connect', 'plug'],
	['health', 'Health', 'pulse'],
	['requests', 'Requests', 'menu'],
];

const app = /** @type {HTMLElement} */ (document.getElementById('app'));
/** @type {any} */ let ui = null;
/** @type {(() => void)|void} */ let unmount;
/** @type {Map<string, any[]>} */ const containers = new Map();
/** @type {string[]} */ let databases = [];
/** @type {Map<string, any>} */ const counts = new Map();
/** @type {Map<string, number>} */ const units = new Map();
/** @type {Set<string>} */ const open = new Set(load('open', []));
/** @type {{db: string, coll: string, hash: string}[]} */ let tabs = load('tabs', []);
let filter = '';

const system = matchMedia('(prefers-color-scheme: dark)');
/** Shows the theme that was chosen, or the system's. */
function theme() {
	document.documentElement.dataset.theme = load('theme', '') || (system.matches ? 'dark' : 'light');
}
theme();
system.addEventListener('change', theme);
function nextTheme() {
	keep('theme', document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
	theme();
}

/** The log-in. @param {any} hello @param {string} [why] */
function login(hello, why) {
	const key = h('input', {
		type: 'password',
		class: 'wide mono',
		autocomplete: 'off',
		id: 'key',
		value: hello.publicKey || '',
		required: true,
	});
	const trouble = h('p', { class: 'bad', role: 'alert' }, why || '');
	fill(
		app,
		h(
			'main',
			{ class: 'login', 'data-region': '' },
			h(
				'form',
				{
					class: 'card',
					onsubmit: async (e) => {
						e.preventDefault();
						try {
							const r = await logIn(key.value.trim());
							if (r.token) start(r);
							else {
								fill(
									trouble,
									r.message + (r.code === 'WrongKey' ? ' “orrery connect” prints it.' : ''),
								);
								key.focus();
								key.select();
							}
						} catch {
							fill(trouble, 'The server can’t be reached.');
						}
					},
				},
				h('img', { src: 'logo.svg', alt: '', class: 'logo big' }),
				h('h1', null, 'Orrery'),
				h('p', { class: 'dim' }, 'Account ', h('b', null, hello.account)),
				h('label', { class: 'field', for: 'key' }, h('span', null, 'Account key'), key),
				hello.publicKey
					? h(
							'p',
							{ class: 'dim small' },
							'This server uses the well-known key of the emulator, which is filled in.',
						)
					: h(
							'p',
							{ class: 'dim small' },
							'The key in the connection string. A read-only key opens the page for reading.',
						),
				trouble,
				h('button', { type: 'submit', class: 'button primary wide', autofocus: true }, 'Log in'),
			),
		),
	);
	/** @type {HTMLElement} */ (app.querySelector(hello.publicKey ? 'button' : 'input')).focus();
}

/** @param {any} hello */
function start(hello) {
	Object.assign(session, hello);
	frame();
	show();
	refresh();
	performance.mark('shell');
}

/** Builds the frame of the page. */
function frame() {
	const side = h('nav', {
		class: 'side',
		id: 'side',
		'data-region': '',
		'aria-label': 'Databases',
		onkeydown: (e) => {
			if (e.key === 'Escape') closeSide(menu);
		},
	});
	// in a narrow window the side is a sheet that this button opens
	const menu = button(
		'Databases',
		() => {
			if (document.body.classList.toggle('side-open')) t.focus();
		},
		{ icon: 'menu', only: true, class: 'quiet narrow' },
	);
	const search = h('input', {
		type: 'search',
		placeholder: 'Filter',
		'aria-label': 'Filter databases and containers',
		spellcheck: 'false',
		oninput: () => {
			filter = search.value.toLowerCase();
			draw();
		},
		onkeydown: (e) => {
			if (e.key === 'ArrowDown') {
				e.preventDefault();
				t.focus();
			}
		},
	});
	const holder = h('div', { class: 'scroll' });
	const servers = h(
		'div',
		{ class: 'servers', role: 'group', 'aria-label': 'Server' },
		serverPanes.map(([id, title, i]) =>
			h('a', { href: address({ kind: 'server', pane: id }), 'data-pane': id }, icon(i), title),
		),
	);
	const t = tree(holder, 'Databases and containers');
	fill(
		side,
		h(
			'div',
			{ class: 'bar' },
			search,
			button('New container', () => ask(), { icon: 'plus', only: true, disabled: session.readOnly }),
			button('Refresh', () => refresh(true), { icon: 'refresh', only: true }),
		),
		holder,
		servers,
	);
	const strip = h('div', { class: 'strip', role: 'navigation', 'aria-label': 'Open containers' });
	const nav = h('div', { class: 'panes', role: 'navigation', 'aria-label': 'Views' });
	const body = h('div', { class: 'pane', id: 'pane' });
	const inspector = h('aside', {
		class: 'inspector',
		'data-region': '',
		'aria-label': 'Details',
		hidden: true,
		tabindex: '-1',
	});
	const crumb = h('h1', { class: 'crumb' });
	const logLine = h(
		'button',
		{
			type: 'button',
			class: 'logline',
			title: 'Requests of this page',
			'aria-expanded': 'false',
			onclick: () => toggleLog(),
		},
		'Requests',
	);
	const logBody = h('div', { class: 'logbody', hidden: true });
	const lost = h('span', { role: 'status' });
	fill(
		app,
		h(
			'a',
			{
				class: 'skip',
				href: '#pane',
				onclick: (e) => {
					e.preventDefault();
					focusPane();
				},
			},
			'Skip to the content',
		),
		h(
			'header',
			{ class: 'top', 'data-region': '' },
			menu,
			h(
				'a',
				{ class: 'brand', href: '#/connect', 'aria-label': 'Orrery' },
				h('img', { class: 'logo', src: 'logo.svg', alt: '' }),
				h('span', null, 'Orrery'),
			),
			crumb,
			h('span', { class: 'grow' }),
			lost,
			session.readOnly && h('span', { class: 'tag' }, 'read-only'),
			h(
				'button',
				{ type: 'button', class: 'button find', 'aria-label': 'Commands, Ctrl+K', onclick: () => palette() },
				icon('search'),
				h('span', { class: 'wideonly' }, 'Go to'),
				h('kbd', { class: 'wideonly' }, 'Ctrl K'),
			),
			button('Light or dark', nextTheme, { icon: 'sun', only: true, class: 'quiet' }),
			session.auth &&
				button(
					'Log out',
					async () => {
						await logOut();
						location.reload();
					},
					{ icon: 'out', only: true, class: 'quiet' },
				),
		),
		h(
			'div',
			{ class: 'body' },
			side,
			h('div', { class: 'shade', onclick: () => closeSide(menu) }),
			h(
				'main',
				{ class: 'main' },
				strip,
				nav,
				h(
					'div',
					{ class: 'split' },
					h(
						'div',
						{ class: 'paneholder', 'data-region': '', role: 'region', 'aria-label': 'View', tabindex: '0' },
						body,
					),
					inspector,
				),
			),
		),
		h('footer', { class: 'log', 'data-region': '', 'aria-label': 'Request log' }, logLine, logBody),
	);
	ui = { side, t, strip, nav, body, inspector, crumb, logLine, logBody, servers, lost };
	draw();
	logged.add(drawLog);
}

/** Closes the side where it is a sheet, and puts the focus elsewhere. @param {HTMLElement} to */
function closeSide(to) {
	const open = document.body.classList.contains('side-open');
	document.body.classList.remove('side-open');
	if (open) to.focus();
}

function focusPane() {
	const el =
		/** @type {HTMLElement|null} */ (ui.body.querySelector('[tabindex="0"], textarea, input, button')) ||
		ui.body.parentElement;
	el.focus();
}

/** Reads the databases, their containers and sizes. @param {boolean} [again] */
async function refresh(again) {
	if (again) {
		containers.clear();
		definitions.clear();
	}
	const sizing = sizes();
	try {
		databases = (await feed('/dbs', 'Databases', { quiet: true, signal: always })).map((d) => d.id).sort();
		if (!load('open', null) && databases.length <= 5) databases.forEach((d) => open.add(d));
		await Promise.all(databases.filter((d) => open.has(d)).map((d) => colls(d)));
	} catch (e) {
		if (/** @type {any} */ (e).status !== 401) note(/** @type {Error} */ (e));
	}
	await sizing;
	const there = tabs.filter((t) =>
		containers.has(t.db) ? definitions.has(t.db + '/' + t.coll) : databases.includes(t.db) || !databases.length,
	);
	if (there.length < tabs.length) {
		tabs = there; // somebody has dropped the others
		keep('tabs', tabs);
		drawTabs();
	}
	draw();
	performance.mark('tree');
	feed('/offers', 'Offers', { quiet: true, signal: always })
		.then((list) => {
			units.clear();
			for (const o of list)
				units.set(
					o.resource.replace(/\/$/, ''),
					o.content.offerAutopilotSettings
						? o.content.offerAutopilotSettings.maxThroughput
						: o.content.offerThroughput,
				);
			draw();
		})
		.catch(() => {});
}

let sized = '';
/** Reads how many items the containers have. @returns {Promise<boolean>} whether that has changed */
async function sizes() {
	if (!session.apis.includes('admin')) return false;
	try {
		const list = JSON.parse((await call('admin', 'GET', '/status', { quiet: true, signal: always })).text).containers || [];
		const is = list.map((/** @type {any} */ c) => [c.database, c.container, c.items, c.bytes, c.partitions?.length]).join();
		if (is === sized) return false;
		sized = is;
		counts.clear();
		for (const c of list) counts.set(c.database + '/' + c.container, c);
		return true;
	} catch {
		return false;
	}
}

/** The tree follows what programs write, while somebody can see it. */
setInterval(async () => {
	if (ui && !connection.lost && !document.hidden && (await sizes())) draw();
}, 5000);

/** @param {string} db */
async function colls(db) {
	const list = await feed(link(db) + '/colls', 'DocumentCollections', { quiet: true, signal: always });
	list.sort((a, b) => (a.id < b.id ? -1 : 1));
	containers.set(db, list);
	for (const c of list) definitions.set(db + '/' + c.id, c);
}

/** The definition of a container. @param {string} db @param {string} coll */
async function definition(db, coll) {
	const key = db + '/' + coll;
	if (!definitions.has(key))
		definitions.set(key, JSON.parse((await call('nosql', 'GET', link(db, coll), { quiet: true, signal: always })).text));
	return definitions.get(key);
}

/** Draws the tree. */
function draw() {
	if (!ui) return;
	const r = route();
	const nodes = databases
		.map((db) => {
			const kids = containers.get(db);
			const isOpen = open.has(db) || (!!filter && !!kids);
			const shown =
				kids &&
				kids
					.filter((c) => !filter || (db + ' ' + c.id).toLowerCase().includes(filter))
					.map((c) => {
						const s = counts.get(db + '/' + c.id),
							ru = units.get(String(c._self).replace(/\/$/, '')),
							on = r.kind === 'container' && r.db === db && r.coll === c.id,
							n = s?.partitions?.length || 1;
						const facts = [
							s && bytes(s.bytes),
							s && n + ' partition' + (n > 1 ? 's' : ''),
							ru && count(ru) + ' RU/s',
						]
							.filter(Boolean)
							.join(' · ');
						return {
							id: 'c/' + db + '/' + c.id,
							label: c.id,
							icon: 'box',
							note: s ? short(s.items) : '',
							on,
							sub: on ? facts : '',
							title: `${c.id}: partition key ${(c.partitionKey?.paths || []).join(', ')}; ${facts}`,
							choose: () => {
								closeSide(ui.body.parentElement);
								go({ kind: 'container', db, coll: c.id, pane: 'items' });
							},
							actions: session.readOnly
								? []
								: [{ label: 'Drop container ' + c.id, icon: 'trash', act: () => dropOne(db, c.id) }],
						};
					});
			return {
				id: 'd/' + db,
				label: db,
				title: db,
				icon: 'db',
				kids: shown || null,
				open: isOpen,
				note: '',
				toggle: (/** @type {boolean} */ to) => toggle(db, to),
				actions: session.readOnly
					? []
					: [
							{ label: 'New container in ' + db, icon: 'plus', act: () => ask(db) },
							{ label: 'Drop database ' + db, icon: 'trash', act: () => drop(db) },
						],
			};
		})
		.filter((n) => !filter || n.label.toLowerCase().includes(filter) || (n.kids && n.kids.length));
	ui.t.set(nodes);
}

/** @param {string} db @param {boolean} to */
async function toggle(db, to) {
	if (to) open.add(db);
	else open.delete(db);
	keep('open', [...open]);
	if (to && !containers.has(db)) {
		try {
			await colls(db);
		} catch (e) {
			note(/** @type {Error} */ (e));
		}
	}
	draw();
}

/** @param {string} [db] */
async function ask(db) {
	const { create } = await import('./parts/create.js');
	const made = await create(db, databases);
	if (!made) return;
	open.add(made.db);
	await refresh(true);
	go({ kind: 'container', db: made.db, coll: made.coll, pane: 'items' });
}

/** @param {string} db */
async function drop(db) {
	const { dropDatabase } = await import('./parts/create.js');
	const list = containers.get(db) || (await colls(db).then(() => containers.get(db))) || [];
	if (
		!(await dropDatabase(
			db,
			list.length,
			list.reduce((n, c) => n + (counts.get(db + '/' + c.id)?.items || 0), 0),
		))
	)
		return;
	closeTabs((t) => t.db === db);
	await refresh(true);
}

/** @param {string} db @param {string} coll */
async function dropOne(db, coll) {
	const { dropContainer } = await import('./parts/create.js');
	if (!(await dropContainer(db, coll, counts.get(db + '/' + coll)?.items))) return;
	closeTabs((t) => t.db === db && t.coll === coll);
	await refresh(true);
}

/** @param {(t: {db: string, coll: string}) => boolean} which */
function closeTabs(which) {
	const r = route();
	tabs = tabs.filter((t) => !which(t));
	keep('tabs', tabs);
	if (r.kind === 'container' && which(r)) location.hash = tabs.length ? tabs[tabs.length - 1].hash : '#/connect';
	else drawTabs();
}

function drawTabs() {
	const r = route();
	fill(
		ui.strip,
		tabs.map((t) => {
			const on = r.kind === 'container' && t.db === r.db && t.coll === r.coll;
			return h(
				'span',
				{ class: 'tab' + (on ? ' on' : '') },
				h(
					'a',
					{ href: t.hash, 'aria-current': on ? 'page' : undefined, title: t.db + ' / ' + t.coll },
					icon('box'),
					h('span', { class: 'ellipsis' }, t.coll),
				),
				h(
					'button',
					{
						type: 'button',
						class: 'button only quiet',
						'aria-label': 'Close ' + t.coll,
						onclick: () => closeTabs((x) => x.db === t.db && x.coll === t.coll),
					},
					icon('close'),
				),
			);
		}),
	);
	ui.strip.hidden = !tabs.length;
}

/** @type {string} */ let shown = '';

/** Shows the pane that the address names. */
async function show() {
	if (!ui) return;
	const r = route(),
		key = [r.kind, r.db, r.coll, r.pane].join('\n');
	if (r.kind === 'container') {
		const hash = address(r),
			t = tabs.find((x) => x.db === r.db && x.coll === r.coll);
		if (t) t.hash = hash;
		else tabs = [...tabs.slice(-11), { db: r.db, coll: r.coll, hash }];
		keep('tabs', tabs);
	}
	closeSide(ui.body.parentElement);
	drawTabs();
	draw();
	const panes = r.kind === 'container' ? containerPanes : [];
	fill(
		ui.nav,
		panes.map(([id, title]) =>
			h(
				'a',
				{
					href: address({ kind: 'container', db: r.db, coll: r.coll, pane: id }),
					class: id === r.pane ? 'on' : '',
					'aria-current': id === r.pane ? 'page' : undefined,
				},
				title,
			),
		),
	);
	ui.nav.hidden = !panes.length;
	for (const el of [ui.nav.querySelector('.on'), ui.strip.querySelector('.on')])
		el?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	for (const a of ui.servers.children) {
		const on = r.kind === 'server' && a.dataset.pane === r.pane;
		a.classList.toggle('on', on);
		if (on) a.setAttribute('aria-current', 'page');
		else a.removeAttribute('aria-current');
	}
	const title = [...containerPanes, ...serverPanes].find((p) => p[0] === r.pane)?.[1] || '';
	fill(
		ui.crumb,
		r.kind === 'container'
			? [h('span', { class: 'dim' }, r.db), h('span', { class: 'dim' }, ' / '), h('b', null, r.coll)]
			: h('b', null, title),
	);
	document.title = (r.kind === 'container' ? r.coll + ' · ' : '') + title + ' · Orrery';
	if (key === shown && ui.moved) {
		ui.moved(r.params);
		return;
	}
	shown = key;
	if (unmount) {
		try {
			unmount();
		} catch {
			/* a pane that can't be left is gone anyway */
		}
	}
	unmount = undefined;
	leave();
	ui.inspector.hidden = true;
	ui.inspector.className = 'inspector';
	fill(ui.inspector);
	fill(ui.body);
	ui.body.className = 'pane pane-' + r.pane;
	try {
		if (!title) throw new Error('There is no page of this name.');
		/** @type {Pane} */ const pane = await import(`./panes/${r.pane}.js`);
		if (shown !== key) return;
		unmount = pane.mount(ui.body, {
			db: r.db,
			coll: r.coll,
			params: r.params,
			readOnly: session.readOnly,
			setParams: (p) => {
				setParams(p);
				remember();
			},
			definition: () => definition(r.db, r.coll),
			items: () => counts.get(r.db + '/' + r.coll)?.items,
			refresh: () => refresh(true),
			inspector: ui.inspector,
		});
		performance.mark('pane');
	} catch (e) {
		fill(ui.body, problem(e));
	}
}

/** Keeps the address with its parameters for the tab. */
function remember() {
	const r = route(),
		t = tabs.find((x) => x.db === r.db && x.coll === r.coll);
	if (t) {
		t.hash = address(r);
		keep('tabs', tabs);
		drawTabs();
	}
}

function names() {
	return [...containers].flatMap(([db, list]) => list.map((c) => ({ db, coll: c.id })));
}

function toggleLog() {
	const hide = !ui.logBody.hidden;
	ui.logBody.hidden = hide;
	ui.logLine.setAttribute('aria-expanded', String(!hide));
	if (!hide) drawLog();
}

/** Draws the log of the page's own requests. */
function drawLog() {
	const last = log[0];
	fill(
		ui.logLine,
		h(
			'span',
			{ class: 'mono ellipsis' },
			last ? [h('b', null, last.method), ' ', last.door + last.path, ' '] : 'No requests yet',
		),
		last && h('span', { class: 'tag ' + (last.error ? 'bad' : 'ok') }, last.status || '–'),
		last && h('span', { class: 'dim' }, (last.charge ? last.charge + ' RU · ' : '') + ms(last.ms)),
		h(
			'span',
			{ class: 'dim right' },
			h('span', { class: 'wideonly' }, 'Requests of this page '),
			ui.logBody.hidden ? '▴' : '▾',
		),
	);
	if (ui.logBody.hidden) return;
	if (!ui.logRows) {
		const heads = ['Time', 'API', 'Method', 'Path', 'Status', 'RU', 'Time taken'].map((x) => h('th', null, x));
		ui.logRows = h('tbody');
		fill(ui.logBody, h('table', { class: 'table' }, h('thead', null, h('tr', null, heads)), ui.logRows));
	}
	// Rows that are shown stay where they are: one of them may have the focus.
	const rows = ui.logRows.children;
	log.slice(0, 100).forEach((l, i) => {
		const row = logLines.get(l) || logRow(l);
		if (rows[i] !== row) ui.logRows.insertBefore(row, rows[i] || null);
	});
	while (rows.length > 100) rows[100].remove();
}

/** @type {WeakMap<Logged, HTMLElement>} */ const logLines = new WeakMap();

/** @param {Logged} l */
function logRow(l) {
	const open = async () => (await import('./parts/exchange.js')).show(l);
	const row = h(
		'tr',
		null,
		h('td', { class: 'mono' }, new Date(l.at).toTimeString().slice(0, 8)),
		h('td', null, l.door),
		h('td', { class: 'mono' }, l.method),
		h('td', { class: 'mono path' }, h('button', { type: 'button', class: 'linklike', onclick: open }, l.path)),
		h('td', null, h('span', { class: 'tag ' + (l.error ? 'bad' : 'ok') }, l.status || '–')),
		h('td', { class: 'num' }, l.charge || ''),
		h('td', { class: 'num' }, ms(l.ms)),
	);
	logLines.set(l, row);
	return row;
}

offer('page', () => {
	if (!ui) return [];
	const r = route();
	return [
		...names().map((n) => ({
			name: n.db + ' / ' + n.coll,
			group: 'Open',
			act: () => go({ kind: 'container', ...n, pane: 'items' }),
		})),
		...(r.kind === 'container'
			? containerPanes.map(([id, title], i) => ({
					name: title,
					group: 'View',
					keys: 'Alt+' + (i + 1),
					act: () => go({ kind: 'container', db: r.db, coll: r.coll, pane: id }),
				}))
			: []),
		...serverPanes.map(([id, title]) => ({
			name: title,
			group: 'Server',
			act: () => go({ kind: 'server', pane: id }),
		})),
		{ name: 'Refresh the tree', keys: 'Alt+R', act: () => refresh(true) },
		{ name: 'Light or dark', act: nextTheme },
		{ name: 'Requests of this page', keys: 'Alt+L', act: toggleLog },
		...(session.readOnly ? [] : [{ name: 'New container', keys: 'Alt+N', act: () => ask(r.db) }]),
	];
});

addEventListener('hashchange', show);
onLoggedOut.f = () => {
	if (ui) begin('The session has ended.');
};

/** Opens the page, or the log-in; without the server it waits for it. @param {string} [why] */
async function begin(why) {
	ui = null;
	shown = '';
	logged.delete(drawLog);
	try {
		const hello = await logIn();
		connection.lost = false;
		if (hello.token) start(hello);
		else if (hello.account !== undefined) login(hello, why);
		else fill(app, problem(hello));
	} catch {
		const next = 'Is it running? The page tries again every second.';
		fill(app, problem({ message: 'The server can’t be reached.', next, code: 'NoReply' }));
		setTimeout(() => begin(why), 1000);
	}
}

/** Says that the server is away, and looks for it. What is on the page stays; drafts too, if a new log-in is needed. */
connection.f = async () => {
	if (!ui) return;
	if (!connection.lost) {
		fill(ui.lost);
		refresh(true);
		// a pane that could read nothing begins again; a query runs when its user says so
		if (route().pane !== 'query' && ui.body.querySelector('.problem')) {
			shown = '';
			show();
		}
		return;
	}
	fill(ui.lost, h('span', { class: 'tag bad' }, 'The server can’t be reached'));
	while (ui && connection.lost) {
		await new Promise((done) => setTimeout(done, 1000));
		const r = await logIn().catch(() => null);
		if (r?.token) lose(false);
		else if (r && ui) begin('The server was started again.');
	}
};

begin();

// Dialogs that make and drop databases and containers.

import { h, button, count } from '../dom.js';
import { call, link } from '../api.js';
import { dialog, confirm, note, problem } from './dialog.js';
import { fill } from '../dom.js';

/** @param {string|undefined} db @param {string[]} databases @returns {Promise<{db: string, coll: string}|null>} */
export function create(db, databases) {
	return dialog('New container', (done) => {
		const f = {
			db: h('input', {
				type: 'text',
				class: 'wide',
				value: db || '',
				list: 'databases',
				required: true,
				autocomplete: 'off',
				spellcheck: 'false',
				autofocus: !db,
				'aria-label': 'Database',
			}),
			coll: h('input', {
				type: 'text',
				class: 'wide',
				required: true,
				autocomplete: 'off',
				spellcheck: 'false',
				autofocus: !!db,
				'aria-label': 'Container',
			}),
			key: h('input', {
				type: 'text',
				class: 'wide mono',
				value: '/id',
				required: true,
				spellcheck: 'false',
				'aria-label': 'Partition key',
			}),
			unique: h('input', { type: 'text', class: 'wide mono', spellcheck: 'false', 'aria-label': 'Unique keys' }),
			ru: h('input', { type: 'number', class: 'wide', min: '400', step: '100', 'aria-label': 'Throughput' }),
			auto: h('input', { type: 'checkbox', id: 'auto' }),
		};
		const trouble = h('div', { role: 'alert' });
		const field = (/** @type {string} */ t, /** @type {any} */ el, /** @type {string} */ hint) =>
			h('label', { class: 'field' }, h('span', null, t), el, hint && h('span', { class: 'dim small' }, hint));
		return h(
			'form',
			{
				onsubmit: async (e) => {
					e.preventDefault();
					const name = f.db.value.trim(),
						coll = f.coll.value.trim();
					const paths = f.key.value
						.split(',')
						.map((/** @type {string} */ s) => s.trim())
						.filter(Boolean);
					/** @type {any} */ const spec = {
						id: coll,
						partitionKey: { paths, kind: paths.length > 1 ? 'MultiHash' : 'Hash', version: 2 },
					};
					if (f.unique.value.trim())
						spec.uniqueKeyPolicy = {
							uniqueKeys: f.unique.value.split(';').map((/** @type {string} */ k) => ({
								paths: k
									.split(',')
									.map((s) => s.trim())
									.filter(Boolean),
							})),
						};
					/** @type {Record<string, string>} */ const headers = {};
					if (f.ru.value)
						headers[f.auto.checked ? 'x-ms-cosmos-offer-autopilot-settings' : 'x-ms-offer-throughput'] = f
							.auto.checked
							? JSON.stringify({ maxThroughput: Number(f.ru.value) })
							: f.ru.value;
					try {
						if (!databases.includes(name))
							await call('nosql', 'POST', '/dbs', { body: JSON.stringify({ id: name }), also: [409] });
						await call('nosql', 'POST', link(name) + '/colls', { headers, body: JSON.stringify(spec) });
						note(`Container ${coll} is there.`, 'ok');
						done({ db: name, coll });
					} catch (x) {
						fill(trouble, problem(x));
					}
				},
			},
			h(
				'datalist',
				{ id: 'databases' },
				databases.map((d) => h('option', { value: d })),
			),
			field('Database', f.db, 'A new name makes a database.'),
			field('Container', f.coll, ''),
			field(
				'Partition key',
				f.key,
				'A path such as /customer; up to three, separated by commas, for a hierarchical key.',
			),
			field(
				'Unique keys',
				f.unique,
				'Optional: paths that are unique together, such as /email; several keys are separated by semicolons.',
			),
			field('Throughput in RU/s', f.ru, 'Optional.'),
			h('label', { class: 'check', for: 'auto' }, f.auto, 'This is the most of an autoscale throughput'),
			trouble,
			h(
				'div',
				{ class: 'buttons' },
				button('Cancel', () => done()),
				h('button', { type: 'submit', class: 'button primary' }, 'Create'),
			),
		);
	});
}

/** @param {string} db @param {number} n containers @param {number} items */
export async function dropDatabase(db, n, items) {
	if (
		!(await confirm(
			'Drop database',
			`${db} has ${count(n)} container${n === 1 ? '' : 's'} with ${count(items)} item${items === 1 ? '' : 's'}. All of it will be gone.`,
			'Drop database',
			db,
		))
	)
		return false;
	return attempt(() => call('nosql', 'DELETE', link(db)), `Database ${db} is dropped.`);
}

/** @param {string} db @param {string} coll @param {number|undefined} items */
export async function dropContainer(db, coll, items) {
	if (
		!(await confirm(
			'Drop container',
			`${coll} ${items === undefined ? 'and its items' : `has ${count(items)} item${items === 1 ? '' : 's'}, which`} will be gone.`,
			'Drop container',
			coll,
		))
	)
		return false;
	return attempt(() => call('nosql', 'DELETE', link(db, coll)), `Container ${coll} is dropped.`);
}

/** @param {() => Promise<any>} f @param {string} done */
async function attempt(f, done) {
	try {
		await f();
		note(done, 'ok');
		return true;
	} catch (e) {
		note(/** @type {Error} */ (e));
		return false;
	}
}

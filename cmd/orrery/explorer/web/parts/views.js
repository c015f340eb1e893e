// One item through all four APIs, each with the request that reads it.

import { h, fill, button, ms } from '../dom.js';
import { call, link, enc, mongo, query } from '../api.js';
import { evaluate } from '../lang/gremlin.js';
import { relax } from '../lang/mongo.js';
import { Num, print, show, at } from '../json.js';
import { session } from '../state.js';
import { pretty } from './exchange.js';
import { copy, problem } from './dialog.js';
import { colours } from '../json.js';

const j = JSON.stringify;
/** @param {string} s */
const q = (s) => "'" + s.replaceAll("'", "'\\''") + "'";

/**
 * @param {HTMLElement} el @param {{db: string, coll: string, def: any, id: string, key: string, v: any}} o
 * @returns {{close: () => void}}
 */
export function fourViews(el, o) {
	const { db, coll, id, key } = o;
	// an id is one of its logical partition only: the paths of the partition key, with their values as JSON
	/** @type {[string, string][]} */ const keys = (o.def.partitionKey?.paths || [])
		.filter((/** @type {string} */ p) => !/^\/(_?id|_partitionKey)$/.test(p))
		.map((/** @type {string} */ p) => [p, at(o.v, p)])
		.filter((/** @type {any} */ [, v]) => v instanceof Num || /string|boolean/.test(typeof v))
		.map((/** @type {any} */ [p, v]) => [p, print(v)]);
	let live = true,
		last = '';
	/** @type {any} */ let timer = 0;
	const cards = [
		{
			api: 'nosql',
			title: 'NoSQL',
			read: nosql,
			code: () => ({
				curl: `curl -X GET "$NOSQL${link(db, coll)}/docs/${enc(id)}" \\\n  -H "authorization: $SIGNATURE" -H "x-ms-date: $DATE" -H 'x-ms-version: 2020-07-15' \\\n  -H ${q('x-ms-documentdb-partitionkey: ' + key)}`,
				Python: `client.get_database_client(${j(db)}).get_container_client(${j(coll)}).read_item(${j(id)}, partition_key=${py(key)})`,
				JavaScript: `await client.database(${j(db)}).container(${j(coll)}).item(${j(id)}, ${one(key)}).read()`,
			}),
		},
		{
			api: 'table',
			title: 'Table',
			read: table,
			code: () => ({
				curl: `curl "$TABLE/${coll}(PartitionKey=${odata(partition())},RowKey=${odata(id)})" \\\n  -H "authorization: SharedKeyLite $ACCOUNT:$SIGNATURE" -H "x-ms-date: $DATE" -H 'accept: application/json;odata=fullmetadata'`,
				Python: `TableClient.from_connection_string(conn, ${j(coll)}).get_entity(${j(partition())}, ${j(id)})`,
			}),
		},
		{
			api: 'mongo',
			title: 'MongoDB',
			read: mongoDoc,
			code: () => ({
				mongosh: `db.getSiblingDB(${j(db)}).getCollection(${j(coll)}).findOne(${filter()})`,
				Python: `client[${j(db)}][${j(coll)}].find_one(${py(filter())})`,
			}),
		},
		{
			api: 'gremlin',
			title: 'Gremlin',
			read: vertex,
			code: () => ({
				curl: `curl "$GREMLIN" -u ${q(`/dbs/${db}/colls/${coll}`)}":$KEY" \\\n  -d ${q(j({ gremlin: script() }))}`,
				Gremlin: script(),
				Python: `client.submit(${j(script())}).all().result()`,
			}),
		},
	]
		.filter((c) => session.apis.includes(c.api))
		.map((c) => {
			const body = h('pre', { class: 'code', tabindex: '0', 'aria-label': c.title }),
				cost = h('span', { class: 'dim small right' });
			return {
				...c,
				body,
				cost,
				el: h(
					'section',
					{ class: 'card view' },
					h('div', { class: 'inline' }, h('h3', null, c.title), cost),
					body,
					h(
						'details',
						null,
						h('summary', null, 'The request'),
						Object.entries(c.code()).map(([k, t]) =>
							h(
								'div',
								null,
								h(
									'div',
									{ class: 'inline' },
									h('b', { class: 'small' }, k),
									button('Copy ' + k, () => copy(String(t)), {
										icon: 'copy',
										only: true,
										class: 'quiet',
									}),
								),
								h('pre', { class: 'code wrap', tabindex: '0', 'aria-label': k }, String(t)),
							),
						),
					),
				),
			};
		});
	fill(
		el,
		h(
			'div',
			{ class: 'views' },
			cards.map((c) => c.el),
		),
	);
	read();

	function partition() {
		const v = o.v.get('$pk') ?? at(o.v, o.def.partitionKey?.paths?.[0] || '');
		return typeof v === 'string' ? v : show(v);
	}
	function script(i = j(id), p = keys[0]?.[1]) {
		if (keys.length === 1) i = `[${p}, ${i}]`;
		return `g.V(${i}).fold().coalesce(__.unfold(), __.E(${i}))`;
	}

	async function nosql() {
		const r = await call('nosql', 'GET', link(db, coll) + '/docs/' + enc(id), {
			headers: { 'x-ms-documentdb-partitionkey': key },
			quiet: true,
		});
		return { text: r.text, charge: r.charge, ms: r.ms };
	}
	async function table() {
		if (db !== 'TablesDB') return { note: 'The Table API sees the containers of the database TablesDB.' };
		const r = await call(
			'table',
			'GET',
			`/${enc(coll)}(PartitionKey=${enc(odata(partition()))},RowKey=${enc(odata(id))})`,
			{ headers: { accept: 'application/json;odata=fullmetadata' }, quiet: true },
		);
		return { text: r.text, charge: r.charge, ms: r.ms };
	}
	async function mongoDoc() {
		const r = await mongo(db, `{"find":${j(coll)},"filter":${filter()},"limit":1}`, { quiet: true });
		const v = r.v.get('cursor').get('firstBatch')[0];
		return v
			? { text: print(relax(v)), charge: r.charge, ms: r.ms }
			: { note: 'MongoDB finds no document with this _id.' };
	}
	function filter() {
		const fields = keys.map(([p, v]) => {
			const name = j(p.slice(1).replaceAll('"', '').replaceAll('/', '.'));
			return name[1] === '$' ? `"$expr":{"$eq":[{"$getField":{"$literal":${name}}},{"$literal":${v}}]}` : `${name}:${v}`;
		});
		return `{${[`"_id":${filterId()}`, ...fields].join()}}`;
	}
	function filterId() {
		try {
			const v = JSON.parse(id);
			if (v && typeof v === 'object' && Object.keys(v)[0]?.startsWith('$')) return id;
		} catch {
			/* a text */
		}
		return j(id);
	}
	async function vertex() {
		const p = keys[0] && JSON.parse(keys[0][1]),
			r = await evaluate({ db, coll }, script('i', 'p'), undefined, { i: id, p });
		return r.rows[0]
			? { text: r.rows[0].text, charge: r.charge, ms: r.ms }
			: { note: 'Gremlin finds no vertex or edge with this id.' };
	}

	async function read() {
		await Promise.all(
			cards.map(async (c) => {
				try {
					const r = /** @type {any} */ (await c.read());
					fill(
						c.body,
						r.note
							? h('span', { class: 't-note wrapped' }, r.note)
							: colours(pretty(r.text)).map(([k, t]) => (k ? h('span', { class: 't-' + k }, t) : t)),
					);
					fill(c.cost, r.text ? `${r.charge ? r.charge + ' RU · ' : ''}${ms(r.ms)}` : '');
				} catch (e) {
					fill(c.body, problem(e));
				}
			}),
		);
		timer = setTimeout(look, 1500);
	}
	/** Reads again when the item has changed. */
	async function look() {
		if (!live) return;
		try {
			const r = await query(db, coll, 'SELECT VALUE c._etag FROM c WHERE c.id = @id', {
				params: [{ name: '@id', value: id }],
				key: /\{\}/.test(key) ? undefined : key,
				quiet: true,
			});
			const tag = r.rows.map((x) => x.text).join();
			if (last && tag !== last) {
				last = tag;
				await read();
				return;
			}
			last = tag;
		} catch {
			/* the next look will say */
		}
		if (live) timer = setTimeout(look, 1500);
	}
	return {
		close() {
			live = false;
			clearTimeout(timer);
		},
	};
}

/** @param {string} s */
function odata(s) {
	return "'" + s.replaceAll("'", "''") + "'";
}
/** A key as an argument of Python. @param {string} key */
function py(key) {
	const v = one(key);
	return v.replaceAll('true', 'True').replaceAll('false', 'False').replaceAll('null', 'None');
}
/** @param {string} key */
function one(key) {
	try {
		const v = JSON.parse(key);
		return v.length === 1 ? j(v[0]) : key;
	} catch {
		return key;
	}
}
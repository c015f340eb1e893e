// Filters of the Table API.

import { call, enc, rows } from '../api.js';
import { painter, word } from './words.js';

const words = 'eq ne gt ge lt le and or not true false datetime guid binary'.split(' ');

/** @type {Language} */
export const odata = {
	name: 'odata',
	title: 'OData',
	api: 'table',
	only: 'TablesDB',
	sample: () => "PartitionKey eq 'boiler' and Celsius gt 64",
	paint: painter(words),
	complete: (text, at, names) =>
		word(text, at, () => [
			'PartitionKey',
			'RowKey',
			'Timestamp',
			...names.filter((n) => !n.includes('.') && !n.startsWith('$') && n !== 'id'),
			...words,
		]),
	code: (c, text) =>
		`TableClient.from_connection_string(conn, ${JSON.stringify(c.coll)}).query_entities(${JSON.stringify(text)})`,
	async page(ctx, text, o) {
		const next = o.next ? '&' + o.next : '',
			filter = text.trim() ? '&$filter=' + enc(text.trim()) : '';
		const r = await call('table', 'GET', `/${enc(ctx.coll)}()?$top=${o.size || 100}${filter}${next}`, {
			headers: { accept: 'application/json;odata=nometadata' },
			signal: o.signal,
		});
		const more = ['NextPartitionKey', 'NextRowKey']
			.map((n) => [n, r.headers.get('x-ms-continuation-' + n)])
			.filter((x) => x[1] !== null);
		return {
			rows: rows(r.text, 'value'),
			next: more.map(([n, v]) => n + '=' + enc(String(v))).join('&'),
			charge: r.charge,
			ms: r.ms,
			plan: null,
		};
	},
};

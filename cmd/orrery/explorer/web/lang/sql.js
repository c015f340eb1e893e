// The query language of the NoSQL API.

import { query } from '../api.js';
import { painter, word } from './words.js';

const words =
	'SELECT TOP VALUE DISTINCT FROM IN JOIN WHERE AND OR NOT BETWEEN LIKE ESCAPE EXISTS ARRAY ORDER BY RANK ASC DESC GROUP OFFSET LIMIT AS null true false undefined udf'.split(
		' ',
	);
const functions =
	'ABS ARRAY_CONCAT ARRAY_CONTAINS ARRAY_LENGTH ARRAY_SLICE AVG CONCAT CONTAINS COUNT DateTimeAdd DateTimeDiff DateTimePart ENDSWITH FLOOR GetCurrentDateTime IS_ARRAY IS_BOOL IS_DEFINED IS_NULL IS_NUMBER IS_OBJECT IS_STRING INDEX_OF LEFT LENGTH LOWER MAX MIN REGEXMATCH REPLACE ROUND STARTSWITH ST_DISTANCE ST_WITHIN SUBSTRING SUM ToString TRIM UPPER'.split(
		' ',
	);

/** @type {Language} */
export const sql = {
	name: 'sql',
	title: 'SQL',
	api: 'nosql',
	sample: () => 'SELECT * FROM c',
	paint: painter(words, { comment: '--[^\\n]*', insensitive: true }),
	complete: (text, at, names) =>
		word(text, at, (before, typed) => {
			// names that the query itself gives: "FROM c" is complete, and so is "c" wherever it is typed
			if (/\b(from|join|as|in)\s+$/i.test(before)) return [];
			if (!/\.$/.test(before) && typed && new RegExp('\\b(from|join|as)\\s+' + typed.replaceAll('$', '\\$') + '(?![\\w$])', 'i').test(text)) return [];
			const p = /([A-Za-z_$][\w$.]*)\.$/.exec(before);
			if (!p) return [...words, ...functions];
			const path = p[1].split('.').slice(1).join('.');
			return [
				...new Set(
					names
						.filter((n) => !path || n.startsWith(path + '.'))
						.map((n) => (path ? n.slice(path.length + 1) : n).split('.')[0]),
				),
			];
		}),
	code: (c, text) =>
		`client.get_database_client(${JSON.stringify(c.db)}).get_container_client(${JSON.stringify(c.coll)}).query_items(${JSON.stringify(text)}, enable_cross_partition_query=True)`,
	async page(ctx, text, o) {
		const r = await query(ctx.db, ctx.coll, text, { ...o, explain: !o.next });
		const x = r.headers.get('x-orrery-explain');
		return { rows: r.rows, next: r.next, charge: r.charge, ms: r.ms, plan: x ? JSON.parse(x) : null };
	},
};

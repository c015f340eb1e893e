// Traversals of the Gremlin API.

import { call, rows, ApiError } from '../api.js';
import { parse, print, Obj } from '../json.js';
import { painter, word } from './words.js';

const steps =
	'V E addV addE property drop has hasLabel hasId hasNot values valueMap elementMap properties id label out in both outE inE bothE outV inV bothV otherV where filter not and or is as select by order limit range tail skip count sum max min mean group groupCount dedup path simplePath repeat times until emit union coalesce choose optional project fold unfold constant local sample aggregate store cap tree mergeV mergeE profile'.split(
		' ',
	);

/** Runs a script on a container's graph. @param {Place} ctx @param {string} text @param {AbortSignal} [signal] @param {Record<string, any>} [bindings]
 * @returns {Promise<Result>} */
export async function evaluate(ctx, text, signal, bindings) {
	// numbers keep their text
	const given = bindings ? `,"bindings":{${Object.entries(bindings).map(([k, v]) => `"${k}":${print(v ?? null)}`)}}` : '';
	const r = await call('gremlin', 'POST', '', {
		headers: { accept: 'application/vnd.gremlin-v1.0+json' },
		signal,
		body: `{"gremlin":${JSON.stringify(text)},"aliases":{"g":${JSON.stringify(ctx.db + '/' + ctx.coll)}}${given}}`,
	});
	const v = /** @type {Obj} */ (parse(r.text)),
		status = v.get('status');
	const code = Number(status.get('code').text),
		charge = Number(status.get('attributes')?.get('x-ms-total-request-charge')?.text || 0);
	if (code >= 300) throw new ApiError(code, 'Gremlin', String(status.get('message')));
	const result = r.text.slice(v.get('result').start, v.get('result').end);
	return { rows: rows(result, 'data'), next: '', charge, ms: r.ms, plan: null };
}

/** @type {Language} */
export const gremlin = {
	name: 'gremlin',
	title: 'Gremlin',
	api: 'gremlin',
	sample: () => 'g.V().limit(100)',
	paint: painter(['g', '__', 'true', 'false', 'null', 'T', 'P', 'Order', 'Scope'], { comment: '//[^\\n]*' }),
	complete: (text, at) =>
		word(text, at, (before) =>
			/\.$/.test(before)
				? steps
				: /\($/.test(before)
					? ['__', 'gt', 'gte', 'lt', 'lte', 'eq', 'neq', 'within', 'without', 'between', 'desc', 'asc']
					: ['g'],
		),
	code: (c, text) => `# user /dbs/${c.db}/colls/${c.coll}\nclient.submit(${JSON.stringify(text)}).all().result()`,
	page: (ctx, text, o) => evaluate(ctx, text, o.signal),
	async explain(ctx, text, signal) {
		const w = /\b(addE|addV|drop|mergeE|mergeV|property)\b/.exec(text);
		if (w) throw new ApiError(0, 'Writes', `The plan would run the script again, which has the step ${w[0]}.`);
		const r = await evaluate(ctx, text.trim().replace(/;$/, '') + '.profile()', signal);
		return { profile: JSON.parse(r.rows[0].text) };
	},
};

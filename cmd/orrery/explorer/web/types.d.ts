// The types that several files of the page share. Only the checker reads this file: it isn't served.

// Names of the browser that the checker doesn't know.
interface Window { trustedTypes?: any }

/** The properties of an element: see h. */
interface Props {
	onkeydown?: (e: KeyboardEvent) => any; onclick?: (e: any) => any; onchange?: (e: any) => any;
	onsubmit?: (e: Event) => any; onmousedown?: (e: Event) => any;
	[name: string]: any;
}

/** An address of the page. */
interface Route { kind: string, db: string, coll: string, pane: string, params: Record<string, string> }

/** What a pane gets: where it is, and what it may do to the page. */
interface Context {
	db: string, coll: string, params: Record<string, string>, readOnly: boolean,
	setParams: (params: Record<string, string | undefined>) => void,
	definition: () => Promise<any>, /** how many items the container has, if that is known */ items: () => number | undefined, refresh: () => Promise<void>, inspector: HTMLElement
}
interface Pane { mount: (el: HTMLElement, ctx: Context) => (() => void) | void }

/** A command of the palette. */
interface Command { name: string, keys?: string, act: () => any, group?: string }

interface CallOptions {
	headers?: Record<string, string>, body?: string, signal?: AbortSignal,
	/** not in the log, unless it fails */ quiet?: boolean,
	/** the ms to wait before a throttled request is sent again, else 0 */ throttled?: (res: Response, text: string) => number,
	/** statuses that are no errors */ also?: number[]
}
interface Reply { status: number, headers: Headers, text: string, charge: number, ms: number }

/** A request in the page's log. */
interface Logged {
	n: number, at: number, door: string, method: string, path: string, status: number, charge: number, ms: number,
	headers: Record<string, string>, body: string, replyHeaders: [string, string][], reply: string, error: string
}

/** A row: its value, and the text that it was read from. */
interface Row { v: any, text: string }
interface Page { rows: Row[], next: string }
interface Column { name: string, get: (v: any) => any }
interface GridOptions {
	label: string, page: (next: string) => Promise<Page>, columns: (rows: Row[]) => Column[], open: (row: Row) => any,
	failed: (e: any) => any, /** what is shown when there are no rows */ empty?: string, key?: (row: Row) => string, pick?: boolean, picked?: (n: number) => any, moved?: () => any,
	/** how the rows are sorted: the name of a column, after "-" if they fall */ sorted?: () => string,
	/** sorts by a column */ sort?: (name: string) => any
}

/** An element of the tree. */
interface Node2 {
	id: string, label: string, icon: string, note?: string, /** a line below the label */ sub?: string, title?: string,
	kids?: Node2[] | null, open?: boolean, on?: boolean, choose?: () => any, toggle?: (open: boolean) => any,
	actions?: { label: string, icon: string, act: () => any }[]
}

/** A page of the rows of a query. */
interface Result { rows: Row[], next: string, charge: number, ms: number, plan: any }
interface Place { db: string, coll: string }

/** A language of queries. */
interface Language {
	name: string, title: string, api: string, /** the only database that has it */ only?: string,
	sample: (coll: string) => string, paint: (text: string) => [string, string][],
	/** names: paths of items; colls: containers of the database */
	complete: (text: string, at: number, names: string[], colls: string[]) => { from: number, choices: string[] } | null,
	code: (ctx: Place, text: string) => string,
	page: (ctx: Place, text: string, o: { next?: string, size?: number, signal?: AbortSignal }) => Promise<Result>,
	explain?: (ctx: Place, text: string, signal: AbortSignal) => Promise<any>,
	/** tells the server that the page which next stands for isn't wanted */ forget?: (ctx: Place, next: string) => void
}

/** Metrics by their name. */
type Metrics = Map<string, { labels: Record<string, string>, value: number }[]>

/** key tells it apart from others, pk has the values of its partition key. */
interface Vertex { key: string, pk: any[], id: string, label: string, v: any, x: number, y: number, at: number, open?: boolean }
/** from and to are keys of vertices. */
interface Edge { key: string, id: string, label: string, v: any, from: string, to: string }
/** paths are those of the partition key, none if ids alone are unique. */
interface Found { paths: string[], vertices: Map<string, Vertex>, edges: Map<string, Edge>, charge: number }

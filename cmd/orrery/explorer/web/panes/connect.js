// How programs connect: connection strings, and a short program for each client.

import { h, fill, button } from '../dom.js';
import { call } from '../api.js';
import { copy, problem } from '../parts/dialog.js';
import { load, keep } from '../state.js';

/** @param {HTMLElement} el */
export function mount(el) {
	const page = h('div', { class: 'page' });
	fill(el, page);
	call('admin', 'GET', '/orrery/connect', { quiet: true })
		.then((r) => draw(JSON.parse(r.text)))
		.catch((e) => fill(page, problem(e)));

	/** @param {any} c */
	function draw(c) {
		const line = (/** @type {string} */ title, /** @type {string} */ text, more = '') =>
			h(
				'div',
				{ class: 'card' },
				h('h3', null, title),
				h('pre', { class: 'code wrap', tabindex: '0', 'aria-label': title }, text),
				more && h('p', { class: 'dim small' }, more),
				button('Copy', () => copy(text), { icon: 'copy' }),
			);
		const all = programs(c),
			names = Object.keys(all);
		let name = load('program', names[0]);
		if (!all[name]) name = names[0];
		const code = h('pre', { class: 'code', tabindex: '0', 'aria-label': 'Program' }),
			list = h('div', { class: 'seg wrap', role: 'group', 'aria-label': 'Clients' });
		const pick = (/** @type {string} */ n) => {
			name = n;
			keep('program', n);
			fill(code, all[n]);
			fill(
				list,
				names.map((x) =>
					h(
						'button',
						{
							type: 'button',
							'aria-pressed': String(x === n),
							onclick: () => {
								pick(x);
								/** @type {HTMLElement} */ (list.querySelector('[aria-pressed=true]')).focus();
							},
						},
						x,
					),
				),
			);
		};
		fill(
			page,
			h('h2', null, 'Connection strings'),
			h('p', { class: 'dim' }, 'Data: ' + c.data + (c.auth ? '' : '. No API asks for credentials.')),
			h(
				'div',
				{ class: 'cards' },
				c.nosql && line('NoSQL', c.nosql.connectionString),
				c.mongo && line('MongoDB', c.mongo.connectionString),
				c.table && line('Table', c.table.connectionString),
				c.gremlin &&
					line(
						'Gremlin',
						c.gremlin.endpoint + '\nuser ' + c.gremlin.username + '\nkey  ' + (c.key || '<key>'),
					),
			),
			names.length
				? [
						h('h2', null, 'Programs'),
						list,
						h('div', { class: 'gap' }),
						code,
						h(
							'div',
							{ class: 'buttons left' },
							button('Copy the program', () => copy(all[name]), { icon: 'copy' }),
						),
					]
				: null,
		);
		if (names.length) pick(name);
	}
}

/** @param {any} c @returns {Record<string, string>} */
function programs(c) {
	const key = c.key || '<key>',
		j = JSON.stringify;
	/** @type {Record<string, string>} */ const out = {};
	if (c.nosql) {
		out['NoSQL, Python'] =
			`# pip install azure-cosmos\nfrom azure.cosmos import CosmosClient\n\nclient = CosmosClient(${j(c.nosql.endpoint)}, ${j(key)})\nproducts = client.get_database_client("shop").get_container_client("products")\nfor item in products.query_items("SELECT * FROM c WHERE c.price > 50", enable_cross_partition_query=True):\n    print(item["id"], item["price"])\n`;
		out['NoSQL, JavaScript'] =
			`// npm install @azure/cosmos\nimport { CosmosClient } from "@azure/cosmos";\n\nconst client = new CosmosClient({ endpoint: ${j(c.nosql.endpoint)}, key: ${j(key)} });\nconst products = client.database("shop").container("products");\nconst { resources } = await products.items.query("SELECT * FROM c WHERE c.price > 50").fetchAll();\nfor (const item of resources) console.log(item.id, item.price);\n`;
		out['NoSQL, C#'] =
			`// dotnet add package Microsoft.Azure.Cosmos\nusing Microsoft.Azure.Cosmos;\n\nvar client = new CosmosClient(${j(c.nosql.connectionString)},\n    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway, LimitToEndpoint = true });\nvar products = client.GetContainer("shop", "products");\nusing var rows = products.GetItemQueryIterator<dynamic>("SELECT * FROM c WHERE c.price > 50");\nwhile (rows.HasMoreResults)\n    foreach (var item in await rows.ReadNextAsync()) Console.WriteLine(item.id);\n`;
		out['NoSQL, Go'] =
			`// go get github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos\nclient, err := azcosmos.NewClientFromConnectionString(${j(c.nosql.connectionString)}, nil)\nif err != nil {\n\tlog.Fatal(err)\n}\nproducts, err := client.NewContainer("shop", "products")\nif err != nil {\n\tlog.Fatal(err)\n}\nitem, err := products.ReadItem(ctx, azcosmos.NewPartitionKeyString("kitchen"), "kettle-1", nil)\nfmt.Println(string(item.Value), err)\n`;
	}
	if (c.mongo) {
		out['MongoDB, mongosh'] =
			`mongosh ${j(c.mongo.connectionString)}\n\nuse shop\ndb.customers.find({ points: { $gt: 100 } })\n`;
		out['MongoDB, Python'] =
			`# pip install pymongo\nfrom pymongo import MongoClient\n\nclient = MongoClient(${j(c.mongo.connectionString)})\nfor c in client.shop.customers.find({"points": {"$gt": 100}}):\n    print(c["_id"], c["points"])\n`;
		out['MongoDB, JavaScript'] =
			`// npm install mongodb\nimport { MongoClient } from "mongodb";\n\nconst client = await MongoClient.connect(${j(c.mongo.connectionString)});\nfor await (const c of client.db("shop").collection("customers").find({ points: { $gt: 100 } })) console.log(c._id, c.points);\nawait client.close();\n`;
	}
	if (c.table)
		out['Table, Python'] =
			`# pip install azure-data-tables\nfrom azure.data.tables import TableClient\n\ntable = TableClient.from_connection_string(${j(c.table.connectionString)}, "devicelog")\nfor e in table.query_entities("PartitionKey eq 'boiler' and Alarm eq true"):\n    print(e["RowKey"], e["Celsius"])\n`;
	if (c.gremlin) {
		out['Gremlin, Python'] =
			`# pip install gremlinpython\nfrom gremlin_python.driver import client, serializer\n\nc = client.Client(${j(c.gremlin.endpoint)}, "g", username="/dbs/graphs/colls/g", password=${j(key)},\n                  message_serializer=serializer.GraphSONSerializersV2d0())\nprint(c.submit("g.V('SEA').out('flight').values('name')").all().result())\nc.close()\n`;
		out['Gremlin, JavaScript'] =
			`// npm install gremlin\nimport gremlin from "gremlin";\n\nconst auth = new gremlin.driver.auth.PlainTextSaslAuthenticator("/dbs/graphs/colls/g", ${j(key)});\nconst client = new gremlin.driver.Client(${j(c.gremlin.endpoint)}, { authenticator: auth, traversalsource: "g", mimeType: "application/vnd.gremlin-v2.0+json" });\nconsole.log((await client.submit("g.V('SEA').out('flight').values('name')")).toArray());\nawait client.close();\n`;
	}
	return out;
}

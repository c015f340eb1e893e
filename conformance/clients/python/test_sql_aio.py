"""azure-cosmos for Python, asynchronous."""

import asyncio
import os
import unittest

from azure.core import MatchConditions
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from sqlcase import ENDPOINT, KEY, STRICT


class Async(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = CosmosClient(ENDPOINT, KEY)
        self.db = await self.client.create_database(f"pyaio-{os.getpid()}-{self._testMethodName}")

    async def asyncTearDown(self):
        await self.client.delete_database(self.db.id)
        await self.client.close()

    async def refused(self, status, awaitable):
        with self.assertRaises(exceptions.CosmosHttpResponseError) as e:
            await awaitable
        self.assertEqual(e.exception.status_code, status, e.exception.message)

    async def filled(self, n, **options):
        c = await self.db.create_container("c", PartitionKey(path="/pk"), **options)
        await asyncio.gather(*(c.create_item({"id": f"i{i}", "pk": f"p{i % 6}", "n": i}) for i in range(n)))
        return c

    async def test_items(self):
        c = await self.filled(1)
        self.assertEqual((await c.read_item("i0", "p0"))["n"], 0)
        self.assertEqual((await c.replace_item("i0", {"id": "i0", "pk": "p0", "n": 1}))["n"], 1)
        self.assertEqual((await c.patch_item("i0", "p0", [{"op": "incr", "path": "/n", "value": 1}], filter_predicate="from c where c.n = 1"))["n"], 2)
        await self.refused(412, c.delete_item("i0", "p0", etag='"x"', match_condition=MatchConditions.IfNotModified))
        await c.delete_item("i0", "p0")
        await self.refused(404, c.read_item("i0", "p0"))

    async def test_patches_at_a_time_lose_none(self):
        c = await self.filled(1)
        await asyncio.gather(*(c.patch_item("i0", "p0", [{"op": "incr", "path": "/n", "value": 1}]) for _ in range(40)))
        self.assertEqual((await c.read_item("i0", "p0"))["n"], 40)

    async def test_batch(self):
        c = await self.filled(0)
        done = await c.execute_item_batch([("create", ({"id": "1", "pk": "a"},)), ("read", ("1",))], "a")
        self.assertEqual([r["statusCode"] for r in done], [201, 200])
        with self.assertRaises(exceptions.CosmosBatchOperationError):
            await c.execute_item_batch([("delete", ("none",))], "a")

    async def test_queries(self):
        c = await self.filled(60, offer_throughput=25100)
        rows = lambda text, **o: self.all(c.query_items(text, **o))
        self.assertEqual(len(await rows("SELECT * FROM c")), 60)
        self.assertEqual(len(await rows("SELECT * FROM c", partition_key="p1")), 10)
        self.assertEqual(await rows("SELECT VALUE c.n FROM c ORDER BY c.n DESC"), list(range(59, -1, -1)))
        self.assertEqual(await rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 2"), [5, 6])
        self.assertEqual(await rows("SELECT VALUE SUM(c.n) FROM c"), [1770])
        self.assertEqual(sorted(await rows("SELECT DISTINCT VALUE c.pk FROM c")), [f"p{i}" for i in range(6)])
        if STRICT:
            await self.refused(400, rows("SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk"))
        pages = [[r async for r in p] async for p in c.query_items("SELECT VALUE c.n FROM c", max_item_count=7).by_page()]
        self.assertEqual(sorted(sum(pages, [])), list(range(60)))
        self.assertEqual(len(await self.all(c.read_all_items())), 60)
        self.assertEqual(len(await c.read_items([(f"i{i}", f"p{i % 6}") for i in range(60)])), 60)

    async def all(self, pages):
        return [r async for r in pages]

    async def test_change_feed(self):
        c = await self.filled(30, offer_throughput=25100)
        self.assertEqual(len(await self.all(c.query_items_change_feed(start_time="Beginning"))), 30)
        self.assertEqual(len(await self.all(c.query_items_change_feed(start_time="Beginning", partition_key="p1"))), 5)
        ranges = [r async for r in c.read_feed_ranges()]
        self.assertEqual(sum([len(await self.all(c.query_items_change_feed(start_time="Beginning", feed_range=r))) for r in ranges]), 30)

    async def test_resources(self):
        c = await self.filled(0, offer_throughput=500)
        self.assertEqual((await c.get_throughput()).offer_throughput, 500)
        self.assertEqual((await c.replace_throughput(600)).offer_throughput, 600)
        self.assertEqual([x["id"] for x in await self.all(self.db.list_containers())], ["c"])
        user = await self.db.create_user({"id": "u"})
        permission = await user.create_permission({"id": "p", "permissionMode": "Read", "resource": c.container_link})
        async with CosmosClient(ENDPOINT, {c.container_link: permission.properties["_token"]}) as holder:
            seen = holder.get_database_client(self.db.id).get_container_client("c")
            await self.refused(403, seen.upsert_item({"id": "1", "pk": "a"}))
            self.assertEqual(await self.all(seen.query_items("SELECT * FROM c")), [])
        await self.refused(404, self.client.get_database_client("none").read())


if __name__ == "__main__":
    unittest.main()

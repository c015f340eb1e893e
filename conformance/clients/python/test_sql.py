"""azure-cosmos for Python against the NoSQL API. ../run.sh says where the server is."""

import itertools
import os
import unittest

from azure.cosmos import CosmosClient, PartitionKey, exceptions

KEY = os.environ["ORRERY_ACCOUNT_KEY"]
CROSS = {"enable_cross_partition_query": True}
names = itertools.count()


class SQL(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = CosmosClient(os.environ["ORRERY_NOSQL"], KEY)
        cls.db = cls.client.create_database_if_not_exists(f"py-{os.getpid()}")
        cls.c = cls.container(offer_throughput=20000)
        for i in range(60):
            cls.c.create_item({"id": f"i{i}", "pk": f"p{i % 6}", "n": i})

    @classmethod
    def tearDownClass(cls):
        cls.client.delete_database(cls.db.id)

    @classmethod
    def container(cls, key=None, **options):
        return cls.db.create_container(f"c{next(names)}", key or PartitionKey(path="/pk"), **options)

    def rows(self, text, **options):
        return list(self.c.query_items(text, **options))

    def refused(self, status, call, *args, **options):
        with self.assertRaises(exceptions.CosmosHttpResponseError) as e:
            call(*args, **options)
        self.assertEqual(e.exception.status_code, status, e.exception.message)
        return e.exception

    def test_item_life(self):
        c = self.container()
        made = c.create_item({"id": "1", "pk": "a", "deep": {"list": [1, None, True, 1.5, "x"]}})
        self.assertEqual(c.read_item("1", "a"), made)
        self.refused(409, c.create_item, {"id": "1", "pk": "a"})
        put = c.replace_item("1", {"id": "1", "pk": "a", "n": 2})
        self.assertEqual((put["_rid"], put["n"]), (made["_rid"], 2))
        self.assertNotEqual(put["_etag"], made["_etag"])
        self.assertEqual(c.patch_item("1", "a", [{"op": "incr", "path": "/n", "value": 3}])["n"], 5)
        c.upsert_item({"id": "2", "pk": "a"})
        c.delete_item("1", "a")
        self.refused(404, c.read_item, "1", "a")

    def test_etags(self):
        from azure.core import MatchConditions

        c = self.container()
        made = c.create_item({"id": "1", "pk": "a"})
        c.replace_item("1", {"id": "1", "pk": "a"}, etag=made["_etag"], match_condition=MatchConditions.IfNotModified)
        self.refused(412, c.replace_item, "1", {"id": "1", "pk": "a"}, etag=made["_etag"], match_condition=MatchConditions.IfNotModified)

    def test_batch(self):
        c = self.container()
        done = c.execute_item_batch([("create", ({"id": "b", "pk": "a"},)), ("read", ("b",)), ("delete", ("b",))], "a")
        self.assertEqual([r["statusCode"] for r in done], [201, 200, 204])
        with self.assertRaises(exceptions.CosmosBatchOperationError) as e:
            c.execute_item_batch([("create", ({"id": "b", "pk": "a"},)), ("delete", ("absent",))], "a")
        self.assertEqual(e.exception.error_index, 1)
        self.refused(404, c.read_item, "b", "a")

    def test_queries(self):
        self.assertEqual(len(self.rows("SELECT * FROM c", **CROSS)), 60)
        self.assertEqual(len(self.rows("SELECT * FROM c", partition_key="p1")), 10)
        self.assertEqual(self.rows("SELECT VALUE c.n FROM c ORDER BY c.n DESC", **CROSS), list(range(59, -1, -1)))
        self.assertEqual(self.rows("SELECT VALUE COUNT(1) FROM c", **CROSS), [60])
        self.assertEqual(self.rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 2", **CROSS), [5, 6])
        self.assertEqual(self.rows("SELECT VALUE c.id FROM c WHERE c.n = @n", parameters=[{"name": "@n", "value": 7}], **CROSS), ["i7"])
        self.assertEqual(sorted(self.rows("SELECT DISTINCT VALUE c.pk FROM c", **CROSS)), [f"p{i}" for i in range(6)])
        self.refused(400, self.rows, "SELEC", **CROSS)

    def test_pages(self):
        for text in ("SELECT * FROM c", "SELECT * FROM c ORDER BY c.n"):
            pages = [[r["n"] for r in p] for p in self.c.query_items(text, max_item_count=7, **CROSS).by_page()]
            self.assertEqual(sorted(sum(pages, [])), list(range(60)))
            self.assertLessEqual(max(map(len, pages)), 7)

    def test_ranges_and_read_many(self):
        self.assertEqual(len(list(self.c.read_feed_ranges())), 2)
        self.assertEqual(len(self.c.read_items([(f"i{i}", f"p{i % 6}") for i in range(60)] + [("absent", "p1")])), 60)

    def test_change_feed(self):
        self.assertEqual(len({r["id"] for r in self.c.query_items_change_feed(start_time="Beginning")}), 60)
        self.assertEqual(len(list(self.c.query_items_change_feed(start_time="Beginning", partition_key="p1"))), 10)
        pages = self.c.query_items_change_feed(start_time="Now").by_page()
        self.assertEqual(sum((list(p) for p in pages), []), [])

    def test_throughput(self):
        c = self.container(offer_throughput=500)
        self.assertEqual(c.get_throughput().offer_throughput, 500)
        self.assertEqual(c.replace_throughput(600).offer_throughput, 600)

    def test_hierarchical_keys(self):
        c = self.container(PartitionKey(path=["/a", "/b"], kind="MultiHash"))
        for b in ("1", "2"):
            c.create_item({"id": b, "a": "x", "b": b})
        self.assertEqual(c.read_item("2", ["x", "2"])["id"], "2")
        self.assertEqual(len(list(c.query_items("SELECT * FROM c", partition_key=["x"]))), 2)

    def test_names_and_keys_outside_ascii(self):
        c = self.db.create_container("odd \u9c40", PartitionKey(path="/pk"))
        c.create_item({"id": "\u9c40 \U0001f600", "pk": "\u00e4\U0001f600"})
        self.assertEqual(c.read_item("\u9c40 \U0001f600", "\u00e4\U0001f600")["pk"], "\u00e4\U0001f600")


if __name__ == "__main__":
    unittest.main()

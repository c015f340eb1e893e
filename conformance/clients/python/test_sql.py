"""azure-cosmos for Python against the NoSQL API. ../run.sh says where the server is."""

import unittest

from azure.cosmos import CosmosClient, PartitionKey, exceptions

from sqlcase import CROSS, ENDPOINT, SQLCase


class SQL(SQLCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.c = cls.container(offer_throughput=20000)
        for i in range(60):
            cls.c.create_item({"id": f"i{i}", "pk": f"p{i % 6}", "n": i})

    def rows(self, text, **options):
        return list(self.c.query_items(text, **options))

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

    def test_users_and_permissions(self):
        user = self.db.create_user({"id": "u"})
        self.refused(409, self.db.create_user, {"id": "u"})
        self.db.upsert_user({"id": "u"})
        self.assertIn("u", [u["id"] for u in self.db.list_users()])
        self.assertEqual(len(list(self.db.query_users("SELECT * FROM u WHERE u.id = @id", parameters=[{"name": "@id", "value": "u"}]))), 1)
        c = self.container()
        body = {"id": "p", "permissionMode": "Read", "resource": c.container_link}
        made = user.create_permission(body)
        self.refused(409, user.create_permission, body)
        self.refused(409, user.create_permission, dict(body, id="q"))
        self.assertNotEqual(user.get_permission("p").properties["_token"], made.properties["_token"])
        self.assertEqual(user.upsert_permission(dict(body, permissionMode="All")).permission_mode, "All")
        self.assertEqual(user.replace_permission("p", dict(body, id="q")).id, "q")
        self.assertEqual([p["id"] for p in user.list_permissions()], ["q"])
        user.delete_permission("q")
        self.refused(404, user.get_permission, "q")
        self.assertEqual(self.db.replace_user("u", {"id": "v"}).id, "v")
        self.db.delete_user("v")

    def test_resource_tokens(self):
        c = self.container()
        for pk in ("a", "b"):
            c.create_item({"id": "1", "pk": pk})
        user = self.db.create_user({"id": "tokens"})

        def holder(mode, **more):
            permission = user.upsert_permission({"id": "p", "permissionMode": mode, "resource": c.container_link, **more})
            client = CosmosClient(ENDPOINT, {c.container_link: permission.properties["_token"]})
            return client.get_database_client(self.db.id).get_container_client(c.id)

        reader = holder("Read")
        self.assertEqual(reader.read_item("1", "a")["pk"], "a")
        self.assertEqual(len(list(reader.query_items("SELECT * FROM c", **CROSS))), 2)
        self.refused(403, reader.upsert_item, {"id": "1", "pk": "a"})
        writer = holder("All", resourcePartitionKey=["a"])
        writer.upsert_item({"id": "2", "pk": "a"})
        self.refused(403, writer.upsert_item, {"id": "2", "pk": "b"})
        self.refused(403, writer.read_item, "1", "b")
        self.refused(403, lambda: list(writer.query_items("SELECT * FROM c", **CROSS)))
        self.assertEqual(len(list(writer.query_items("SELECT * FROM c", partition_key="a"))), 2)

    def test_delete_by_partition_key(self):
        c = self.container()
        for pk in ("a", "b"):
            c.create_item({"id": "1", "pk": pk})
        c.delete_all_items_by_partition_key("a")
        self.assertEqual([i["pk"] for i in c.read_all_items()], ["b"])


if __name__ == "__main__":
    unittest.main()

"""azure-cosmos for Python: items, patch, batch, read-many, time to live, keys, headers, sessions."""

import time
import unittest

from azure.core import MatchConditions
from azure.core.utils import CaseInsensitiveDict
from azure.cosmos import PartitionKey, ThroughputProperties, documents, exceptions
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from sqlcase import CROSS, STRICT, SQLCase


class Items(SQLCase):
    def test_replies(self):
        c = self.container()
        seen = CaseInsensitiveDict()
        made = c.create_item({"id": "1", "pk": "a"}, response_hook=lambda headers, _: seen.update(headers))
        self.assertGreater(float(seen["x-ms-request-charge"]), 0)
        self.assertRegex(seen["x-ms-session-token"], r"^\d+:-1#\d+$")
        self.assertEqual(len(seen["x-ms-activity-id"]), 36)
        self.assertEqual(seen["etag"], made["_etag"])
        headers = c.read_item("1", "a").get_response_headers()
        self.assertIn("x-ms-request-charge", headers)
        self.assertEqual(c.upsert_item({"id": "1", "pk": "a"}, no_response=True), {})

    def test_ids(self):
        c = self.container()
        self.assertEqual(len(c.create_item({"pk": "a"}, enable_automatic_id_generation=True)["id"]), 36)
        self.refused(400, c.create_item, {"pk": "a"})
        for i in ("with space", ",=.:~+-@()^${}[]!_", "\u9c40", "100%25", "\U0001f600"):
            c.create_item({"id": i, "pk": "a"})
            self.assertEqual(c.read_item(i, "a")["id"], i)
            c.delete_item(i, "a")

    def test_conditions(self):
        c = self.container()
        made = c.create_item({"id": "1", "pk": "a"})
        stale = {"etag": '"stale"', "match_condition": MatchConditions.IfNotModified}
        self.refused(412, c.upsert_item, {"id": "1", "pk": "a"}, **stale)
        self.refused(412, c.replace_item, "1", {"id": "1", "pk": "a"}, **stale)
        self.refused(412, c.patch_item, "1", "a", [{"op": "set", "path": "/n", "value": 1}], **stale)
        self.refused(412, c.delete_item, "1", "a", **stale)
        c.replace_item("1", {"id": "1", "pk": "a", "n": 1}, etag=made["_etag"], match_condition=MatchConditions.IfNotModified)

    def test_patch(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a", "n": 1, "list": [1, 2], "o": {"x": 1}, "gone": 1})
        done = c.patch_item("1", "a", [
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "add", "path": "/list/0", "value": 0},
            {"op": "set", "path": "/o/y", "value": None},
            {"op": "replace", "path": "/o/x", "value": "z"},
            {"op": "remove", "path": "/gone"},
            {"op": "incr", "path": "/n", "value": 1.5},
            {"op": "move", "from": "/o/y", "path": "/moved"},
        ])
        self.assertEqual({k: done[k] for k in ("n", "list", "o", "moved")}, {"n": 2.5, "list": [0, 1, 2, 3], "o": {"x": "z"}, "moved": None})
        self.assertNotIn("gone", done)
        ops = [{"op": "incr", "path": "/n", "value": 1}]
        self.assertEqual(c.patch_item("1", "a", ops, filter_predicate="from c where c.n > 2")["n"], 3.5)
        self.refused(412, c.patch_item, "1", "a", ops, sub=1110, filter_predicate="from c where c.n > 100")
        for bad in ([{"op": "set", "path": "/id", "value": "x"}], [{"op": "remove", "path": "/none"}], [{"op": "nonsense", "path": "/n", "value": 1}], ops * 11):
            self.refused(400, c.patch_item, "1", "a", bad)
        self.refused(404, c.patch_item, "2", "a", ops)

    def test_batch(self):
        c = self.container()
        c.create_item({"id": "there", "pk": "a", "n": 1})
        done = c.execute_item_batch([
            ("create", ({"id": "1", "pk": "a"},)),
            ("upsert", ({"id": "2", "pk": "a"},)),
            ("replace", ("2", {"id": "2", "pk": "a", "n": 2})),
            ("read", ("1",)),
            ("patch", ("there", [{"op": "incr", "path": "/n", "value": 1}]), {"filter_predicate": "from c where c.n = 1"}),
            ("delete", ("1",)),
        ], "a")
        self.assertEqual([r["statusCode"] for r in done], [201, 201, 200, 200, 200, 204])
        self.assertEqual(done[4]["resourceBody"]["n"], 2)
        for operation, code in (
            (("create", ({"id": "there", "pk": "a"},)), 409),
            (("read", ("none",)), 404),
            (("replace", ("there", {"id": "there", "pk": "a"}), {"if_match_etag": '"stale"'}), 412),
            (("patch", ("there", [{"op": "set", "path": "/n", "value": 1}]), {"filter_predicate": "from c where false"}), 412),
        ):
            with self.assertRaises(exceptions.CosmosBatchOperationError) as e:
                c.execute_item_batch([("create", ({"id": "ghost", "pk": "a"},)), operation], "a")
            self.assertEqual((e.exception.error_index, e.exception.status_code), (1, code))
            self.assertEqual([r["statusCode"] for r in e.exception.operation_responses], [424, code])
        self.refused(404, c.read_item, "ghost", "a")
        self.refused(400, c.execute_item_batch, [("create", ({"id": str(i), "pk": "a"},)) for i in range(101)], "a")

    def test_read_items(self):
        c = self.container(offer_throughput=25100)
        for i in range(60):
            c.create_item({"id": f"i{i}", "pk": f"p{i % 6}", "n": i})
        got = c.read_items([(f"i{i}", f"p{i % 6}") for i in range(0, 60, 2)] + [("none", "p1")])
        self.assertEqual(sorted(r["n"] for r in got), list(range(0, 60, 2)))
        self.assertEqual(len(c.read_items([("i1", "p1"), ("i7", "p1")])), 2)
        by_id = self.container(PartitionKey(path="/id"))
        for i in range(5):
            by_id.create_item({"id": str(i)})
        self.assertEqual(len(by_id.read_items([(str(i), str(i)) for i in range(7)])), 5)

    def test_time_to_live(self):
        c = self.container(default_ttl=-1)
        c.create_item({"id": "goes", "pk": "a", "ttl": 1})
        c.create_item({"id": "stays", "pk": "a"})
        self.refused(400, c.create_item, {"id": "bad", "pk": "a", "ttl": 0})
        time.sleep(2.1)
        self.refused(404, c.read_item, "goes", "a")
        self.assertEqual([r["id"] for r in c.read_all_items()], ["stays"])

    def test_keys(self):
        c = self.container()
        for i, pk in enumerate(["text", "", 5, 5.5, -0.25, True, False, None, "\u00e4\U0001f600"]):
            c.create_item({"id": f"k{i}", "pk": pk})
            key = NullPartitionKeyValue if pk is None else pk
            self.assertEqual(c.read_item(f"k{i}", key)["id"], f"k{i}")
            self.assertEqual([r["id"] for r in c.query_items("SELECT * FROM c", partition_key=key)], [f"k{i}"])
        c.create_item({"id": "none"})
        self.assertEqual(c.read_item("none", NonePartitionKeyValue)["id"], "none")
        self.assertEqual([r["id"] for r in c.query_items("SELECT * FROM c", partition_key=NonePartitionKeyValue)], ["none"])

    def test_hierarchical_keys(self):
        c = self.container(PartitionKey(path=["/a", "/b", "/c"], kind="MultiHash"), offer_throughput=25100)
        for a in "xy":
            for b in (1, 2, None):
                for d in (True, False):
                    c.create_item({"id": f"{a}{b}{d}", "a": a, "b": b, "c": d})
        self.assertEqual(c.read_item("x1True", ["x", 1, True])["b"], 1)
        self.assertEqual(c.read_item("yNoneFalse", ["y", None, False])["a"], "y")
        self.assertEqual(c.patch_item("x1True", ["x", 1, True], [{"op": "set", "path": "/n", "value": 1}])["n"], 1)
        for prefix, n in ((["x", 1, True], 1), (["x", 1], 2), (["y"], 6), (["none"], 0)):
            self.assertEqual(len(list(c.query_items("SELECT * FROM c", partition_key=prefix))), n, prefix)
        self.assertEqual(list(c.query_items("SELECT VALUE c.id FROM c WHERE c.c ORDER BY c.b DESC", partition_key=["x"])), ["x2True", "x1True", "xNoneTrue"])
        self.assertEqual(list(c.query_items("SELECT VALUE COUNT(1) FROM c", partition_key=["x"])), [6])
        self.assertEqual(len(list(c.query_items("SELECT * FROM c WHERE c.a = 'y' AND c.b = 2", **CROSS))), 2)
        self.assertEqual(len(c.read_items([("x1True", ["x", 1, True]), ("y2False", ["y", 2, False])])), 2)
        self.assertEqual(len(list(c.query_items_change_feed(start_time="Beginning", partition_key=["y", 2]))), 2)
        c.delete_all_items_by_partition_key(["x", 1, True])
        self.assertEqual(len(list(c.query_items("SELECT * FROM c", partition_key=["x", 1]))), 1)

    def test_old_containers(self):
        c = self.container(PartitionKey(path="/a/b", version=1))
        for i, b in enumerate(["text", "x" * 101, "x" * 100 + "y", 5, None]):
            c.create_item({"id": str(i), "a": {"b": b}})
            self.assertEqual(len(list(c.query_items("SELECT * FROM c", partition_key=NullPartitionKeyValue if b is None else b))), 1)

    def test_sessions(self):
        c = self.container()
        headers = c.create_item({"id": "1", "pk": "a"}).get_response_headers()
        token = headers["x-ms-session-token"]
        self.assertEqual(c.read_item("1", "a", session_token=token)["id"], "1")
        part, lsn = token.split(":-1#")
        self.refused(404, c.read_item, "1", "a", sub=1002, session_token=f"{part}:-1#{int(lsn) + 10**9}")
        (full,) = [r for r in c.read_feed_ranges()]
        self.assertEqual(c.get_latest_session_token([(full, token)], full), token)

    def test_options_are_taken(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a"}, priority="Low", throughput_bucket=1, indexing_directive="Include", initial_headers={"x-mine": "1"})
        self.assertEqual(c.read_item("1", "a", priority="High", max_integrated_cache_staleness_in_ms=5000, excluded_locations=["x"])["id"], "1")
        self.refused(400, c.create_item, {"id": "2", "pk": "a"}, pre_trigger_include="none")

    def test_too_large(self):
        c = self.container()
        self.refused(413, c.create_item, {"id": "1", "pk": "a", "s": "x" * (3 << 20)})
        c.create_item({"id": "1", "pk": "a"})


class Resources(SQLCase):
    def test_databases(self):
        again = self.client.create_database_if_not_exists(self.db.id)
        self.assertEqual(again.id, self.db.id)
        self.refused(409, self.client.create_database, self.db.id)
        self.assertIn(self.db.id, [d["id"] for d in self.client.list_databases()])
        found = self.client.query_databases("SELECT * FROM r WHERE r.id = @id", parameters=[{"name": "@id", "value": self.db.id}])
        self.assertEqual([d["id"] for d in found], [self.db.id])
        self.assertEqual(self.db.read()["id"], self.db.id)
        self.refused(404, self.client.get_database_client("none").read)
        account = self.client.get_database_account()
        self.assertEqual(account.ConsistencyPolicy["defaultConsistencyLevel"], "Session")

    def test_containers(self):
        policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/big/*"}], "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]}
        options = {
            "indexing_policy": policy,
            "default_ttl": 60,
            "unique_key_policy": {"uniqueKeys": [{"paths": ["/a", "/b"]}]},
            "conflict_resolution_policy": {"mode": "LastWriterWins", "conflictResolutionPath": "/v"},
            "computed_properties": [{"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
            "vector_embedding_policy": {"vectorEmbeddings": [{"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": "cosine"}]},
        }
        c = self.container(**options)
        p = c.read(populate_quota_info=True)
        self.assertEqual(p["defaultTtl"], 60)
        self.assertEqual(p["uniqueKeyPolicy"], options["unique_key_policy"])
        self.assertEqual(p["computedProperties"], options["computed_properties"])
        self.assertEqual(p["indexingPolicy"]["compositeIndexes"], policy["compositeIndexes"])
        self.assertEqual(p["conflictResolutionPolicy"]["conflictResolutionPath"], "/v")
        self.refused(409, self.db.create_container, c.id, PartitionKey(path="/pk"))
        self.assertEqual(self.db.create_container_if_not_exists(c.id, PartitionKey(path="/pk")).id, c.id)
        self.assertIn(c.id, [x["id"] for x in self.db.list_containers()])
        self.assertEqual(len(list(self.db.query_containers("SELECT * FROM c WHERE c.id = @id", parameters=[{"name": "@id", "value": c.id}]))), 1)
        if STRICT:  # this client can't send the unique keys, and the service takes that for a change of them
            self.refused(403, self.db.replace_container, c, PartitionKey(path="/pk"), default_ttl=-1)
            self.db.delete_container(c)
            del options["unique_key_policy"]
            c = self.container(**options)
        replaced = self.db.replace_container(c, PartitionKey(path="/pk"), default_ttl=-1, computed_properties=[{"name": "up", "query": "SELECT VALUE UPPER(c.name) FROM c"}])
        self.assertEqual(replaced.read()["defaultTtl"], -1)
        self.refused(400, self.db.replace_container, c, PartitionKey(path="/other"))
        for bad in ({"default_ttl": 0}, {"indexing_policy": {"indexingMode": "eager"}}, {"computed_properties": [{"name": "x"}]}):
            self.refused(400, self.container, **bad)
        self.db.delete_container(c)
        self.refused(404, c.read)
        self.refused(404, c.read_item, "1", "a")

    def test_throughput(self):
        c = self.container(offer_throughput=500)
        self.assertEqual(c.get_throughput().offer_throughput, 500)
        self.assertEqual(c.replace_throughput(600).offer_throughput, 600)
        self.refused(400, c.replace_throughput, 399)
        auto = self.container(offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=10))
        given = auto.get_throughput()
        self.assertEqual((given.auto_scale_max_throughput, given.auto_scale_increment_percent), (4000, 10))
        auto.replace_throughput(ThroughputProperties(auto_scale_max_throughput=7000))
        self.assertEqual(auto.get_throughput().auto_scale_max_throughput, 7000)
        shared = self.client.create_database(f"{self.db.id}-shared", offer_throughput=600)
        self.assertEqual(shared.get_throughput().offer_throughput, 600)
        self.assertEqual(shared.replace_throughput(800).offer_throughput, 800)
        self.client.delete_database(shared)

    def test_unique_keys(self):
        c = self.container(unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
        c.create_item({"id": "1", "pk": "a", "email": "x"})
        self.refused(409, c.create_item, {"id": "2", "pk": "a", "email": "x"})
        c.create_item({"id": "2", "pk": "b", "email": "x"})

    def test_conflicts(self):
        c = self.container()
        self.assertEqual(list(c.list_conflicts()), [])
        self.assertEqual(list(c.query_conflicts("SELECT * FROM c", partition_key="a")), [])
        self.refused(404, c.get_conflict, "x", "a")
        self.refused(404, c.delete_conflict, "x", "a")

    def test_scripts(self):
        c = self.container()
        body = "function (id) { var c = getContext().getCollection(); c.createDocument(c.getSelfLink(), {id: id, pk: 'a'}, function (err, made) { if (err) throw new Error(err.number, err.body); getContext().getResponse().setBody(made); }); }"
        made = c.scripts.create_stored_procedure({"id": "s", "body": body})
        self.assertEqual(c.scripts.get_stored_procedure("s")["_etag"], made["_etag"])
        self.assertEqual([p["id"] for p in c.scripts.list_stored_procedures()], ["s"])
        self.assertEqual(list(c.scripts.query_stored_procedures("SELECT VALUE p.id FROM p")), ["s"])
        item = c.scripts.execute_stored_procedure("s", partition_key="a", params=["1"])
        self.assertEqual(c.read_item("1", "a"), item)
        self.refused(400, c.scripts.execute_stored_procedure, "s", partition_key="a", params=["1"], sub=409)
        c.scripts.replace_stored_procedure("s", {"id": "s", "body": "function () {}"})
        c.scripts.delete_stored_procedure("s")
        self.refused(404, c.scripts.get_stored_procedure, "s")

    def test_triggers(self):
        c = self.container()
        body = "function () { var r = getContext().getRequest(), d = r.getBody(); if (!d.pk) throw new Error('no key'); d.n = 1; r.setBody(d); }"
        c.scripts.create_trigger({"id": "t", "body": body, "triggerType": documents.TriggerType.Pre, "triggerOperation": documents.TriggerOperation.All})
        self.assertEqual(c.scripts.get_trigger("t")["body"], body)
        self.assertEqual([t["id"] for t in c.scripts.list_triggers()], ["t"])
        self.assertEqual(c.create_item({"id": "1", "pk": "a"}, pre_trigger_include="t")["n"], 1)
        self.assertEqual(c.upsert_item({"id": "1", "pk": "a"}, pre_trigger_include="t")["n"], 1)
        self.refused(400, c.create_item, {"id": "2", "pk": "a"}, post_trigger_include="t")
        self.refused(404, c.read_item, "2", "a")
        c.scripts.delete_trigger("t")

    def test_functions(self):
        c = self.container()
        c.scripts.create_user_defined_function({"id": "twice", "body": "function (n) { return 2 * n; }"})
        self.assertEqual([f["id"] for f in c.scripts.list_user_defined_functions()], ["twice"])
        for i in range(3):
            c.create_item({"id": str(i), "pk": "a", "n": i})
        self.assertEqual(list(c.query_items("SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n", partition_key="a")), [0, 2, 4])
        c.scripts.delete_user_defined_function("twice")
        self.refused(400, c.query_items, "SELECT VALUE udf.twice(c.n) FROM c", partition_key="a")


if __name__ == "__main__":
    unittest.main()

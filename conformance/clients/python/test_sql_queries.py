"""azure-cosmos for Python: queries over several physical partitions, change feed, feed ranges, metrics."""

import datetime
import itertools
import time
import unittest

from azure.cosmos import PartitionKey

from sqlcase import CROSS, STRICT, SQLCase

N = 120


class Queries(SQLCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        order = lambda *paths: [{"path": p.strip("-"), "order": "descending" if p.startswith("-") else "ascending"} for p in paths]
        cls.c = cls.container(
            offer_throughput=25100,
            indexing_policy={"includedPaths": [{"path": "/*"}], "excludedPaths": [], "compositeIndexes": [order("/g", "-/n"), order("/g", "/h", "/n")]},
            computed_properties=[{"name": "upper", "query": "SELECT VALUE UPPER(c.name) FROM c"}],
        )
        cls.items = [
            {"id": f"i{i}", "pk": f"p{i % 8}", "n": i, "g": i % 5, "h": i * 7 % 11, "name": f"name{i * 13 % 20}", "tags": [f"t{i % 4}", "all"], "flag": i % 3 == 0, **({"opt": i} if i % 2 else {})}
            for i in range(N)
        ]
        for x in cls.items:
            cls.c.create_item(x)

    def rows(self, text, **options):
        return list(self.c.query_items(text, **(options or CROSS)))

    def test_rows(self):
        for text, want in (
            ("SELECT VALUE c.n FROM c WHERE c.n IN (1, 5, 500)", [1, 5]),
            ("SELECT VALUE c.n FROM c WHERE c.n BETWEEN 3 AND 5", [3, 4, 5]),
            ("SELECT VALUE c.n FROM c WHERE NOT IS_DEFINED(c.opt) AND c.n < 5", [0, 2, 4]),
            ("SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.tags, 't3') AND c.n < 8", [3, 7]),
            ("SELECT VALUE c.n FROM c JOIN t IN c.tags WHERE t = 't1' AND c.n < 8", [1, 5]),
            ("SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't2') AND c.n < 8", [2, 6]),
            ("SELECT VALUE c.n FROM c WHERE c.upper = 'NAME13' AND c.n < 30", [1, 21]),
            ("SELECT VALUE c.n FROM c WHERE c.name LIKE 'name_' AND c.n < 9", [i for i in range(9) if len(f"name{i * 13 % 20}") == 5]),
        ):
            self.assertEqual(sorted(self.rows(text)), want, text)
        self.assertEqual(len(self.rows("SELECT * FROM c", partition_key="p3")), 15)
        self.assertEqual(self.rows("SELECT VALUE c.id FROM c WHERE c.n = @n", parameters=[{"name": "@n", "value": 9}], **CROSS), ["i9"])

    def test_orders(self):
        ns = lambda key: sorted(range(N), key=key)
        for text, want in (
            ("ORDER BY c.n", ns(lambda i: i)),
            ("ORDER BY c.n DESC", ns(lambda i: -i)),
            ("ORDER BY c.g ASC, c.n DESC", ns(lambda i: (i % 5, -i))),
            ("ORDER BY c.g DESC, c.n ASC", ns(lambda i: (-(i % 5), i))),
            ("ORDER BY c.g, c.h, c.n", ns(lambda i: (i % 5, i * 7 % 11, i))),
            ("ORDER BY c.n OFFSET 5 LIMIT 4", [5, 6, 7, 8]),
            ("ORDER BY c.n DESC OFFSET 118 LIMIT 9", [1, 0]),
        ):
            self.assertEqual(self.rows("SELECT VALUE c.n FROM c " + text), want, text)
            whole = sum((list(p) for p in self.c.query_items("SELECT VALUE c.n FROM c " + text, max_item_count=7, **CROSS).by_page()), [])
            self.assertEqual(whole, want, text)
        self.assertEqual(self.rows("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), [119, 118, 117])
        self.assertEqual(len(self.rows("SELECT TOP 9 * FROM c")), 9)

    def test_aggregates(self):
        for text, want in (
            ("SELECT VALUE COUNT(1) FROM c", 120),
            ("SELECT VALUE COUNT(c.opt) FROM c", 60),
            ("SELECT VALUE SUM(c.n) FROM c", 7140),
            ("SELECT VALUE AVG(c.n) FROM c", 59.5),
            ("SELECT VALUE MIN(c.name) FROM c", "name0"),
            ("SELECT VALUE MAX(c.n) FROM c WHERE c.flag", 117),
        ):
            self.assertEqual(self.rows(text), [want], text)
        self.assertEqual(self.rows("SELECT COUNT(1) AS n, MAX(c.n) AS most FROM c WHERE c.pk = 'p0'", partition_key="p0"), [{"n": 15, "most": 112}])

    def test_distinct(self):
        self.assertEqual(sorted(self.rows("SELECT DISTINCT VALUE c.g FROM c")), [0, 1, 2, 3, 4])
        self.assertEqual(self.rows("SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g DESC"), [4, 3, 2, 1, 0])
        self.assertEqual(len(self.rows("SELECT DISTINCT c.g, c.flag FROM c")), 10)

    def test_groups(self):
        # This client can't group over partitions, as its README says. The service and a strict server refuse it.
        text = "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g"
        want = [{"g": g, "n": 24} for g in range(5)]
        if STRICT:
            self.refused(400, self.rows, text)
        else:
            self.assertEqual(sorted(self.rows(text), key=lambda r: r["g"]), want)
        one = self.rows("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", partition_key="p1")
        self.assertEqual(sum(r["n"] for r in one), 15)
        several = "SELECT MIN(c.n) AS a, MAX(c.n) AS b FROM c"
        if STRICT:
            self.refused(400, self.rows, several)
        else:
            self.assertEqual(self.rows(several), [{"a": 0, "b": 119}])

    def test_vectors(self):
        v = self.container(offer_throughput=25100, vector_embedding_policy={"vectorEmbeddings": [{"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"}]},
                           indexing_policy={"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}], "vectorIndexes": [{"path": "/v", "type": "flat"}]})
        for i in range(30):
            v.create_item({"id": f"i{i}", "pk": f"p{i}", "v": [i, 0]})
        got = list(v.query_items("SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, [11.2, 0])", **CROSS))
        self.assertEqual([r["id"] for r in got], ["i11", "i12", "i10"])

    def test_continuations(self):
        for text in ("SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n"):
            pages = self.c.query_items(text, partition_key="p4", max_item_count=4).by_page()
            first = list(next(pages))
            token, seen = pages.continuation_token, list(first)
            while token:
                pages = self.c.query_items(text, partition_key="p4", max_item_count=4).by_page(token)
                seen += list(next(pages))
                token = pages.continuation_token
            self.assertEqual(sorted(seen), list(range(4, N, 8)))
        pages = self.c.query_items("SELECT VALUE c.n FROM c", max_item_count=9, **CROSS).by_page()
        seen, token = list(next(pages)), pages.continuation_token
        while token:
            pages = self.c.query_items("SELECT VALUE c.n FROM c", max_item_count=9, **CROSS).by_page(token)
            seen += list(next(pages))
            token = pages.continuation_token
        self.assertEqual(sorted(seen), list(range(N)))

    def test_feed_ranges(self):
        ranges = list(self.c.read_feed_ranges())
        self.assertEqual(len(ranges), 3)
        self.assertEqual(sum(len(self.rows("SELECT * FROM c", feed_range=r)) for r in ranges), N)
        of_key = self.c.feed_range_from_partition_key("p1")
        self.assertEqual(sum(self.c.is_feed_range_subset(r, of_key) for r in ranges), 1)
        self.assertEqual(len(self.rows("SELECT * FROM c", feed_range=of_key)), 15)

    def test_metrics(self):
        self.rows("SELECT * FROM c WHERE c.n < 5 AND c.pk = 'p1'", partition_key="p1", populate_index_metrics=True, populate_query_metrics=True)
        headers = self.c.client_connection.last_response_headers
        self.assertIn("UtilizedSingleIndexes", headers["x-ms-cosmos-index-utilization"])
        self.assertIn("retrievedDocumentCount=1", headers["x-ms-documentdb-query-metrics"])

    def test_options_are_taken(self):
        got = self.rows("SELECT * FROM c WHERE c.n < 3", enable_scan_in_query=True, continuation_token_limit=1, max_integrated_cache_staleness_in_ms=1000, priority="Low", throughput_bucket=1, populate_query_advice=True, **CROSS)
        self.assertEqual(len(got), 3)

    def test_refusals(self):
        for text in ("SELEC", "SELECT * FROM c WHERE NOSUCH(c.n)", "SELECT * FROM c GROUP BY c.g", "SELECT TOP -1 * FROM c", "SELECT * FROM c ORDER BY c.n + 1", "SELECT * FROM c WHERE c.n = @none", "SELECT c.value FROM c"):
            self.refused(400, self.rows, text)
        self.refused(400, self.rows, "SELECT * FROM c", enable_cross_partition_query=False)


class ChangeFeed(SQLCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.c = cls.container(offer_throughput=25100)
        for i in range(40):
            cls.c.create_item({"id": f"i{i}", "pk": f"p{i % 8}", "n": i})

    def feed(self, **options):
        pages = self.c.query_items_change_feed(max_item_count=9, **options).by_page()
        rows = sum((list(p) for p in pages), [])
        return rows, pages.continuation_token

    def test_a_whole(self):
        rows, token = self.feed(start_time="Beginning")
        self.assertEqual(sorted(r["n"] for r in rows), list(range(40)))
        self.assertTrue(all(isinstance(r["_lsn"], int) for r in rows))
        self.assertEqual(self.feed(continuation=token)[0], [])
        self.c.upsert_item({"id": "i3", "pk": "p3", "n": -3})
        self.c.create_item({"id": "new", "pk": "p1", "n": 100})
        self.c.delete_item("i4", "p4")
        rows, _ = self.feed(continuation=token)
        self.assertEqual(sorted(r["id"] for r in rows), ["i3", "new"])

    def test_b_parts(self):
        self.assertEqual(sum(len(self.feed(start_time="Beginning", feed_range=r)[0]) for r in self.c.read_feed_ranges()), 40)
        self.assertEqual(len(self.feed(start_time="Beginning", partition_key="p2")[0]), 5)
        rows, token = self.feed(start_time="Beginning", feed_range=self.c.feed_range_from_partition_key("p2"))
        self.assertEqual(len(rows), 5)
        self.assertEqual(self.feed(continuation=token)[0], [])

    def test_c_times(self):
        self.assertEqual(self.feed(start_time="Now")[0], [])
        time.sleep(1.1)
        at = datetime.datetime.now(datetime.timezone.utc)
        time.sleep(1.1)
        self.c.upsert_item({"id": "i5", "pk": "p5", "n": -5})
        self.assertEqual([r["id"] for r in self.feed(start_time=at)[0]], ["i5"])

    # With a range id the client recognizes only a number in quotes as a continuation. Any other one means "from now" to
    # it.
    def test_d_numbers(self):
        for options in ({}, {"offer_throughput": 25100}):
            c = self.container(**options)
            for i in range(20):
                c.create_item({"id": f"i{i}", "pk": f"p{i}"})
            pages = c.query_items_change_feed(partition_key_range_id="0", is_start_from_beginning=True, max_item_count=8).by_page()
            self.assertEqual(len(sum((list(p) for p in pages), [])), 20)
            token = self.client.client_connection.last_response_headers["etag"]
            for i in range(3):
                c.upsert_item({"id": f"i{i}", "pk": f"p{i}", "again": True})
            rows = list(c.query_items_change_feed(partition_key_range_id="0", continuation=token))
            self.assertEqual(sorted(r["id"] for r in rows), ["i0", "i1", "i2"])
            if not options:
                page = next(c.query_items_change_feed(partition_key_range_id="0", continuation=token, max_item_count=1).by_page())
                self.assertEqual([r["id"] for r in page], ["i0"])
                token = self.client.client_connection.last_response_headers["etag"]
                self.assertEqual([r["id"] for r in c.query_items_change_feed(continuation=token)], ["i1", "i2"])

    def test_e_all_versions(self):
        c = self.container(offer_throughput=25100, change_feed_policy={"retentionDuration": 10})
        self.assertEqual(c.read()["changeFeedPolicy"], {"retentionDuration": 10})

        def versions(**options):
            pages = c.query_items_change_feed(mode="AllVersionsAndDeletes", max_item_count=4, **options).by_page()
            rows = sum((list(p) for p in pages), [])
            return rows, self.client.client_connection.last_response_headers["etag"]  # the pages have none if all are empty

        def told(rows):
            image = lambda r, name: r[name].get("n") if r.get(name) else None
            return sorted((r["metadata"]["operationType"], image(r, "previous"), image(r, "current")) for r in rows)

        scopes = {"whole": {}, "key": {"partition_key": "p1"}, "range of a key": {"feed_range": c.feed_range_from_partition_key("p1")}}
        ranges = [{"feed_range": r} for r in c.read_feed_ranges()]
        tokens = {name: versions(start_time="Now", **o)[1] for name, o in scopes.items()}
        parts = [versions(**o)[1] for o in ranges]
        for i in range(8):
            c.create_item({"id": f"i{i}", "pk": f"p{i}", "n": i})
        c.upsert_item({"id": "i1", "pk": "p1", "n": 11})
        c.delete_item("i1", "p1")
        c.delete_item("i2", "p2")
        of_one = [("create", None, 1), ("delete", 11, None), ("replace", 1, 11)]
        order = lambda rows: sorted(rows, key=str)
        everything = order([("create", None, i) for i in range(8)] + of_one[1:] + [("delete", 2, None)])
        for name, token in tokens.items():
            rows, tokens[name] = versions(continuation=token)
            self.assertEqual(order(told(rows)) if name == "whole" else told(rows), everything if name == "whole" else of_one, name)
        self.assertEqual(order(told(sum((versions(continuation=t)[0] for t in parts), []))), everything)
        gone = [r for r in versions(continuation=parts[0])[0] + versions(continuation=parts[1])[0] + versions(continuation=parts[2])[0] if r["metadata"]["operationType"] == "delete"]
        for r in gone:
            about = r["metadata"]
            self.assertEqual((about["id"], about["partitionKey"], about["timeToLiveExpired"], r["current"]), (r["previous"]["id"], {"pk": r["previous"]["pk"]}, False, {}))
            self.assertEqual(about["previousImageLSN"] < about["lsn"], True)
        self.assertEqual(versions(continuation=tokens["whole"])[0], [])
        c.replace_item("i3", {"id": "i3", "pk": "p3", "n": 33})
        self.assertEqual(told(versions(continuation=tokens["whole"])[0]), [("replace", 3, 33)])
        self.refused(400, lambda: list(self.c.query_items_change_feed(mode="AllVersionsAndDeletes")))

    @staticmethod
    def scopes(c, key):
        return {"whole": [{}], "key": [{"partition_key": key}], "ranges": [{"feed_range": r} for r in c.read_feed_ranges()]}

    # Readers go on over splits and merges of partitions, in the middle of an iteration and from a continuation. Each item
    # comes once.
    def test_f_splits(self):
        c, made = self.container(offer_throughput=25100), 0

        def write(n):
            nonlocal made
            for made in range(made + 1, made + n + 1):
                c.create_item({"id": f"i{made}", "pk": f"p{made % 17}", "n": made})

        write(90)
        start = lambda **o: c.query_items_change_feed(max_item_count=3, **o).by_page()
        readers = {name: [start(start_time="Beginning", **o) for o in parts] for name, parts in self.scopes(c, "p3").items()}
        got = {name: [r["n"] for pages in all for r in next(pages)] for name, all in readers.items()}
        self.assertEqual([len(rows) for rows in got.values()], [3, 3, 9])
        for change in (self.split_all, self.split_all, self.merge_pairs, self.merge_pairs):
            change(c)
            write(34)
            for name, all in readers.items():
                for i, pages in enumerate(all):
                    got[name] += [r["n"] for page in pages for r in page]
                    self.assertIsNotNone(pages.continuation_token)
                    all[i] = start(continuation=pages.continuation_token)
        self.assertEqual(len(self.partitions(c)), 3)
        everything = list(range(1, made + 1))
        want = {"whole": everything, "key": [n for n in everything if n % 17 == 3], "ranges": everything}
        for name, rows in got.items():
            self.assertEqual(sorted(rows), want[name], name)

    # So it is with all versions. The changes of an item come in their order.
    def test_g_all_versions_over_splits(self):
        c, want = self.container(offer_throughput=25100, change_feed_policy={"retentionDuration": 10}), {}

        def write(step):
            for i in range(24):
                id, pk, n = f"i{i}", f"p{i % 7}", 100 * step + i
                if step == 0:
                    c.create_item({"id": id, "pk": pk, "n": n})
                    want[id] = [("create", None, n)]
                    continue
                was = want[id][-1][2]
                if i % 3 == 0:
                    c.delete_item(id, pk)
                    c.upsert_item({"id": id, "pk": pk, "n": n})
                    want[id] += [("delete", was, None), ("create", None, n)]
                elif i % 3 == 1:
                    c.replace_item(id, {"id": id, "pk": pk, "n": n})
                    want[id].append(("replace", was, n))
                else:
                    c.patch_item(id, pk, [{"op": "set", "path": "/n", "value": n}])
                    want[id].append(("replace", was, n))

        def read(got, most=None, **options):
            pages = c.query_items_change_feed(mode="AllVersionsAndDeletes", max_item_count=4, **options).by_page()
            for page in itertools.islice(pages, most):
                for r in page:
                    image = lambda name: r[name].get("n") if r.get(name) else None
                    id = r["current"].get("id") or r["metadata"]["id"]
                    got.setdefault(id, []).append((r["metadata"]["operationType"], image("previous"), image("current")))
            return self.client.client_connection.last_response_headers["etag"]

        got = {name: {} for name in ("whole", "key", "ranges")}
        tokens = {name: [read(got[name], start_time="Now", **o) for o in parts] for name, parts in self.scopes(c, "p3").items()}
        for step, change in enumerate((self.split_all, self.split_all, self.merge_pairs, self.merge_pairs)):
            for most in (1, None):  # a page before the change, and the rest after it
                write(2 * step + (most is None))
                for name, all in tokens.items():
                    tokens[name] = [read(got[name], most, continuation=t) for t in all]
                if most:
                    change(c)
        self.assertEqual(len(self.partitions(c)), 3)
        for name, all in got.items():
            self.assertEqual(all, {id: w for id, w in want.items() if name != "key" or int(id[1:]) % 7 == 3}, name)


if __name__ == "__main__":
    unittest.main()

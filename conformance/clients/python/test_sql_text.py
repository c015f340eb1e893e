"""azure-cosmos for Python: full-text and hybrid search over several physical partitions.

The client merges by itself: it asks for a plan, collects statistics from all partitions, sends one query for each score,
and combines the ranks. The expected orders are computed here from the same items.
"""

import asyncio
import math
import unittest

from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from sqlcase import CROSS, ENDPOINT, KEY, SQLCase

N = 90
WORDS = "tree river stone cloud bird wolf".split()


def text(i):
    """Three to eleven words; each item has another mix. No common words, and every word is its own stem."""
    return " ".join(WORDS[(i * 7 + k * k * (1 + i % 3)) % len(WORDS)] for k in range(3 + i % 9))


ITEMS = [
    {"id": f"i{i:02}", "pk": f"p{i % 11}", "n": i, "text": text(i), "title": WORDS[i % 5], "v": [math.cos(i / 14), math.sin(i / 14)]}
    for i in range(N)
]


def scores(field, *terms, items=ITEMS):
    """BM25 of each item, with the statistics of all items."""
    texts = [x[field].split() for x in items]
    average = sum(map(len, texts)) / len(texts)
    total = [0.0] * len(items)
    for term in terms:
        n = sum(term in t for t in texts)
        idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for i, t in enumerate(texts):
            f = t.count(term)
            total[i] += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(t) / average))
    return total


def fused(*lists, weights=None):
    """The results of RRF: items with the same score have the same rank."""
    total = [0.0] * N
    for weight, values in zip(weights or [1] * len(lists), lists):
        ranks = {s: r for r, s in enumerate(sorted({round(v, 9) for v in values}, reverse=weight > 0), 1)}
        for i, v in enumerate(values):
            total[i] += abs(weight) / (60 + ranks[round(v, 9)])
    return total


def cosine(x, y):
    return [(v[0] * x + v[1] * y) / math.hypot(x, y) for v in (x_["v"] for x_ in ITEMS)]


class Texts(SQLCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.c = cls.container(
            offer_throughput=25100,
            full_text_policy={"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}, {"path": "/title"}]},
            indexing_policy={"includedPaths": [{"path": "/*"}], "excludedPaths": [], "fullTextIndexes": [{"path": "/text"}, {"path": "/title"}]},
        )
        for x in ITEMS:
            cls.c.create_item(x)

    def rows(self, query, **options):
        return list(self.c.query_items(query, **{**CROSS, **options}))

    def ranked(self, query, values, most, **options):
        """The rows are the best ones by values, best first. Rows with equal values may come in any order."""
        got = [x["n"] for x in self.rows(query, **options)]
        self.assertEqual(len(set(got)), most, query)
        best = sorted(values, reverse=True)[:most]
        self.assertEqual([round(values[i], 9) for i in got], [round(v, 9) for v in best], query)

    def test_filters(self):
        has = lambda *words: sorted(x["n"] for x in ITEMS if all(w in x["text"].split() for w in words))
        for where, want in (
            ("FullTextContains(c.text, 'wolf')", has("wolf")),
            ("FullTextContains(c.text, 'Wolves')", has("wolv")),
            ("FullTextContains(c.text, 'Rivers')", has("river")),
            ("FullTextContains(c.text, @p)", has("stone")),
            ("FullTextContainsAll(c.text, 'tree', 'bird')", has("tree", "bird")),
            ("FullTextContainsAny(c.text, 'bird', 'wolf')", sorted({*has("bird"), *has("wolf")})),
            ("FullTextContains(c.text, 'tree river')", sorted(x["n"] for x in ITEMS if "tree river" in x["text"])),
            ("FullTextContains(c.text, {'term': 'stome', 'distance': 1})", has("stone")),
            ("NOT FullTextContains(c.text, 'tree') AND c.n < 20", [i for i in range(20) if i not in has("tree")]),
        ):
            got = self.rows("SELECT VALUE c.n FROM c WHERE " + where, parameters=[{"name": "@p", "value": "stone"}])
            self.assertEqual(sorted(got), want, where)

    def test_scores(self):
        self.ranked("SELECT TOP 10 c.n FROM c ORDER BY RANK FullTextScore(c.text, 'wolf', 'bird')", scores("text", "wolf", "bird"), 10)
        self.ranked("SELECT TOP 10 c.n FROM c ORDER BY RANK FullTextScore(c.text, ['wolf'])", scores("text", "wolf"), 10)
        self.ranked("SELECT c.n FROM c ORDER BY RANK FullTextScore(c.text, 'stone') OFFSET 0 LIMIT 20", scores("text", "stone"), 20)
        part = [s if i % 11 == 3 else -1 for i, s in enumerate(scores("text", "tree"))]
        self.ranked("SELECT TOP 5 c.n FROM c WHERE c.pk = 'p3' ORDER BY RANK FullTextScore(c.text, 'tree')", part, 5)
        self.ranked("SELECT TOP 5 c.n FROM c ORDER BY RANK FullTextScore(c.text, 'tree')", part, 5, partition_key="p3")
        parameters = [{"name": "@path", "value": "text"}, {"name": "@a", "value": "wolf"}, {"name": "@n", "value": 4}]
        self.ranked("SELECT TOP @n c.n FROM c ORDER BY RANK FullTextScore(c[@path], @a)", scores("text", "wolf"), 4, parameters=parameters)

    def test_fusion(self):
        a, b = scores("text", "wolf", "river"), scores("title", "stone")
        near = cosine(1, 0.4)
        self.ranked("SELECT TOP 12 c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'wolf', 'river'), FullTextScore(c.title, 'stone'))", fused(a, b), 12)
        hybrid = "SELECT TOP 12 c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'wolf', 'river'), VectorDistance(c.v, @v)"
        vector = {"parameters": [{"name": "@v", "value": [1, 0.4]}, {"name": "@w", "value": [1, 3]}]}
        self.ranked(hybrid + ")", fused(a, near), 12, **vector)
        self.ranked(hybrid + ", [2, 0.5])", fused(a, near, weights=[2, 0.5]), 12, **vector)
        self.ranked(hybrid + ", @w)", fused(a, near, weights=[1, 3]), 12, **vector)
        self.ranked(hybrid + ", [1, -1])", fused(a, near, weights=[1, -1]), 12, **vector)
        # The client takes only the first page of each component query, so small pages give it fewer candidates.
        pages = [[x["n"] for x in p] for p in self.c.query_items(hybrid + ")", max_item_count=5, **vector, **CROSS).by_page()]
        self.assertEqual([len(p) for p in pages], [5, 5, 2])
        self.assertEqual(len(set(sum(pages, []))), 12)

    def test_async(self):
        async def run():
            async with CosmosClient(ENDPOINT, KEY) as client:
                c = client.get_database_client(self.db.id).get_container_client(self.c.id)
                query = "SELECT TOP 8 c.n FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'bird'), FullTextScore(c.title, 'cloud'))"
                return [x["n"] async for x in c.query_items(query)]

        values = fused(scores("text", "bird"), scores("title", "cloud"))
        self.assertEqual([round(values[i], 9) for i in asyncio.run(run())], [round(v, 9) for v in sorted(values, reverse=True)[:8]])

    def test_refused(self):
        for query, words in (
            ("SELECT TOP 5 FullTextScore(c.text, 'a') AS s FROM c", "is only allowed in the ORDER BY RANK clause"),
            ("SELECT TOP 5 * FROM c ORDER BY RANK FullTextScore(c.text, ['a']) DESC", "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."),
            ("SELECT TOP 5 * FROM c ORDER BY RANK FullTextScore(c.text, [])", "must be a non-empty array of string literals"),
            ("SELECT DISTINCT VALUE c.n FROM c ORDER BY RANK FullTextScore(c.text, 'a')", "The DISTINCT keyword is not allowed with the ORDER BY RANK clause."),
            ("SELECT TOP 5 * FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'a'), 20.5)", "must be followed by a VectorDistance and/or a FullTextScore"),
        ):
            self.assertIn(words, self.refused(400, self.c.query_items, query, **CROSS).message, query)

    def test_policies(self):
        policy = lambda path="/text", default="en-US", language="en-US": {"defaultLanguage": default, "fullTextPaths": [{"path": path, "language": language}]}
        index = lambda **x: {"indexing_policy": {"fullTextIndexes": [x]}, "full_text_policy": policy()}
        for options, words in (
            ({"full_text_policy": policy(path="text")}, "The Full Text Policy contains an invalid Path: text"),
            ({"full_text_policy": policy(default="spa-SPA")}, "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are:"),
            ({"full_text_policy": policy(language="xx-YY")}, "The Full Text Policy contains an unsupported language xx-YY."),
            (index(path="/other"), "The path of the Full Text Index /other does not match the path specified in the Full Text Policy"),
            (index(path="text"), "Full-text index specification at index (0) contains invalid path"),
            (index(not_path="/text"), "Missing path in full-text index specification at index (0)"),
        ):
            self.assertIn(words, self.refused(400, self.db.create_container, "refused", PartitionKey(path="/pk"), **options).message)

    def test_languages(self):
        c = self.container(full_text_policy={"defaultLanguage": "fr-FR", "fullTextPaths": [{"path": "/de", "language": "de-DE"}]})
        c.create_item({"id": "1", "pk": "a", "fr": "Les chevaux sautent", "de": "Die Häuser am See"})
        count = lambda where: list(c.query_items("SELECT VALUE COUNT(1) FROM c WHERE " + where, partition_key="a"))
        self.assertEqual(count("FullTextContains(c.fr, 'cheval')"), [1])
        self.assertEqual(count("FullTextContains(c.de, 'Haus')"), [1])
        self.assertEqual(count("FullTextContains(c.de, 'die Häuser')"), [1])
        self.assertEqual(count("FullTextContains(c.de, 'chevaux')"), [0])
        self.db.replace_container(c, PartitionKey(path="/pk"), full_text_policy={"defaultLanguage": "en-US", "fullTextPaths": []})
        self.assertEqual(count("FullTextContains(c.fr, 'cheval')"), [0])


if __name__ == "__main__":
    unittest.main()

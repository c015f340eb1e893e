"""What the tests of azure-cosmos share. ../run.sh says where the server is, and how strict."""

import itertools
import json
import os
import unittest
import urllib.parse
import urllib.request

from azure.cosmos import CosmosClient, PartitionKey, exceptions

ENDPOINT = os.environ["ORRERY_NOSQL"]
ADMIN = os.environ["ORRERY_ADMIN"]
KEY = os.environ["ORRERY_ACCOUNT_KEY"]
STRICT = os.environ["ORRERY_STRICT"] == "nosql"
CROSS = {"enable_cross_partition_query": True}
names = itertools.count()


class SQLCase(unittest.TestCase):
    """A class of tests has a database of its own."""

    @classmethod
    def setUpClass(cls):
        cls.client = CosmosClient(ENDPOINT, KEY)
        cls.db = cls.client.create_database(f"py-{os.getpid()}-{cls.__name__}")

    @classmethod
    def tearDownClass(cls):
        cls.client.delete_database(cls.db.id)
        cls.client.close()

    @classmethod
    def container(cls, key=None, **options):
        return cls.db.create_container(f"c{next(names)}", key or PartitionKey(path="/pk"), **options)

    @classmethod
    def partitions(cls, container, **change):
        """The ids of the physical partitions, from the admin port. It makes a change before: partition=ID, do="split" or "merge"."""
        of = {"database": cls.db.id, "container": container.id}
        url, body = f"{ADMIN}/orrery/partitions", None
        if change:
            body = json.dumps({**of, **change}).encode()
        else:
            url += "?" + urllib.parse.urlencode(of)
        with urllib.request.urlopen(urllib.request.Request(url, body, {"Authorization": f"Bearer {KEY}"})) as reply:
            return [p["id"] for p in json.load(reply)["partitions"]]

    @classmethod
    def split_all(cls, container):
        for p in cls.partitions(container):
            cls.partitions(container, partition=p, do="split")

    @classmethod
    def merge_pairs(cls, container):
        for p in cls.partitions(container)[::2]:
            cls.partitions(container, partition=p, do="merge")

    def refused(self, status, call, *args, sub=None, **options):
        with self.assertRaises(exceptions.CosmosHttpResponseError) as e:
            result = call(*args, **options)
            if hasattr(result, "__next__"):
                list(result)
        self.assertEqual(e.exception.status_code, status, e.exception.message)
        if sub is not None:
            self.assertEqual(e.exception.sub_status, sub, e.exception.message)
        return e.exception

"""What the tests of azure-cosmos share. ../run.sh says where the server is, and how strict."""

import itertools
import os
import unittest

from azure.cosmos import CosmosClient, PartitionKey, exceptions

ENDPOINT = os.environ["ORRERY_NOSQL"]
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

    def refused(self, status, call, *args, sub=None, **options):
        with self.assertRaises(exceptions.CosmosHttpResponseError) as e:
            result = call(*args, **options)
            if hasattr(result, "__next__"):
                list(result)
        self.assertEqual(e.exception.status_code, status, e.exception.message)
        if sub is not None:
            self.assertEqual(e.exception.sub_status, sub, e.exception.message)
        return e.exception

"""Tests of the NoSQL API with pydocumentdb, the client of before 2018."""

import os
import unittest

from pydocumentdb import document_client, documents, errors

ENDPOINT = os.environ["ORRERY_NOSQL"]
KEY = os.environ["ORRERY_ACCOUNT_KEY"]


def client(**auth):
    policy = documents.ConnectionPolicy()
    policy.EnableEndpointDiscovery = False
    return document_client.DocumentClient(ENDPOINT, auth, policy)


class OldSQL(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = client(masterKey=KEY)
        cls.db = cls.client.CreateDatabase({"id": f"old-{os.getpid()}"})["_self"]

    @classmethod
    def tearDownClass(cls):
        cls.client.DeleteDatabase(cls.db)

    def gone(self, read, *args):
        with self.assertRaises(errors.HTTPFailure) as e:
            read(*args)
        self.assertEqual(e.exception.status_code, 404)

    # A collection without a partition key, as all were once, and one with a key: everything goes by _self links.
    def test_documents(self):
        for definition, key, cross in (
            ({"id": "plain"}, {}, {}),
            (
                {"id": "keyed", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}},
                {"partitionKey": "p0"},
                {"enableCrossPartitionQuery": True},
            ),
        ):
            with self.subTest(definition["id"]):
                made = self.client.CreateCollection(self.db, definition, {"offerThroughput": 20000 if key else 400})
                self.assertEqual(made.get("partitionKey"), definition.get("partitionKey"))
                coll = made["_self"]
                docs = [self.client.CreateDocument(coll, {"id": str(i), "pk": f"p{i % 3}", "n": i}) for i in range(10)]
                self.assertEqual(len(list(self.client.ReadDocuments(coll, {"maxItemCount": 3}))), 10)
                query = "SELECT * FROM r WHERE r.n > 3 ORDER BY r.n DESC"
                rows = self.client.QueryDocuments(coll, query, cross)
                self.assertEqual([r["n"] for r in rows], [9, 8, 7, 6, 5, 4])
                total = self.client.QueryDocuments(coll, "SELECT VALUE SUM(r.n) FROM r", cross)
                self.assertEqual(list(total), [45])

                doc = self.client.ReadDocument(docs[0]["_self"], key)
                doc["n"] = 100
                self.assertEqual(self.client.ReplaceDocument(doc["_self"], doc, key)["n"], 100)
                self.assertEqual(self.client.UpsertDocument(coll, {"id": "0", "pk": "p0", "n": 101})["n"], 101)
                self.client.DeleteDocument(doc["_self"], key)
                self.gone(self.client.ReadDocument, doc["_self"], key)

                body = "function () { for (var i = 0; i < 10; i++) getContext().getResponse().appendValue('Body', i); }"
                program = self.client.CreateStoredProcedure(coll, {"id": "digits", "body": body})
                self.assertEqual(self.client.ExecuteStoredProcedure(program["_self"], None, key), "0123456789")

                self.client.DeleteCollection(coll)
                self.gone(self.client.ReadCollection, coll)

    def test_users(self):
        coll = self.client.CreateCollection(self.db, {"id": "shared"})
        self.client.CreateDocument(coll["_self"], {"id": "1"})
        user = self.client.CreateUser(self.db, {"id": "u"})["_self"]
        permission = self.client.CreatePermission(
            user, {"id": "p", "permissionMode": documents.PermissionMode.Read, "resource": coll["_self"]}
        )
        self.assertEqual(permission["permissionMode"], documents.PermissionMode.Read)
        reader = client(resourceTokens={coll["_rid"]: permission["_token"]})
        self.assertEqual([d["id"] for d in reader.ReadDocuments(coll["_self"])], ["1"])
        with self.assertRaises(errors.HTTPFailure) as e:
            reader.CreateDocument(coll["_self"], {"id": "2"})
        self.assertEqual(e.exception.status_code, 403)
        self.client.DeletePermission(permission["_self"])
        self.gone(self.client.ReadPermission, permission["_self"])
        self.client.DeleteUser(user)
        self.gone(self.client.ReadUser, user)

    def test_offers(self):
        coll = self.client.CreateCollection(self.db, {"id": "offered"}, {"offerThroughput": 400})
        query = {"query": "SELECT * FROM c WHERE c.resource = @r", "parameters": [{"name": "@r", "value": coll["_self"]}]}
        (offer,) = self.client.QueryOffers(query)
        offer["content"]["offerThroughput"] = 600
        self.assertEqual(self.client.ReplaceOffer(offer["_self"], offer)["content"]["offerThroughput"], 600)
        with self.assertRaises(errors.HTTPFailure) as e:
            self.client.ReplaceOffer(offer["_self"], {**offer, "_rid": "NotAllowed"})
        self.assertEqual(e.exception.status_code, 400)

"""pymongo against the MongoDB API. ../run.sh says where the server is."""

import os
import unittest
from urllib.parse import quote_plus

from bson import ObjectId
from bson.binary import Binary, BinaryVectorDtype
from gridfs import GridFS
from pymongo import ASCENDING, DESCENDING, CursorType, MongoClient, ReturnDocument, UpdateOne, errors
from pymongo.operations import SearchIndexModel

LOGIN = f"{os.environ['ORRERY_ACCOUNT_NAME']}:{quote_plus(os.environ['ORRERY_ACCOUNT_KEY'])}"
URI = f"mongodb://{LOGIN}@{os.environ['ORRERY_MONGO']}/"


class Mongo(unittest.TestCase):
    def setUp(self):
        self.client = MongoClient(URI, directConnection=True)
        self.db = self.client[f"py-{os.getpid()}-{self._testMethodName[:20]}"]
        self.addCleanup(self.client.close)
        self.addCleanup(self.client.drop_database, self.db.name)

    def test_as_a_replica_set(self):
        with MongoClient(URI, replicaSet="globaldb") as c:
            self.assertEqual(c.admin.command("ping")["ok"], 1)

    def test_wrong_password(self):
        with MongoClient(f"mongodb://localhost:wrong@{os.environ['ORRERY_MONGO']}/", directConnection=True) as c:
            with self.assertRaises(errors.OperationFailure) as e:
                c.admin.command("ping")
            self.assertEqual(e.exception.code, 18)

    def test_write_and_find(self):
        c = self.db.c
        self.assertIsInstance(c.insert_one({"n": -1}).inserted_id, ObjectId)
        c.insert_many([{"_id": i, "n": i, "g": i % 3} for i in range(250)])
        self.assertEqual([d["_id"] for d in c.find({"g": 1}, {"_id": 1}).sort("n", DESCENDING).limit(2)], [247, 244])
        self.assertEqual(len(list(c.find(batch_size=20))), 251)
        self.assertEqual((c.count_documents({"g": 0}), c.estimated_document_count()), (84, 251))
        self.assertEqual(c.update_many({"g": 2}, {"$inc": {"n": 1000}}).modified_count, 83)
        after = c.find_one_and_update({"_id": 1}, {"$push": {"l": 5}}, return_document=ReturnDocument.AFTER)
        self.assertEqual(after, {"_id": 1, "n": 1, "g": 1, "l": [5]})
        self.assertEqual(c.bulk_write([UpdateOne({"_id": "u"}, {"$set": {"a": 1}}, upsert=True)]).upserted_ids, {0: "u"})
        self.assertEqual(c.delete_many({"g": {"$exists": True}}).deleted_count, 250)

    def test_indexes_and_aggregate(self):
        c = self.db.c
        c.insert_many([{"k": "a", "v": 1}, {"k": "a", "v": 2}, {"k": "b", "v": 5}])
        self.assertEqual(c.create_index([("k", ASCENDING)]), "k_1")
        self.assertEqual(sorted(c.index_information()), ["_id_", "k_1"])
        groups = c.aggregate([{"$group": {"_id": "$k", "s": {"$sum": "$v"}}}, {"$sort": {"_id": 1}}])
        self.assertEqual(list(groups), [{"_id": "a", "s": 3}, {"_id": "b", "s": 5}])

    def test_vectors(self):
        c = self.db.c
        near = Binary.from_vector([0.0, 1.0], BinaryVectorDtype.FLOAT32)
        c.insert_many([{"_id": 1, "v": [1.0, 0.0], "g": 1}, {"_id": 2, "v": near, "g": 2}, {"_id": 3, "v": [1, 1], "g": 2}])
        fields = [
            {"type": "vector", "path": "v", "numDimensions": 2, "similarity": "cosine"},
            {"type": "filter", "path": "g"},
        ]
        model = SearchIndexModel({"fields": fields}, name="near", type="vectorSearch")
        self.assertEqual(c.create_search_index(model), "near")
        self.assertTrue(next(c.list_search_indexes("near"))["queryable"])
        stage = {"index": "near", "path": "v", "queryVector": near, "numCandidates": 10, "limit": 2, "filter": {"g": 2}}
        score = {"$project": {"score": {"$meta": "vectorSearchScore"}}}
        found = list(c.aggregate([{"$vectorSearch": stage}, score]))
        self.assertEqual([(d["_id"], round(d["score"], 3)) for d in found], [(2, 1.0), (3, 0.854)])
        c.update_search_index("near", {"fields": fields[:1]})
        c.drop_search_index("near")
        self.assertEqual(list(c.list_search_indexes()), [])

    def test_watch(self):
        c = self.db.c
        with c.watch(full_document_before_change="whenAvailable") as stream, self.client.watch(
            [{"$match": {"ns.db": self.db.name, "operationType": "insert"}}]
        ) as everything:
            c.insert_one({"_id": 1, "l": [1, 2, 3]})
            c.update_one({"_id": 1}, [{"$set": {"l": [1]}}])
            c.delete_one({"_id": 1})
            events = [next(stream) for _ in range(3)]
            self.assertEqual([e["operationType"] for e in events], ["insert", "update", "delete"])
            cut = events[1]["updateDescription"]["truncatedArrays"]
            self.assertEqual(cut, [{"field": "l", "newSize": 1}])
            self.assertIsNone(events[1]["fullDocumentBeforeChange"])
            self.assertEqual(next(everything)["fullDocument"], {"_id": 1, "l": [1, 2, 3]})
            self.assertIsNone(stream.try_next())
            token = stream.resume_token
        c.insert_one({"_id": 2})
        with c.watch(resume_after=token) as stream:
            self.assertEqual(next(stream)["documentKey"], {"_id": 2})
        with self.assertRaises(errors.OperationFailure) as e:
            c.watch(resume_after={"_data": "00"})
        self.assertEqual(e.exception.code, 260)

    def test_oplog(self):
        log = self.client.local["oplog.rs"]
        last = log.find_one(sort=[("$natural", DESCENDING)])
        tail = log.find({"ts": {"$gt": last["ts"]}, "ns": f"{self.db.name}.c"}, cursor_type=CursorType.TAILABLE_AWAIT)
        self.db.c.insert_one({"_id": 1})
        self.db.c.delete_one({"_id": 1})
        got = [next(tail) for _ in range(2)]
        self.assertEqual([(e["op"], e["o"]) for e in got], [("i", {"_id": 1}), ("d", {"_id": 1})])
        tail.close()

    def test_gridfs(self):
        fs = GridFS(self.db)
        content = bytes(range(256)) * 2000
        file = fs.put(content, filename="f", chunk_size=100_000)
        self.assertEqual(fs.get(file).read(), content)
        self.assertEqual(fs.get_last_version("f")._id, file)
        with self.assertRaises(errors.DuplicateKeyError):
            self.db.fs.chunks.insert_one({"files_id": file, "n": 5})
        fs.delete(file)
        self.assertEqual(self.db.fs.chunks.count_documents({}), 0)

    def test_errors(self):
        self.db.c.insert_one({"_id": 1})
        with self.assertRaises(errors.DuplicateKeyError) as e:
            self.db.c.insert_one({"_id": 1})
        self.assertIn("E11000 duplicate key error collection", str(e.exception))
        with self.assertRaises(errors.OperationFailure) as e:
            self.db.c.find_one({"a": {"$nope": 1}})
        self.assertEqual(e.exception.code, 2)

    def test_transactions(self):
        self.db.c.insert_one({"_id": 1})
        with self.client.start_session() as s:
            with self.assertRaises(ValueError), s.start_transaction():
                self.db.c.insert_one({"_id": 2}, session=s)
                self.assertEqual(self.db.c.count_documents({}), 1)  # from outside
                raise ValueError
            with s.start_transaction():
                self.db.c.insert_one({"_id": 3}, session=s)
        self.assertEqual([d["_id"] for d in self.db.c.find().sort("_id")], [1, 3])


if __name__ == "__main__":
    unittest.main()

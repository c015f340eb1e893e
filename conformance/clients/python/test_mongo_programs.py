"""Programs that keep their state in MongoDB. ../run.sh says where the server is."""

import os
import socket
import threading
import unittest
from datetime import timedelta

from flask import Flask, session
from flask_session import Session
from kombu import Connection, Exchange, Queue
from pymongo import MongoClient
from pymongo.cursor import CursorType

from test_mongo import LOGIN, URI


def forward(to):
    """Maps a free port to another one, and returns it."""
    host, port = to.split(":")
    server = socket.create_server(("127.0.0.1", 0))

    def pump(a, b):
        try:
            while data := a.recv(1 << 16):
                b.sendall(data)
        except OSError:
            pass
        finally:
            for s in (a, b):
                s.close()

    def accept():
        while True:
            try:
                c, _ = server.accept()
            except OSError:
                return
            s = socket.create_connection((host, int(port)))
            for pair in ((c, s), (s, c)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return server


class Programs(unittest.TestCase):
    def setUp(self):
        self.client = MongoClient(URI, directConnection=True)
        self.name = f"py-{os.getpid()}-{self._testMethodName[:20]}"
        self.addCleanup(self.client.close)
        self.addCleanup(self.client.drop_database, self.name)

    def test_flask_session(self):
        app = Flask("test")
        app.config.update(SESSION_TYPE="mongodb", SESSION_MONGODB=self.client, SESSION_MONGODB_DB=self.name,
                          PERMANENT_SESSION_LIFETIME=timedelta(seconds=60))
        Session(app)

        @app.route("/")
        def count():
            session["n"] = session.get("n", 0) + 1
            return str(session["n"])

        one, other = app.test_client(), app.test_client()
        self.assertEqual([c.get("/").text for c in (one, one, other, one)], ["1", "2", "1", "3"])
        self.assertEqual(self.client[self.name].sessions.count_documents({}), 2)
        expires = [i for i in self.client[self.name].sessions.list_indexes() if "expireAfterSeconds" in i]
        self.assertEqual([i["expireAfterSeconds"] for i in expires], [0])

    def test_kombu_broker(self):
        url = f"mongodb://{LOGIN}@{os.environ['ORRERY_MONGO']}/{self.name}?directConnection=true&authSource=admin"
        exchange = Exchange("work", type="direct")
        queue = Queue("jobs", exchange, routing_key="jobs")
        with Connection(url) as c:
            with c.Producer() as p:
                for i in range(3):
                    p.publish({"n": i}, exchange=exchange, routing_key="jobs", declare=[queue])
            got = []
            with c.Consumer(queue, callbacks=[lambda body, m: (got.append(body["n"]), m.ack())]):
                for _ in range(3):
                    c.drain_events(timeout=10)
            self.assertEqual(got, [0, 1, 2])
            with c.SimpleQueue("simple") as q:
                q.put("x")
                self.assertEqual(q.qsize(), 1)
                m = q.get(timeout=10)
                self.assertEqual(m.payload, "x")
                m.ack()

    def test_exhaust_cursor(self):
        c = self.client[self.name].c
        c.insert_many([{"_id": i, "pad": "x" * 1000} for i in range(1000)])
        got = list(c.find(cursor_type=CursorType.EXHAUST, batch_size=30).sort("_id", 1))
        self.assertEqual([d["_id"] for d in got], list(range(1000)))
        with c.find(cursor_type=CursorType.EXHAUST, batch_size=2) as half:
            next(half)
        self.assertEqual(c.count_documents({}), 1000)

    def test_compressed(self):
        with MongoClient(URI, directConnection=True, compressors="zlib") as client:
            c = client[self.name].c
            c.insert_many([{"_id": i, "pad": "x" * 5000} for i in range(100)])
            self.assertEqual(sum(len(d["pad"]) for d in c.find()), 500_000)

    def test_mapped_port(self):
        with forward(os.environ["ORRERY_MONGO"]) as server:
            port = server.getsockname()[1]
            for options in ({}, {"replicaSet": "globaldb"}):
                with MongoClient(f"mongodb://{LOGIN}@127.0.0.1:{port}/", directConnection=True, **options) as c:
                    c[self.name].c.insert_one({})
                    self.assertEqual(c.address, ("127.0.0.1", port))


if __name__ == "__main__":
    unittest.main()

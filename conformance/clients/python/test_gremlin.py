"""gremlinpython against the Gremlin API. ../run.sh says where the server is."""

import logging
import os
import unittest

from gremlin_python.driver import serializer
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import P, T

LOGIN = {"username": os.environ["ORRERY_ACCOUNT_NAME"], "password": os.environ["ORRERY_ACCOUNT_KEY"]}
URL = os.environ["ORRERY_GREMLIN"]
logging.getLogger("gremlinpython").setLevel(logging.CRITICAL)  # it logs every error that the tests ask for
SERIALIZERS = [serializer.GraphBinarySerializersV1, serializer.GraphSONSerializersV3d0, serializer.GraphSONSerializersV2d0]


class Gremlin(unittest.TestCase):
    def test_scripts(self):
        for make in SERIALIZERS:
            with self.subTest(make.__name__):
                c = Client(URL, "g", message_serializer=make(), **LOGIN)
                self.addCleanup(c.close)
                ask = lambda script, **b: c.submit(script, b).all().result()
                name = "py-" + make.__name__
                v = ask("g.addV('person').property(id, x).property('age', 29)", x=name)[0]
                self.assertEqual((v.id, v.label), (name, "person"))
                self.assertEqual(ask("g.V(x).values('age')", x=name), [29])
                self.assertEqual(ask("g.V('nobody')"), [])
                self.assertEqual(len(ask("g.inject(0).repeat(union(identity(), identity())).times(8)")), 256)
                with self.assertRaises(GremlinServerError) as e:
                    ask("g.V().nonsense()")
                self.assertEqual(e.exception.status_code, 597)
                self.assertEqual(ask("g.V(x).drop()", x=name), [])

    def test_bytecode(self):
        for make in SERIALIZERS[:2]:
            with self.subTest(make.__name__):
                remote = DriverRemoteConnection(URL, "g", message_serializer=make(), **LOGIN)
                self.addCleanup(remote.close)
                g = traversal().with_(remote)
                a, b = "a-" + make.__name__, "b-" + make.__name__
                g.add_v("person").property(T.id, a).property("age", 29).iterate()
                g.add_v("person").property(T.id, b).property("age", 31).iterate()
                g.V(a).add_e("knows").to(__.V(b)).property("since", 2020).iterate()
                self.assertEqual(g.V(a).out("knows").values("age").to_list(), [31])
                self.assertEqual(g.V(a, b).has("age", P.gt(30)).id_().to_list(), [b])
                self.assertEqual(g.V(a).out_e().value_map().next(), {"since": 2020})
                self.assertEqual(g.V(a, b).group_count().by(T.label).next(), {"person": 2})
                self.assertEqual(g.V(a).out().path().by("age").next().objects, [29, 31])
                g.V(a, b).drop().iterate()
                self.assertFalse(g.V(a, b).has_next())


if __name__ == "__main__":
    unittest.main()

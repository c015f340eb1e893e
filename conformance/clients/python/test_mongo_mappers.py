"""Object mappers and a scheduler on the MongoDB API. ../run.sh says where the server is."""

import asyncio
import threading
import unittest
import uuid

import mongoengine
from apscheduler.jobstores.mongodb import MongoDBJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from beanie import DeleteRules, Document, Indexed, Link, View, WriteRules, init_beanie
from beanie.exceptions import RevisionIdWasChanged
from beanie.operators import Inc
from pymongo import TEXT, AsyncMongoClient, IndexModel, MongoClient
from pymongo.errors import DuplicateKeyError

from test_mongo import URI


class Address(mongoengine.EmbeddedDocument):
    city = mongoengine.StringField(required=True)


class Person(mongoengine.Document):
    meta = {
        "allow_inheritance": True,
        "indexes": [
            {"fields": ["mail"], "unique": True, "sparse": True},
            "#name",
            ("age", "-name"),
            "$bio",
            {"fields": ["seen"], "expireAfterSeconds": 3600, "cls": False},
        ],
    }
    name = mongoengine.StringField()
    mail = mongoengine.EmailField()
    age = mongoengine.IntField()
    bio = mongoengine.StringField()
    seen = mongoengine.DateTimeField()
    addresses = mongoengine.EmbeddedDocumentListField(Address)
    tags = mongoengine.ListField(mongoengine.StringField())
    friend = mongoengine.ReferenceField("self", reverse_delete_rule=mongoengine.NULLIFY)
    extra = mongoengine.DictField()


class Boss(Person):
    number = mongoengine.SequenceField()


class Place(mongoengine.Document):
    at = mongoengine.PointField()
    area = mongoengine.PolygonField()


class Door(Document):
    height: int = 2


class House(Document):
    name: Indexed(str, unique=True)
    bio: str = "words"
    rooms: int = 1
    doors: list[Link[Door]] = []

    class Settings:
        use_revision = True
        use_state_management = True
        indexes = [IndexModel([("bio", TEXT)], name="words"), [("rooms", 1), ("name", -1)]]


class Rooms(View):
    rooms: int
    n: int

    class Settings:
        source = House
        pipeline = [
            {"$group": {"_id": "$rooms", "n": {"$sum": 1}}},
            {"$project": {"rooms": "$_id", "n": 1, "_id": 0}},
        ]


RAN = threading.Event()


def job():
    RAN.set()


class Mappers(unittest.TestCase):
    def setUp(self):
        self.name = "mappers" + uuid.uuid4().hex

    def test_mongoengine(self):
        mongoengine.connect(self.name, host=URI, directConnection=True, authSource="admin")
        self.addCleanup(mongoengine.disconnect)
        ann = Person(name="Ann", mail="a@x.org", age=30, bio="likes walking dogs", tags=["a", "b"],
                     addresses=[Address(city="Rome")]).save()
        bob = Boss(name="Bob", mail="b@x.org", age=40, bio="walks a lot", friend=ann, tags=["b", "c"]).save()
        Boss(name="Cy", age=50, tags=[]).save()
        with self.assertRaises(mongoengine.NotUniqueError):
            Person(name="other", mail="a@x.org").save()
        self.assertEqual((Person.objects.count(), Boss.objects.count()), (3, 2))
        self.assertEqual([b.number for b in Boss.objects.order_by("name")], [1, 2])
        self.assertEqual([p.name for p in Person.objects(age__gte=40).order_by("-age")], ["Cy", "Bob"])
        self.assertEqual(Person.objects(name__icontains="NN", addresses__city="Rome").first().name, "Ann")
        self.assertEqual({p.name for p in Person.objects.search_text("walking").order_by("$text_score")}, {"Ann", "Bob"})
        self.assertEqual((Person.objects.average("age"), Person.objects.sum("age")), (40, 120))
        self.assertEqual(Person.objects(name="Ann").update(inc__age=1, push__tags="z", set__extra__k=5), 1)
        self.assertEqual(Person.objects(name="Ann").modify(new=True, pull__tags="z").tags, ["a", "b"])
        self.assertEqual(Person.objects(tags="b").update(set__tags__S="B"), 2)
        self.assertEqual(Person.objects(name="Dee").upsert_one(set__age=2).age, 2)
        self.assertTrue(Person.objects.hint("_cls_1_age_1_name_-1").filter(age__gt=30))
        ann.delete()
        bob.reload()
        self.assertIsNone(bob.friend)
        Place(at=[12.5, 41.9], area=[[[0, 0], [0, 5], [5, 5], [5, 0], [0, 0]]]).save()
        Place(at=[13.4, 52.5]).save()
        self.assertEqual(len(list(Place.objects(at__near=[12.4, 41.8], at__max_distance=50_000))), 1)
        self.assertEqual(Place.objects(area__geo_intersects=[1, 1]).count(), 1)

    def test_beanie(self):
        asyncio.run(self.beanie())

    async def beanie(self):
        async with AsyncMongoClient(URI, directConnection=True) as client:
            await init_beanie(database=client[self.name], document_models=[House, Door, Rooms], recreate_views=True)
            house = House(name="a", rooms=3, doors=[Door(height=1), Door(height=2)])
            await house.insert(link_rule=WriteRules.WRITE)
            await House.insert_many([House(name=f"h{i}", rooms=i % 4) for i in range(20)])
            with self.assertRaises(DuplicateKeyError):
                await House(name="a").insert()
            got = await House.find_one(House.name == "a", fetch_links=True)
            self.assertEqual(sorted(d.height for d in got.doors), [1, 2])  # they are written side by side
            house.rooms = 9
            await house.save_changes()
            other = await House.get(house.id)
            other.name = "x"
            await other.save()
            house.name = "y"
            with self.assertRaises(RevisionIdWasChanged):
                await house.save()
            await House.find(House.rooms == 3).update(Inc({House.rooms: 2}))
            self.assertEqual([r.n for r in await Rooms.find(Rooms.rooms == 5).to_list()], [5])
            async with client.start_session() as s:
                async with await s.start_transaction():
                    await House(name="tx", bio="inside").insert(session=s)
            self.assertEqual((await House.find_one({"$text": {"$search": "inside"}})).name, "tx")
            await other.fetch_all_links()
            await other.delete(link_rule=DeleteRules.DELETE_LINKS)
            self.assertEqual(await Door.count(), 0)

    def test_apscheduler(self):
        with MongoClient(URI, directConnection=True) as client:
            scheduler = BackgroundScheduler(jobstores={"default": MongoDBJobStore(self.name, client=client)})
            scheduler.start()
            try:
                scheduler.add_job(job, "interval", seconds=0.1, id="j")
                self.assertTrue(RAN.wait(10))
                stored = client[self.name].jobs.find_one({"_id": "j"})
                self.assertGreater(stored["next_run_time"], 0)
                scheduler.remove_job("j")
                self.assertEqual(scheduler.get_jobs(), [])
            finally:
                scheduler.shutdown()


if __name__ == "__main__":
    unittest.main()

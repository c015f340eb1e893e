"""What the wheel's tests run with pytest: each test has an account of its own."""

import urllib.error
import urllib.request

names = set()


def reach(account):
    names.add(account.name)
    assert account.mongo["connectionString"].startswith("mongodb://" + account.name + ":")
    try:
        urllib.request.urlopen(account.nosql["endpoint"])
        raise AssertionError("a request without a signature was answered")
    except urllib.error.HTTPError as error:
        assert error.code == 401


def test_one(orrery):
    reach(orrery)


def test_two(orrery, orrery_server):
    reach(orrery)
    assert len(names) == 2
    orrery_server.reset()

"""Fixtures for pytest: orrery_server is one server for all tests, orrery an account of it for each test."""

import re

import pytest

import orrery_db


@pytest.fixture(scope="session")
def orrery_server():
    """A server in memory, on free ports, for the whole session."""
    with orrery_db.start() as server:
        yield server


@pytest.fixture
def orrery(orrery_server, request):
    """An empty account for one test."""
    orrery_server.accounts = getattr(orrery_server, "accounts", 0) + 1
    name = "%s-%d" % (re.sub("[^a-z0-9]", "-", request.node.name.lower())[:40], orrery_server.accounts)
    yield orrery_server.add_account(name)
    orrery_server.remove_account(name)

"""Starts servers of Orrery for tests: in memory, on free ports, with test controls.

    with orrery_db.start() as server:
        client = CosmosClient.from_connection_string(server.nosql["connectionString"])
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request


def binary():
    """Return the path of the binary that the wheel has installed."""
    if os.environ.get("ORRERY_BINARY"):
        return os.environ["ORRERY_BINARY"]
    exe = "orrery.exe" if sys.platform == "win32" else "orrery"
    places = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable),
              sysconfig.get_path("scripts", os.name + "_user")]
    for place in places:
        path = os.path.join(place, exe)
        if os.path.isfile(path):
            return path
    found = shutil.which("orrery")
    if found:
        return found
    raise FileNotFoundError("the command orrery isn't installed")


class Account:
    """The connection strings of an account: nosql, table, gremlin, mongo, and its name and key."""

    def __init__(self, connect):
        self.name = connect["account"]
        self.key = connect.get("key")
        self.nosql = connect.get("nosql")
        self.table = connect.get("table")
        self.gremlin = connect.get("gremlin")
        self.mongo = connect.get("mongo")


class Server(Account):
    """A running server. It is its own account, and can have more."""

    def __init__(self, process, directory, connect):
        super().__init__(connect)
        self.admin = connect["admin"]["endpoint"]
        self._process = process
        self._directory = directory

    def control(self, method, name, body=None):
        """Send a request to the test controls and return the reply."""
        data = None if body is None else json.dumps(body).encode()
        url = self.admin + "orrery/test" + ("/" + name if name else "")
        request = urllib.request.Request(url, data, method=method)
        request.add_header("Authorization", "Bearer " + self.key)
        try:
            with urllib.request.urlopen(request) as reply:
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError("%s: %d %s" % (name, error.code, error.read().decode())) from None
        return json.loads(text) if text else None

    def add_account(self, name):
        """Add an empty account."""
        return Account(self.control("POST", "accounts", {"name": name}))

    def remove_account(self, name):
        """Remove an account with its data."""
        self.control("DELETE", "accounts", {"name": name})

    def reset(self, account=None):
        """Remove everything from an account, or from all."""
        self.control("POST", "reset", {"account": account} if account else {})

    def stop(self):
        """Stop the server."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start(*args, timeout=20):
    """Start a server. args are further arguments of orrery serve."""
    directory = tempfile.mkdtemp(prefix="orrery-")
    file = os.path.join(directory, "connect.json")
    command = [binary(), "serve", "--memory", "--test-controls", "--connect-file", file, "--log-level", "warn"]
    for api in ("nosql", "table", "gremlin", "mongo", "admin"):
        command += ["--%s-addr" % api, "127.0.0.1:0"]
    process = subprocess.Popen(command + list(args), stdout=subprocess.DEVNULL)
    until = time.monotonic() + timeout
    while time.monotonic() < until and process.poll() is None:
        try:
            with open(file) as f:
                server = Server(process, directory, json.load(f))
            with urllib.request.urlopen(server.admin + "ready"):
                return server
        except (OSError, ValueError):
            time.sleep(0.01)
    code = process.poll()
    if code is None:
        process.kill()
        process.wait()
    shutil.rmtree(directory, ignore_errors=True)
    raise RuntimeError("orrery ended with code %s" % code if code is not None else "orrery is not ready")

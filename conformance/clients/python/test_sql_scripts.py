"""azure-cosmos for Python: stored procedures, triggers and user-defined functions."""

import unittest
from urllib.parse import unquote

from sqlcase import CROSS, SQLCase

ADD_BOOK = """
function addBook(book, fail) {
  const c = getContext().getCollection();
  const author = { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: book.author }] };
  c.createDocument(c.getSelfLink(), book, (err, made) => {
    if (err) throw new Error(err.number, err.body);
    c.queryDocuments(c.getSelfLink(), author, (err, found) => {
      found[0].countOfBooks++;
      c.replaceDocument(found[0]._self, found[0], (err) => {
        console.log("added %s", made.id);
        if (fail) throw new Error(fail, "asked to fail");
        getContext().getResponse().setBody(made);
      });
    });
  });
}"""
STAMP = """
function () {
  const r = getContext().getRequest(), d = r.getBody();
  if (d.bad) throw new Error("a bad item");
  d.stamped = r.getOperationType();
  r.setBody(d);
}"""
NOTE = """
function () {
  const made = getContext().getResponse().getBody();
  if (!__.createDocument(__.getSelfLink(), { id: "note-" + made.id, pk: made.pk })) throw new Error("no time");
}"""
LOG = "x-ms-documentdb-script-log-results"


class Scripts(SQLCase):
    def test_resources(self):
        s = self.container().scripts
        for create, read, replace, delete, query, all_of, body in (
            (s.create_stored_procedure, s.get_stored_procedure, s.replace_stored_procedure, s.delete_stored_procedure,
             s.query_stored_procedures, s.list_stored_procedures, {}),
            (s.create_trigger, s.get_trigger, s.replace_trigger, s.delete_trigger, s.query_triggers, s.list_triggers,
             {"triggerType": "Pre", "triggerOperation": "All"}),
            (s.create_user_defined_function, s.get_user_defined_function, s.replace_user_defined_function,
             s.delete_user_defined_function, s.query_user_defined_functions, s.list_user_defined_functions, {}),
        ):
            made = create({"id": "one", "body": "function () { return 1; }", **body})
            self.assertEqual(read("one")["_self"], made["_self"])
            self.refused(409, create, {"id": "one", "body": "function () {}", **body})
            changed = replace("one", {"id": "one", "body": "function () { return 2; }", **body})
            self.assertIn("return 2", changed["body"])
            self.assertEqual([r["id"] for r in all_of()], ["one"])
            self.assertEqual([r["id"] for r in query("SELECT * FROM r WHERE r.id = 'one'")], ["one"])
            delete("one")
            self.refused(404, read, "one")

    def test_procedures(self):
        c = self.container()
        s = c.scripts
        s.create_stored_procedure({"id": "echo", "body": "function (...args) { getContext().getResponse().setBody(args); }"})
        args = ["text", 1.5, True, None, {"a": [1, "\u00e9"]}]
        self.assertEqual(s.execute_stored_procedure("echo", partition_key="a", params=args), args)
        s.create_stored_procedure({"id": "addBook", "body": ADD_BOOK})
        c.create_item({"id": "a1", "pk": "books", "countOfBooks": 3})

        def add(book, *more, **options):
            return s.execute_stored_procedure("addBook", partition_key="books", params=[{"id": book, "pk": "books", "author": "a1"}, *more], **options)

        def count():
            return c.read_item("a1", "books")["countOfBooks"]

        self.refused(400, add, "b1", 4711, sub=4711)
        self.refused(404, c.read_item, "b1", "books")
        self.assertEqual(count(), 3)
        self.assertEqual(add("b1")["_self"], c.read_item("b1", "books")["_self"])
        self.assertEqual(count(), 4)
        self.refused(400, add, "b1", sub=409)
        add("b2", enable_script_logging=True)
        self.assertEqual(unquote(c.client_connection.last_response_headers[LOG]), "added b2")
        e = self.refused(400, add, "b3", 1, enable_script_logging=True)
        self.assertEqual(unquote(e.headers[LOG]), "added b3")
        self.refused(404, s.execute_stored_procedure, "none", partition_key="a")
        s.create_stored_procedure({"id": "wrong", "body": "function ( {"})
        self.refused(400, s.execute_stored_procedure, "wrong", partition_key="a", sub=65535)

    def test_triggers(self):
        c = self.container()
        c.scripts.create_trigger({"id": "stamp", "body": STAMP, "triggerType": "Pre", "triggerOperation": "All"})
        c.scripts.create_trigger({"id": "note", "body": NOTE, "triggerType": "Post", "triggerOperation": "Create"})
        both = {"pre_trigger_include": "stamp", "post_trigger_include": "note"}
        self.assertEqual(c.create_item({"id": "1", "pk": "a"}, **both)["stamped"], "Create")
        self.assertEqual(c.read_item("note-1", "a")["pk"], "a")
        self.assertEqual(c.replace_item("1", {"id": "1", "pk": "a"}, pre_trigger_include="stamp")["stamped"], "Replace")
        self.refused(400, c.create_item, {"id": "2", "pk": "a", "bad": True}, **both)
        self.refused(404, c.read_item, "2", "a")
        self.assertNotIn("stamped", c.create_item({"id": "3", "pk": "a"}))
        self.refused(400, c.create_item, {"id": "4", "pk": "a"}, pre_trigger_include="none")
        self.refused(400, c.create_item, {"id": "4", "pk": "a"}, pre_trigger_include="note")

    def test_functions(self):
        c = self.container()
        c.scripts.create_user_defined_function({"id": "tax", "body": "function (d) { return d.income < 1000 ? d.income / 10 : d.income / 5; }"})
        c.scripts.create_user_defined_function({"id": "fails", "body": "function () { throw new Error('no value'); }"})
        for i in range(1, 4):
            c.create_item({"id": f"{i}", "pk": f"{i % 2}", "income": 500 * i})
        self.assertEqual(sorted(c.query_items("SELECT VALUE udf.tax(c) FROM c", **CROSS)), [50, 200, 300])
        self.assertEqual(list(c.query_items("SELECT VALUE c.id FROM c WHERE udf.tax(c) > 200", **CROSS)), ["3"])
        self.refused(400, c.query_items, "SELECT VALUE udf.fails() FROM c", **CROSS)
        self.refused(400, c.query_items, "SELECT VALUE udf.none(1) FROM c", **CROSS)


if __name__ == "__main__":
    unittest.main()

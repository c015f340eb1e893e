import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** Stored procedures, triggers and user-defined functions: as resources, and run by the server. */
class Scripts extends Check {
    static final String ADD_BOOK = """
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
                getContext().getResponse().setBody(made.id);
              });
            });
          });
        }""";

    static void run(CosmosDatabase db) {
        db.createContainer("scripts", "/pk");
        CosmosContainer c = db.getContainer("scripts");
        CosmosScripts s = c.getScripts();
        resources(s);
        procedures(c, s);
        triggers(c, s);
        functions(c, s);
    }

    static void resources(CosmosScripts s) {
        test("scripts: create a procedure", () -> s.createStoredProcedure(new CosmosStoredProcedureProperties("crud", "function () { const x = 10; }")).getStatusCode(), 201);
        test("scripts: create it again", () -> s.createStoredProcedure(new CosmosStoredProcedureProperties("crud", "function () {}")), "status 409");
        test("scripts: read it", () -> s.getStoredProcedure("crud").read().getProperties().getBody(), "function () { const x = 10; }");
        test("scripts: replace it", () -> {
            var p = s.getStoredProcedure("crud").read().getProperties(); // the client addresses it by its link
            return s.getStoredProcedure("crud").replace(p.setBody("function () {}")).getProperties().getBody();
        }, "function () {}");
        test("scripts: list procedures", () -> s.readAllStoredProcedures().stream().map(p -> p.getId()).toList(), "[crud]");
        test("scripts: query procedures", () -> s.queryStoredProcedures("SELECT * FROM r WHERE r.id = 'crud'", new CosmosQueryRequestOptions()).stream().map(p -> p.getId()).toList(), "[crud]");
        test("scripts: delete it", () -> s.getStoredProcedure("crud").delete().getStatusCode(), 204);
        test("scripts: read a missing one", () -> s.getStoredProcedure("crud").read(), "status 404");
        test("scripts: a trigger", () -> {
            var made = s.createTrigger(new CosmosTriggerProperties("crud", "function () {}").setTriggerType(TriggerType.POST).setTriggerOperation(TriggerOperation.DELETE)).getProperties();
            return made.getTriggerType() + " " + made.getTriggerOperation() + " " + s.getTrigger("crud").delete().getStatusCode();
        }, TriggerType.POST + " " + TriggerOperation.DELETE + " 204");
        test("scripts: a function", () -> {
            s.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("crud", "function () {}"));
            return s.readAllUserDefinedFunctions().stream().map(f -> f.getId()).toList() + " " + s.getUserDefinedFunction("crud").delete().getStatusCode();
        }, "[crud] 204");
    }

    static CosmosStoredProcedureRequestOptions at(String key) {
        return new CosmosStoredProcedureRequestOptions().setPartitionKey(pk(key));
    }

    static Object count(CosmosContainer c) {
        return read(c, "a1", pk("books")).get("countOfBooks");
    }

    static void procedures(CosmosContainer c, CosmosScripts s) {
        s.createStoredProcedure(new CosmosStoredProcedureProperties("echo", "function (...args) { getContext().getResponse().setBody(args); }"));
        test("scripts: arguments", () -> s.getStoredProcedure("echo").execute(Arrays.asList("text", 1.5, true, null, item("a", List.of(1))), at("a")).getResponseAsString(), "[\"text\",1.5,true,null,{\"a\":[1]}]");
        s.createStoredProcedure(new CosmosStoredProcedureProperties("addBook", ADD_BOOK));
        c.createItem(item("id", "a1", "pk", "books", "countOfBooks", 3));
        CosmosStoredProcedure add = s.getStoredProcedure("addBook");
        test("scripts: all or nothing", () -> add.execute(List.of(item("id", "b1", "pk", "books", "author", "a1"), 4711), at("books")), "status 400/4711");
        test("scripts: nothing was written", () -> read(c, "b1", pk("books")), "status 404");
        test("scripts: nothing was counted", () -> count(c), 3);
        test("scripts: several items", () -> add.execute(List.of(item("id", "b1", "pk", "books", "author", "a1")), at("books")).getResponseAsString(), "\"b1\"");
        test("scripts: the item was counted", () -> count(c), 4);
        test("scripts: a conflict", () -> add.execute(List.of(item("id", "b1", "pk", "books", "author", "a1")), at("books")), "status 400/409");
        test("scripts: another key", () -> add.execute(List.of(item("id", "b2", "pk", "other", "author", "a1")), at("books")).getStatusCode(), "status 400/400");
        test("scripts: the log", () -> {
            var r = add.execute(List.of(item("id", "b3", "pk", "books", "author", "a1")), at("books").setScriptLoggingEnabled(true));
            return URLDecoder.decode(r.getScriptLog(), StandardCharsets.UTF_8);
        }, "added b3");
        test("scripts: the log of a failure", () -> {
            try {
                return add.execute(List.of(item("id", "b4", "pk", "books", "author", "a1"), 1), at("books").setScriptLoggingEnabled(true)).getScriptLog();
            } catch (CosmosException e) {
                return e.getStatusCode() + " " + URLDecoder.decode(e.getResponseHeaders().get("x-ms-documentdb-script-log-results"), StandardCharsets.UTF_8);
            }
        }, "400 added b4");
        s.createStoredProcedure(new CosmosStoredProcedureProperties("wrong", "function ( {"));
        test("scripts: a syntax error", () -> s.getStoredProcedure("wrong").execute(List.of(), at("a")), "status 400/65535");
        test("scripts: a missing procedure", () -> s.getStoredProcedure("none").execute(List.of(), at("a")), "status 404");
    }

    static void triggers(CosmosContainer c, CosmosScripts s) {
        s.createTrigger(new CosmosTriggerProperties("stamp", """
            function () {
              const r = getContext().getRequest(), d = r.getBody();
              if (d.bad) throw new Error("a bad item");
              d.stamped = r.getOperationType();
              r.setBody(d);
            }""").setTriggerType(TriggerType.PRE).setTriggerOperation(TriggerOperation.ALL));
        s.createTrigger(new CosmosTriggerProperties("note", """
            function () {
              const made = getContext().getResponse().getBody();
              if (!__.createDocument(__.getSelfLink(), { id: "note-" + made.id, pk: made.pk })) throw new Error("no time");
            }""").setTriggerType(TriggerType.POST).setTriggerOperation(TriggerOperation.CREATE));
        var both = new CosmosItemRequestOptions().setPreTriggerInclude(List.of("stamp")).setPostTriggerInclude(List.of("note"));
        test("scripts: both triggers", () -> ((Map<?, ?>) c.createItem(item("id", "t1", "pk", "t"), pk("t"), both).getItem()).get("stamped"), "Create");
        test("scripts: what the post-trigger wrote", () -> read(c, "note-t1", pk("t")).get("pk"), "t");
        test("scripts: a trigger that throws", () -> c.createItem(item("id", "t2", "pk", "t", "bad", true), pk("t"), both), "status 400");
        test("scripts: it left nothing", () -> read(c, "t2", pk("t")), "status 404");
        test("scripts: without triggers", () -> ((Map<?, ?>) c.createItem(item("id", "t3", "pk", "t"), pk("t"), new CosmosItemRequestOptions()).getItem()).get("stamped"), null);
        test("scripts: a missing trigger", () -> c.createItem(item("id", "t4", "pk", "t"), pk("t"), new CosmosItemRequestOptions().setPreTriggerInclude(List.of("none"))), "status 400");
        test("scripts: a trigger of the other type", () -> c.createItem(item("id", "t4", "pk", "t"), pk("t"), new CosmosItemRequestOptions().setPreTriggerInclude(List.of("note"))), "status 400");
    }

    static void functions(CosmosContainer c, CosmosScripts s) {
        s.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("tax", "function (d) { return d.income < 1000 ? d.income / 10 : d.income / 5; }"));
        s.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("fails", "function () { throw new Error('no value'); }"));
        for (int i = 1; i <= 3; i++) c.createItem(item("id", "f" + i, "pk", "f" + i % 2, "income", 500 * i));
        test("scripts: a function in the select list", () -> sorted(rows(c, "SELECT VALUE udf.tax(c) FROM c WHERE IS_DEFINED(c.income)", null)), "[200, 300, 50]");
        test("scripts: a function in a condition", () -> rows(c, "SELECT VALUE c.id FROM c WHERE udf.tax(c) > 200", null), "[f3]");
        test("scripts: a function that throws", () -> rows(c, "SELECT VALUE udf.fails() FROM c", null), "status 400");
        test("scripts: a missing function", () -> rows(c, "SELECT VALUE udf.none(1) FROM c", null), "status 400");
    }
}

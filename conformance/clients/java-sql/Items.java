import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.util.*;

/** Items one at a time, and in transactional batches. */
class Items extends Check {
    static void run(CosmosDatabase db) {
        db.createContainer(new CosmosContainerProperties("items", "/pk"));
        CosmosContainer c = db.getContainer("items");
        life(c);
        conditions(c);
        patch(c);
        batch(c);
        keys(c);
        ttlAndUnique(db);
        sessions(c);
    }

    static void life(CosmosContainer c) {
        test("create", () -> c.createItem(item("id", "1", "pk", "a", "n", 1)).getStatusCode(), 201);
        test("create again", () -> c.createItem(item("id", "1", "pk", "a")).getStatusCode(), "status 409");
        test("create under another key", () -> c.createItem(item("id", "2", "pk", "a"), pk("b"), null).getStatusCode(), "status 400/1001");
        test("create without an id", () -> c.createItem(item("pk", "a"), pk("a"), null).getStatusCode(), "status 400");
        test("read", () -> read(c, "1", pk("a")).get("n"), 1);
        test("read of what isn't there", () -> read(c, "none", pk("a")), "status 404");
        test("what every reply has", () -> {
            CosmosItemResponse<Map> r = c.readItem("1", pk("a"), Map.class);
            return (r.getRequestCharge() > 0) + " " + r.getSessionToken().matches("\\d+:-1#\\d+") + " " + r.getETag().equals(r.getItem().get("_etag")) + " " + (r.getActivityId().length() == 36);
        }, "true true true true");
        test("replace", () -> c.replaceItem(item("id", "1", "pk", "a", "n", 2), "1", pk("a"), null).getItem().get("n"), 2);
        test("replace of what isn't there", () -> c.replaceItem(item("id", "none", "pk", "a"), "none", pk("a"), null).getStatusCode(), "status 404");
        test("upsert", () -> c.upsertItem(item("id", "2", "pk", "a")).getStatusCode() + " " + c.upsertItem(item("id", "2", "pk", "a", "n", 5)).getStatusCode(), "201 200");
        test("a minimal reply", () -> c.upsertItem(item("id", "2", "pk", "a"), new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false)).getItem(), null);
        test("excluded from the index", () -> c.upsertItem(item("id", "2", "pk", "a"), new CosmosItemRequestOptions().setIndexingDirective(IndexingDirective.EXCLUDE)).getStatusCode(), 200);
        test("delete", () -> c.deleteItem("1", pk("a"), null).getStatusCode(), 204);
        test("delete of what isn't there", () -> c.deleteItem("1", pk("a"), null).getStatusCode(), "status 404");
        test("more than 2 MB", () -> c.createItem(item("id", "big", "pk", "a", "s", "x".repeat(3 << 20))).getStatusCode(), "status 413");
        test("odd ids", () -> {
            int n = 0;
            for (String id : List.of("with space", " leading", ",=.:~+-@()^${}[]!_", "\u9c40", "100%25", "\ud83d\ude00")) {
                c.createItem(item("id", id, "pk", "odd"));
                if (id.equals(read(c, id, pk("odd")).get("id")) && c.deleteItem(id, pk("odd"), null).getStatusCode() == 204) n++;
            }
            return n;
        }, 6);
    }

    static void conditions(CosmosContainer c) {
        CosmosItemRequestOptions stale = new CosmosItemRequestOptions().setIfMatchETag("\"stale\"");
        c.upsertItem(item("id", "e", "pk", "a"));
        test("stale etag: replace", () -> c.replaceItem(item("id", "e", "pk", "a"), "e", pk("a"), stale).getStatusCode(), "status 412");
        test("stale etag: upsert", () -> c.upsertItem(item("id", "e", "pk", "a"), stale).getStatusCode(), "status 412");
        test("stale etag: delete", () -> c.deleteItem("e", pk("a"), stale).getStatusCode(), "status 412");
        test("fresh etag", () -> {
            String etag = c.readItem("e", pk("a"), Map.class).getETag();
            return c.replaceItem(item("id", "e", "pk", "a", "n", 1), "e", pk("a"), new CosmosItemRequestOptions().setIfMatchETag(etag)).getStatusCode();
        }, 200);
        test("a read that isn't repeated", () -> {
            String etag = c.readItem("e", pk("a"), Map.class).getETag();
            return c.readItem("e", pk("a"), new CosmosItemRequestOptions().setIfNoneMatchETag(etag), Map.class).getStatusCode();
        }, 304);
    }

    static void patch(CosmosContainer c) {
        c.upsertItem(item("id", "p", "pk", "a", "n", 2, "list", List.of(1, 2), "o", Map.of("x", 1), "gone", true));
        test("patch", () -> {
            Map<?, ?> m = c.patchItem("p", pk("a"), CosmosPatchOperations.create().increment("/n", 5).add("/new", true).set("/o/y", "z").replace("/o/x", 2).remove("/gone")
                    .add("/list/-", 3).add("/list/0", 0).move("/new", "/moved"), Map.class).getItem();
            return m.get("n") + " " + m.get("o") + " " + m.get("list") + " " + m.get("moved") + " " + m.get("gone") + " " + m.get("new");
        }, "7 {x=2, y=z} [0, 1, 2, 3] true null null");
        test("patch, half a number", () -> c.patchItem("p", pk("a"), CosmosPatchOperations.create().increment("/n", 0.5), Map.class).getItem().get("n"), 7.5);
        test("patch under a condition", () -> c.patchItem("p", pk("a"), CosmosPatchOperations.create().set("/n", 1), new CosmosPatchItemRequestOptions().setFilterPredicate("FROM c WHERE c.n > 7"), Map.class).getStatusCode(), 200);
        test("patch under a false condition", () -> c.patchItem("p", pk("a"), CosmosPatchOperations.create().set("/n", 1), new CosmosPatchItemRequestOptions().setFilterPredicate("FROM c WHERE c.n > 7"), Map.class).getStatusCode(), "status 412/1110");
        test("patch of an absent path", () -> c.patchItem("p", pk("a"), CosmosPatchOperations.create().remove("/none"), Map.class).getStatusCode(), "status 400");
        test("patch of the id", () -> c.patchItem("p", pk("a"), CosmosPatchOperations.create().set("/id", "q"), Map.class).getStatusCode(), "status 400");
    }

    static void batch(CosmosContainer c) {
        c.upsertItem(item("id", "there", "pk", "a", "n", 1));
        test("batch", () -> {
            CosmosBatch b = CosmosBatch.createCosmosBatch(pk("a"));
            b.createItemOperation(item("id", "3", "pk", "a"));
            b.readItemOperation("3");
            b.upsertItemOperation(item("id", "5", "pk", "a"));
            b.replaceItemOperation("3", item("id", "3", "pk", "a", "n", 4));
            b.patchItemOperation("there", CosmosPatchOperations.create().increment("/n", 1));
            b.deleteItemOperation("3");
            CosmosBatchResponse r = c.executeCosmosBatch(b);
            StringBuilder s = new StringBuilder(r.getStatusCode() + ":");
            r.getResults().forEach(x -> s.append(" ").append(x.getStatusCode()));
            return s + " " + r.getResults().get(4).getItem(Map.class).get("n");
        }, "200: 201 200 201 200 200 204 2");
        for (var x : Map.of("409", (java.util.function.Consumer<CosmosBatch>) b -> b.createItemOperation(item("id", "there", "pk", "a")),
                "404", b -> b.readItemOperation("none"),
                "412", b -> b.deleteItemOperation("there", new CosmosBatchItemRequestOptions().setIfMatchETag("\"stale\""))).entrySet()) {
            test("batch that fails with " + x.getKey(), () -> {
                CosmosBatch b = CosmosBatch.createCosmosBatch(pk("a"));
                b.createItemOperation(item("id", "4", "pk", "a"));
                x.getValue().accept(b);
                CosmosBatchResponse r = c.executeCosmosBatch(b);
                return r.isSuccessStatusCode() + " " + r.getResults().get(0).getStatusCode() + " " + r.getResults().get(1).getStatusCode();
            }, "false 424 " + x.getKey());
        }
        test("nothing of it stays", () -> read(c, "4", pk("a")), "status 404");
    }

    static void keys(CosmosContainer c) {
        // This client (4.75.0) replaces characters outside ASCII in keys with question marks in queries, and for None
        // it sends no key.
        List<Object> keys = Arrays.asList("", 5, 5.5, -0.25, true, false, null);
        for (int i = 0; i < keys.size(); i++) {
            Object k = keys.get(i);
            String id = "k" + i;
            test("key " + k, () -> {
                c.createItem(item("id", id, "pk", k));
                return read(c, id, new PartitionKey(k)).get("id") + " " + rows(c, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey(k))).size();
            }, id + " 1");
        }
        test("no key", () -> {
            c.createItem(item("id", "none"), PartitionKey.NONE, null);
            return read(c, "none", PartitionKey.NONE).get("id");
        }, "none");
        test("a key outside ASCII", () -> {
            c.createItem(item("id", "odd", "pk", "\u9c40 \ud83d\ude00"));
            return read(c, "odd", pk("\u9c40 \ud83d\ude00")).get("id") + " " + rows(c, "SELECT * FROM c WHERE c.pk = '\u9c40 \ud83d\ude00'", null).size();
        }, "odd 1");
        test("delete by key", () -> {
            c.deleteAllItemsByPartitionKey(new PartitionKey(true), null);
            return rows(c, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey(true))).size();
        }, 0);
    }

    static void ttlAndUnique(CosmosDatabase db) {
        db.createContainer(new CosmosContainerProperties("ttl", "/pk").setDefaultTimeToLiveInSeconds(-1).setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))))));
        CosmosContainer c = db.getContainer("ttl");
        c.createItem(item("id", "goes", "pk", "a", "ttl", 1, "email", "x"));
        c.createItem(item("id", "stays", "pk", "a", "email", "y"));
        test("unique key", () -> c.createItem(item("id", "2", "pk", "a", "email", "y")).getStatusCode(), "status 409");
        test("unique in its partition", () -> c.createItem(item("id", "2", "pk", "b", "email", "y")).getStatusCode(), 201);
        test("ttl of zero", () -> c.createItem(item("id", "0", "pk", "a", "ttl", 0)).getStatusCode(), "status 400");
        sleep(2100);
        test("expired", () -> read(c, "goes", pk("a")), "status 404");
        test("not expired", () -> rows(c, "SELECT VALUE c.id FROM c", new CosmosQueryRequestOptions().setPartitionKey(pk("a"))), "[stays]");
        test("its unique value is free again", () -> c.createItem(item("id", "3", "pk", "a", "email", "x")).getStatusCode(), 201);
    }

    static void sessions(CosmosContainer c) {
        test("levels up to the account's", () -> {
            int n = 0;
            for (ConsistencyLevel l : List.of(ConsistencyLevel.SESSION, ConsistencyLevel.CONSISTENT_PREFIX, ConsistencyLevel.EVENTUAL)) {
                n += c.readItem("there", pk("a"), new CosmosItemRequestOptions().setConsistencyLevel(l), Map.class).getStatusCode();
            }
            return n;
        }, 600);
        test("a token of one's own", () -> {
            String token = c.upsertItem(item("id", "s", "pk", "a")).getSessionToken();
            return c.readItem("s", pk("a"), new CosmosItemRequestOptions().setSessionToken(token), Map.class).getStatusCode();
        }, 200);
        test("a trigger that does not exist is refused, not left out", () -> c.createItem(item("id", "t", "pk", "a"), new CosmosItemRequestOptions().setPreTriggerInclude(List.of("x"))).getStatusCode(), "status 400");
    }
}

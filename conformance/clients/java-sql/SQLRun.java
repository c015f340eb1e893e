import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.util.*;
import java.util.concurrent.Callable;

/** azure-cosmos for Java against the NoSQL API. The client plans every query and merges the partitions itself. */
public class SQLRun {
    static int passed, failed;

    static void test(String name, Callable<Object> got, Object want) {
        Object g;
        try {
            g = got.call();
        } catch (CosmosException e) {
            g = "status " + e.getStatusCode();
        } catch (Exception e) {
            g = e;
        }
        boolean ok = String.valueOf(want).equals(String.valueOf(g));
        System.out.println((ok ? "ok   " : "FAIL ") + name + (ok ? "" : ": " + g + ", want " + want));
        if (ok) passed++;
        else failed++;
    }

    static Map<String, Object> item(Object... kv) {
        Map<String, Object> m = new LinkedHashMap<>();
        for (int i = 0; i < kv.length; i += 2) m.put((String) kv[i], kv[i + 1]);
        return m;
    }

    static List<Object> rows(CosmosContainer c, String text, CosmosQueryRequestOptions o) {
        List<Object> out = new ArrayList<>();
        for (Object r : c.queryItems(text, o == null ? new CosmosQueryRequestOptions() : o, Object.class)) out.add(r);
        return out;
    }

    static List<Object> sorted(List<Object> in) {
        in.sort(Comparator.comparing(String::valueOf));
        return in;
    }

    static Map<?, ?> read(CosmosContainer c, String id, PartitionKey pk) {
        return c.readItem(id, pk, Map.class).getItem();
    }

    static PartitionKey pk(String s) {
        return new PartitionKey(s);
    }

    static void items(CosmosContainer c) {
        test("create", () -> c.createItem(item("id", "1", "pk", "a", "n", 1)).getStatusCode(), 201);
        test("create again", () -> c.createItem(item("id", "1", "pk", "a")).getStatusCode(), "status 409");
        test("read", () -> read(c, "1", pk("a")).get("n"), 1);
        test("replace", () -> c.replaceItem(item("id", "1", "pk", "a", "n", 2), "1", pk("a"), null).getStatusCode(), 200);
        test("stale etag", () -> c.replaceItem(item("id", "1", "pk", "a"), "1", pk("a"), new CosmosItemRequestOptions().setIfMatchETag("\"stale\"")).getStatusCode(), "status 412");
        test("patch", () -> c.patchItem("1", pk("a"), CosmosPatchOperations.create().increment("/n", 5).add("/new", true), Map.class).getItem().get("n"), 7);
        test("upsert", () -> c.upsertItem(item("id", "2", "pk", "a")).getStatusCode(), 201);
        test("batch", () -> {
            CosmosBatch b = CosmosBatch.createCosmosBatch(pk("a"));
            b.createItemOperation(item("id", "3", "pk", "a"));
            b.readItemOperation("3");
            b.deleteItemOperation("3");
            return c.executeCosmosBatch(b).getStatusCode();
        }, 200);
        test("batch that fails", () -> {
            CosmosBatch b = CosmosBatch.createCosmosBatch(pk("a"));
            b.createItemOperation(item("id", "4", "pk", "a"));
            b.createItemOperation(item("id", "1", "pk", "a"));
            CosmosBatchResponse r = c.executeCosmosBatch(b);
            return r.getResults().get(0).getStatusCode() + " " + r.getResults().get(1).getStatusCode();
        }, "424 409");
        test("nothing of it stays", () -> read(c, "4", pk("a")), "status 404");
        test("delete", () -> c.deleteItem("1", pk("a"), null).getStatusCode(), 204);
        test("read after delete", () -> read(c, "1", pk("a")), "status 404");
    }

    static void queries(CosmosContainer c) {
        for (int i = 0; i < 60; i++) c.createItem(item("id", "i" + i, "pk", "p" + i % 6, "n", i));
        test("all", () -> rows(c, "SELECT * FROM c", null).size(), 60);
        test("one partition key", () -> rows(c, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(pk("p1"))).size(), 10);
        test("bound by its filter", () -> rows(c, "SELECT * FROM c WHERE c.pk = 'p2' AND c.n > 20", null).size(), 6);
        test("order", () -> rows(c, "SELECT VALUE c.n FROM c WHERE c.n < 5 ORDER BY c.n DESC", null), "[4, 3, 2, 1, 0]");
        test("top", () -> rows(c, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", null), "[59, 58, 57]");
        test("offset", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 3", null), "[2, 3, 4]");
        test("count", () -> rows(c, "SELECT VALUE COUNT(1) FROM c", null), "[60]");
        test("average", () -> rows(c, "SELECT VALUE AVG(c.n) FROM c", null), "[29.5]");
        test("distinct", () -> sorted(rows(c, "SELECT DISTINCT VALUE c.pk FROM c", null)), "[p0, p1, p2, p3, p4, p5]");
        test("group", () -> sorted(rows(c, "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", null)).get(0), "{pk=p0, n=10}");
        test("bad text", () -> rows(c, "SELEC", null), "status 400");
        test("ordered pages", () -> {
            List<Object> seen = new ArrayList<>();
            String token = null;
            do {
                var page = c.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), Object.class).iterableByPage(token, 7).iterator().next();
                seen.addAll(page.getResults());
                token = page.getContinuationToken();
            } while (token != null);
            return seen.size() + " " + new TreeSet<>((List<Integer>) (List<?>) seen).size();
        }, "60 60");
        test("read many", () -> c.readMany(List.of(new CosmosItemIdentity(pk("p1"), "i1"), new CosmosItemIdentity(pk("p2"), "i2"), new CosmosItemIdentity(pk("p2"), "none")), Map.class).getResults().size(), 2);
        test("feed ranges", () -> c.getFeedRanges().size(), 2);
        test("change feed", () -> {
            int n = 0;
            for (var p : c.queryChangeFeed(CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()), Object.class).iterableByPage()) {
                if (p.getResults().isEmpty()) break;
                n += p.getResults().size();
            }
            return n;
        }, 60);
    }

    public static void main(String[] args) {
        CosmosClient client = new CosmosClientBuilder().endpoint(System.getenv("ORRERY_NOSQL")).key(System.getenv("ORRERY_ACCOUNT_KEY"))
                .gatewayMode().consistencyLevel(ConsistencyLevel.SESSION).contentResponseOnWriteEnabled(true).buildClient();
        String name = "java-" + ProcessHandle.current().pid();
        test("create database", () -> client.createDatabase(name).getStatusCode(), 201);
        CosmosDatabase db = client.getDatabase(name);
        test("create containers", () -> {
            db.createContainer(new CosmosContainerProperties("items", "/pk"));
            return db.createContainer(new CosmosContainerProperties("queries", "/pk"), ThroughputProperties.createManualThroughput(20000)).getStatusCode();
        }, 201);
        test("throughput", () -> db.getContainer("queries").readThroughput().getProperties().getManualThroughput(), 20000);
        items(db.getContainer("items"));
        queries(db.getContainer("queries"));
        test("keys of two levels", () -> {
            PartitionKeyDefinition def = new PartitionKeyDefinition();
            def.setPaths(List.of("/a", "/b"));
            def.setKind(PartitionKind.MULTI_HASH);
            def.setVersion(PartitionKeyDefinitionVersion.V2);
            db.createContainer(new CosmosContainerProperties("levels", def));
            CosmosContainer c = db.getContainer("levels");
            for (String b : List.of("1", "2")) c.createItem(item("id", b, "a", "x", "b", b));
            PartitionKey full = new PartitionKeyBuilder().add("x").add("2").build(), prefix = new PartitionKeyBuilder().add("x").build();
            return read(c, "2", full).get("b") + " " + rows(c, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(prefix)).size();
        }, "2 2");
        test("delete database", () -> db.delete().getStatusCode(), 204);
        client.close();
        System.out.println(args[0] + ": " + passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}

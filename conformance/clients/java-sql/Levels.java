import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.util.*;

/** Keys of several levels. */
class Levels extends Check {
    static void run(CosmosDatabase db) {
        PartitionKeyDefinition def = new PartitionKeyDefinition();
        def.setPaths(List.of("/a", "/b", "/c"));
        def.setKind(PartitionKind.MULTI_HASH);
        def.setVersion(PartitionKeyDefinitionVersion.V2);
        db.createContainer(new CosmosContainerProperties("levels", def), ThroughputProperties.createManualThroughput(25100));
        CosmosContainer c = db.getContainer("levels");
        for (String a : List.of("x", "y")) for (int b = 0; b < 3; b++) for (boolean t : List.of(true, false)) c.createItem(item("id", a + b + t, "a", a, "b", b, "c", t));
        PartitionKey full = new PartitionKeyBuilder().add("x").add(2).add(true).build(), two = new PartitionKeyBuilder().add("x").add(2).build(), one = new PartitionKeyBuilder().add("y").build();
        test("levels: definition", () -> c.read().getProperties().getPartitionKeyDefinition().getPaths(), "[/a, /b, /c]");
        test("levels: read", () -> read(c, "x2true", full).get("b"), 2);
        test("levels: read by a prefix", () -> read(c, "x2true", two), "status 400/1001");
        test("levels: patch and replace", () -> c.patchItem("x2true", full, CosmosPatchOperations.create().set("/n", 1), Map.class).getStatusCode() + c.replaceItem(item("id", "x2true", "a", "x", "b", 2, "c", true), "x2true", full, null).getStatusCode(), 400);
        for (var q : Map.of(full, 1, two, 2, one, 6).entrySet()) {
            test("levels: query by " + q.getKey(), () -> rows(c, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(q.getKey())).size(), q.getValue());
            test("levels: ordered query by " + q.getKey(), () -> rows(c, "SELECT * FROM c ORDER BY c.b DESC", new CosmosQueryRequestOptions().setPartitionKey(q.getKey())).size(), q.getValue());
        }
        test("levels: bound by a filter", () -> rows(c, "SELECT * FROM c WHERE c.a = 'y' AND c.b = 1", null).size(), 2);
        test("levels: count", () -> rows(c, "SELECT VALUE COUNT(1) FROM c WHERE c.a = 'y'", null), "[6]");
        test("levels: null", () -> {
            PartitionKey k = new PartitionKeyBuilder().add("z").addNullValue().addNullValue().build();
            c.createItem(item("id", "n", "a", "z", "b", null, "c", null));
            return read(c, "n", k).get("a");
        }, "z");
        test("levels: read many", () -> c.readMany(List.of(new CosmosItemIdentity(full, "x2true"), new CosmosItemIdentity(new PartitionKeyBuilder().add("y").add(0).add(false).build(), "y0false")), Map.class).getResults().size(), 2);
        test("levels: batch", () -> {
            CosmosBatch b = CosmosBatch.createCosmosBatch(full);
            b.createItemOperation(item("id", "new", "a", "x", "b", 2, "c", true));
            b.deleteItemOperation("new");
            return c.executeCosmosBatch(b).getStatusCode();
        }, 200);
        test("levels: change feed of a prefix", () -> {
            int n = 0;
            for (var p : c.queryChangeFeed(CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forLogicalPartition(full)), Object.class).iterableByPage()) {
                if (p.getResults().isEmpty()) break;
                n += p.getResults().size();
            }
            return n;
        }, 1);
    }
}

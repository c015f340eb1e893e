import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.util.*;
import reactor.core.publisher.Flux;

/** Bulk over several physical partitions, and read-many. */
class Bulk extends Check {
    static void run(CosmosAsyncClient async, CosmosDatabase db) {
        db.createContainer(new CosmosContainerProperties("bulk", "/pk"), ThroughputProperties.createManualThroughput(25100));
        CosmosContainer c = db.getContainer("bulk");
        test("bulk creates", () -> {
            List<CosmosItemOperation> ops = new ArrayList<>();
            for (int i = 0; i < 500; i++) ops.add(CosmosBulkOperations.getCreateItemOperation(item("id", "i" + i, "pk", "p" + i % 20, "n", i), pk("p" + i % 20)));
            int made = 0;
            for (CosmosBulkOperationResponse<Object> r : c.executeBulkOperations(ops)) if (r.getResponse() != null && r.getResponse().getStatusCode() == 201 && r.getResponse().getRequestCharge() > 0) made++;
            return made;
        }, 500);
        test("bulk of every kind", () -> {
            List<CosmosItemOperation> ops = List.of(
                    CosmosBulkOperations.getReadItemOperation("i0", pk("p0"), "a"),
                    CosmosBulkOperations.getReplaceItemOperation("i1", item("id", "i1", "pk", "p1"), pk("p1"), "b"),
                    CosmosBulkOperations.getUpsertItemOperation(item("id", "i2", "pk", "p2", "n", -2), pk("p2"), "c"),
                    CosmosBulkOperations.getPatchItemOperation("i3", pk("p3"), CosmosPatchOperations.create().increment("/n", 100), "d"),
                    CosmosBulkOperations.getDeleteItemOperation("i4", pk("p4"), "e"),
                    CosmosBulkOperations.getCreateItemOperation(item("id", "i5", "pk", "p5"), pk("p5"), "f"),
                    CosmosBulkOperations.getDeleteItemOperation("none", pk("p6"), "g"),
                    CosmosBulkOperations.getReplaceItemOperation("i7", item("id", "i7", "pk", "p7"), pk("p7"), new CosmosBulkItemRequestOptions().setIfMatchETag("\"stale\""), "h"));
            Map<String, Integer> codes = new TreeMap<>();
            for (CosmosBulkOperationResponse<Object> r : c.executeBulkOperations(ops)) codes.put((String) r.getOperation().getContext(), r.getResponse().getStatusCode());
            return codes + " " + read(c, "i3", pk("p3")).get("n");
        }, "{a=200, b=200, c=200, d=200, e=204, f=409, g=404, h=412} 103");
        test("bulk of the asynchronous client", () -> {
            Flux<CosmosItemOperation> ops = Flux.range(0, 200).map(i -> CosmosBulkOperations.getUpsertItemOperation(item("id", "i" + i, "pk", "p" + i % 20, "n", i), pk("p" + i % 20)));
            return async.getDatabase(db.getId()).getContainer("bulk").executeBulkOperations(ops).filter(r -> r.getResponse().isSuccessStatusCode()).count().block();
        }, 200);
        test("read many", () -> {
            List<CosmosItemIdentity> ids = new ArrayList<>();
            for (int i = 0; i < 500; i += 2) ids.add(new CosmosItemIdentity(pk("p" + i % 20), "i" + i));
            ids.add(new CosmosItemIdentity(pk("p2"), "none"));
            FeedResponse<Map> r = c.readMany(ids, Map.class);
            return r.getResults().size() + " " + (r.getRequestCharge() > 0);
        }, "250 true");
        test("read many of one partition", () -> c.readMany(List.of(new CosmosItemIdentity(pk("p1"), "i1"), new CosmosItemIdentity(pk("p1"), "i21")), Map.class).getResults().size(), 2);
        test("read many where the id is the key", () -> {
            db.createContainer(new CosmosContainerProperties("byid", "/id"));
            CosmosContainer d = db.getContainer("byid");
            List<CosmosItemIdentity> ids = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                d.createItem(item("id", "i" + i));
                ids.add(new CosmosItemIdentity(pk("i" + i), "i" + i));
            }
            return d.readMany(ids, Map.class).getResults().size();
        }, 10);
        test("all items of a key", () -> {
            int n = 0;
            for (Map<?, ?> m : c.readAllItems(pk("p8"), Map.class)) n++;
            return n;
        }, 25);
    }
}

import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.util.*;
import reactor.core.publisher.Flux;

/** The asynchronous client: many requests at a time. */
class Async extends Check {
    static void run(CosmosAsyncDatabase db) {
        db.createContainer(new CosmosContainerProperties("async", "/pk"), ThroughputProperties.createManualThroughput(20000)).block();
        CosmosAsyncContainer c = db.getContainer("async");
        test("async: creates at a time", () -> Flux.range(0, 200).flatMap(i -> c.createItem(item("id", "i" + i, "pk", "p" + i % 7, "n", i)), 32).filter(r -> r.getStatusCode() == 201).count().block(), 200);
        test("async: reads at a time", () -> Flux.range(0, 200).flatMap(i -> c.readItem("i" + i, pk("p" + i % 7), Map.class), 32).map(r -> (Integer) r.getItem().get("n")).reduce(0, Integer::sum).block(), 19900);
        test("async: patches of one item at a time lose none", () -> {
            Flux.range(0, 50).flatMap(i -> c.patchItem("i0", pk("p0"), CosmosPatchOperations.create().increment("/n", 1), Map.class), 16).blockLast();
            return c.readItem("i0", pk("p0"), Map.class).block().getItem().get("n");
        }, 50);
        test("async: replaces guarded by an etag: one of many wins", () -> {
            String etag = c.readItem("i1", pk("p1"), Map.class).block().getETag();
            return Flux.range(0, 16).flatMap(i -> c.replaceItem(item("id", "i1", "pk", "p1", "n", i), "i1", pk("p1"), new CosmosItemRequestOptions().setIfMatchETag(etag)).map(CosmosItemResponse::getStatusCode)
                    .onErrorResume(CosmosException.class, e -> reactor.core.publisher.Mono.just(e.getStatusCode())), 16).filter(s -> s == 200).count().block();
        }, 1);
        test("async: query", () -> c.queryItems("SELECT VALUE c.n FROM c WHERE c.n >= 190 ORDER BY c.n DESC", Integer.class).collectList().block(), "[199, 198, 197, 196, 195, 194, 193, 192, 191, 190]");
        test("async: pages", () -> c.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), Map.class).byPage(30).map(p -> p.getResults().size()).reduce(0, Integer::sum).block(), 200);
        test("async: read many", () -> c.readMany(List.of(new CosmosItemIdentity(pk("p1"), "i1"), new CosmosItemIdentity(pk("p2"), "i2")), Map.class).block().getResults().size(), 2);
        test("async: batch", () -> {
            CosmosBatch b = CosmosBatch.createCosmosBatch(pk("p1"));
            b.upsertItemOperation(item("id", "x", "pk", "p1"));
            return c.executeCosmosBatch(b).block().getStatusCode();
        }, 200);
        test("async: container and database", () -> c.read().block().getProperties().getId() + " " + c.delete().block().getStatusCode(), "async 204");
    }
}

import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;

/** The change feed: pull model, and the processor with its leases. */
class Feeds extends Check {
    static String token;

    /** drain reads until a page is empty, and keeps the last continuation. */
    static List<String> drain(CosmosContainer c, CosmosChangeFeedRequestOptions o) {
        List<String> ids = new ArrayList<>();
        for (var p : c.queryChangeFeed(o.setMaxItemCount(9), JsonNode.class).iterableByPage()) {
            p.getResults().forEach(n -> ids.add(n.get("id").asText()));
            token = p.getContinuationToken();
            if (p.getResults().isEmpty()) break;
        }
        Collections.sort(ids);
        return ids;
    }

    static void run(CosmosAsyncClient async, CosmosDatabase db) {
        db.createContainer(new CosmosContainerProperties("feed", "/pk"), ThroughputProperties.createManualThroughput(25100));
        CosmosContainer c = db.getContainer("feed");
        for (int i = 0; i < 40; i++) c.createItem(item("id", "i" + i, "pk", "p" + i % 8, "n", i));
        test("feed: from the beginning", () -> new HashSet<>(drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()))).size(), 40);
        test("feed: since a continuation", () -> {
            String from = token;
            c.upsertItem(item("id", "i3", "pk", "p3", "n", -3));
            c.patchItem("i4", pk("p4"), CosmosPatchOperations.create().set("/n", -4), Map.class);
            c.deleteItem("i5", pk("p5"), null);
            c.createItem(item("id", "new", "pk", "p1"));
            return drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(from));
        }, "[i3, i4, new]");
        test("feed: nothing more", () -> drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token)), "[]");
        test("feed: of each range", () -> {
            int n = 0;
            for (FeedRange r : c.getFeedRanges()) n += drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(r)).size();
            return n;
        }, 40);
        test("feed: of one key", () -> drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forLogicalPartition(pk("p2")))), "[i10, i18, i2, i26, i34]");
        test("feed: from now", () -> drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange())), "[]");
        test("feed: since now", () -> {
            String from = token;
            c.upsertItem(item("id", "i7", "pk", "p7", "n", -7));
            return drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(from));
        }, "[i7]");
        test("feed: from a time", () -> {
            sleep(1100);
            Instant at = Instant.now();
            sleep(1100);
            c.upsertItem(item("id", "i8", "pk", "p0", "n", -8));
            return drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(at, FeedRange.forFullRange())) + " " + drain(c, CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(at.minusSeconds(3600), FeedRange.forFullRange())).size();
        }, "[i8] 40");
        processor(async.getDatabase(db.getId()), c);
    }

    static void processor(CosmosAsyncDatabase db, CosmosContainer c) {
        db.createContainer(new CosmosContainerProperties("leases", "/id")).block();
        CosmosAsyncContainer feed = db.getContainer("feed"), leases = db.getContainer("leases");
        Set<String> seen = ConcurrentHashMap.newKeySet();
        ChangeFeedProcessorOptions o = new ChangeFeedProcessorOptions().setStartFromBeginning(true).setFeedPollDelay(Duration.ofMillis(200)).setLeaseAcquireInterval(Duration.ofSeconds(1)).setMaxItemCount(10);
        ChangeFeedProcessor first = new ChangeFeedProcessorBuilder().hostName("one").feedContainer(feed).leaseContainer(leases).options(o)
                .handleChanges(list -> list.forEach(n -> seen.add(n.get("id").asText()))).buildChangeFeedProcessor();
        test("processor: every item from the beginning", () -> {
            first.start().block();
            until(() -> seen.size() == 40);
            return seen.size();
        }, 40);
        test("processor: what is written while it runs", () -> {
            c.createItem(item("id", "live", "pk", "p3"));
            until(() -> seen.contains("live"));
            return seen.contains("live") + " " + first.isStarted();
        }, "true true");
        test("processor: one lease for each range, owned", () -> leases.queryItems("SELECT VALUE COUNT(1) FROM c WHERE c.Owner = 'one'", Integer.class).collectList().block(), "[3]");
        test("processor: lag", () -> first.getEstimatedLag().block().values().stream().mapToInt(Integer::intValue).sum() >= 0, true);
        test("processor: another one goes on where it stopped", () -> {
            first.stop().block();
            sleep(1000); // a poll that has begun goes on after stop, and would take the item
            c.createItem(item("id", "later", "pk", "p6"));
            Set<String> rest = ConcurrentHashMap.newKeySet();
            ChangeFeedProcessor second = new ChangeFeedProcessorBuilder().hostName("two").feedContainer(feed).leaseContainer(leases).options(o)
                    .handleChanges(list -> list.forEach(n -> rest.add(n.get("id").asText()))).buildChangeFeedProcessor();
            second.start().block();
            until(() -> rest.contains("later"));
            second.stop().block();
            return rest;
        }, "[later]");
        test("processor: the newer form, whose leases are of ranges", () -> {
            Set<String> all = ConcurrentHashMap.newKeySet();
            ChangeFeedProcessor p = new ChangeFeedProcessorBuilder().hostName("three").feedContainer(feed).leaseContainer(leases).options(o.setLeasePrefix("new"))
                    .handleLatestVersionChanges(list -> list.forEach(n -> all.add(n.getCurrent().get("id").asText()))).buildChangeFeedProcessor();
            p.start().block();
            until(() -> all.size() == 42);
            p.stop().block();
            return all.size();
        }, 42);
    }

    /** until waits for longer than the minute after which a lease that was not given back may be taken. */
    static void until(BooleanSupplier done) {
        for (int i = 0; i < 900 && !done.getAsBoolean(); i++) sleep(100);
    }

    interface BooleanSupplier {
        boolean getAsBoolean();
    }
}

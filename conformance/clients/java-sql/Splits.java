import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;

/** Readers of change feeds go on while physical partitions are split and merged: in the pull model, and processors. */
class Splits extends Check {
    /** Tail is a reader in the pull model, which goes on from its last continuation. got has what it has read, by item. */
    static class Tail<T> {
        final Class<T> type;
        final BiConsumer<Map<String, List<String>>, T> note;
        final Map<String, List<String>> got = new TreeMap<>();
        CosmosChangeFeedRequestOptions from;

        Tail(Class<T> type, CosmosChangeFeedRequestOptions from, BiConsumer<Map<String, List<String>>, T> note) {
            this.type = type;
            this.from = from;
            this.note = note;
        }

        /** read reads up to most pages, and no further than an empty one. */
        void read(CosmosContainer c, int most) {
            String token = null;
            if (type == ChangeFeedProcessorItem.class) from.allVersionsAndDeletes();
            for (var p : c.queryChangeFeed(from.setMaxItemCount(4), type).iterableByPage()) {
                p.getResults().forEach(r -> note.accept(got, r));
                token = p.getContinuationToken();
                if (p.getResults().isEmpty() || --most == 0) break;
            }
            from = CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token);
        }
    }

    static void add(Map<String, List<String>> to, String id, String what) {
        to.computeIfAbsent(id, k -> new ArrayList<>()).add(what);
    }

    /** tails are the readers of the container, of a key, and of each range. */
    static <T> List<Tail<T>> tails(CosmosContainer c, Class<T> type, Function<FeedRange, CosmosChangeFeedRequestOptions> from, BiConsumer<Map<String, List<String>>, T> note) {
        List<FeedRange> ranges = new ArrayList<>(List.of(FeedRange.forFullRange(), FeedRange.forLogicalPartition(pk("p3"))));
        ranges.addAll(c.getFeedRanges());
        return ranges.stream().map(r -> new Tail<>(type, from.apply(r), note)).toList();
    }

    /** pull reads a page with each of the readers before partitions are split or merged, and the rest afterwards. It reports what isn't as wanted. */
    static <T> String pull(String db, CosmosContainer c, List<Tail<T>> tails, IntConsumer write, Map<String, List<String>> want) {
        for (int step = 0; step < 4; step++) {
            write.accept(2 * step);
            tails.forEach(t -> t.read(c, 1));
            if (step < 2) splitAll(db, c.getId());
            else mergePairs(db, c.getId());
            write.accept(2 * step + 1);
            tails.forEach(t -> t.read(c, Integer.MAX_VALUE));
        }
        Map<String, List<String>> ofKey = new TreeMap<>(want), ofRanges = new TreeMap<>();
        ofKey.keySet().removeIf(id -> !id.startsWith("p3-"));
        tails.subList(2, tails.size()).forEach(t -> t.got.forEach((id, all) -> all.forEach(x -> add(ofRanges, id, x))));
        return differ(tails.get(0).got, want) + differ(tails.get(1).got, ofKey) + differ(ofRanges, want) + partitions(db, c.getId(), null, null).size() + " partitions";
    }

    static String differ(Map<String, List<String>> got, Map<String, List<String>> want) {
        return got.equals(want) ? "" : got + ", want " + want + "; ";
    }

    static void run(CosmosAsyncClient async, CosmosDatabase db) {
        var throughput = ThroughputProperties.createManualThroughput(25100);
        db.createContainer(new CosmosContainerProperties("split", "/pk"), throughput);
        CosmosContainer c = db.getContainer("split");
        test("splits: the feed has each item once", () -> {
            Map<String, List<String>> want = new TreeMap<>();
            List<Tail<JsonNode>> tails = tails(c, JsonNode.class, CosmosChangeFeedRequestOptions::createForProcessingFromBeginning, (got, n) -> add(got, n.get("id").asText(), n.get("n").asText()));
            return pull(db.getId(), c, tails, step -> {
                for (int i = 0; i < 51; i++) {
                    String pk = "p" + i % 17, id = pk + "-" + step + "-" + i;
                    c.createItem(item("id", id, "pk", pk, "n", step));
                    add(want, id, "" + step);
                }
            }, want);
        }, "3 partitions");
        var props = new CosmosContainerProperties("splitversions", "/pk").setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        db.createContainer(props, throughput);
        CosmosContainer v = db.getContainer("splitversions");
        test("splits: all versions, each once, in the order of each item", () -> {
            Map<String, List<String>> want = new TreeMap<>();
            List<Tail<ChangeFeedProcessorItem>> tails = tails(v, ChangeFeedProcessorItem.class, CosmosChangeFeedRequestOptions::createForProcessingFromNow, (got, i) -> {
                JsonNode now = i.getCurrent();
                add(got, (now == null || now.get("id") == null ? i.getPrevious() : now).get("id").asText(), Versions.told(i));
            });
            tails.forEach(t -> t.read(v, Integer.MAX_VALUE));
            return pull(db.getId(), v, tails, step -> change(v, step, want), want);
        }, "3 partitions");
        for (boolean newer : new boolean[] {false, true}) processor(async.getDatabase(db.getId()), db, newer);
    }

    /** change writes each of some items, or deletes and creates it. */
    static void change(CosmosContainer c, int step, Map<String, List<String>> want) {
        for (int i = 0; i < 24; i++) {
            String pk = "p" + i % 7, id = pk + "-" + i;
            int n = 100 * step + i, was = n - 100;
            if (step == 0) add(want, id, "create ->" + n);
            else if (i % 3 != 0) add(want, id, "replace " + was + ">" + n);
            else {
                c.deleteItem(id, pk(pk), null);
                add(want, id, "delete " + was + ">-");
                add(want, id, "create ->" + n);
            }
            if (step > 0 && i % 3 == 1) c.patchItem(id, pk(pk), CosmosPatchOperations.create().set("/n", n), Map.class);
            else c.upsertItem(item("id", id, "pk", pk, "n", n));
        }
    }

    // Two workers share the ranges, which are split twice while items are written. The newer form goes on over merges too.
    static void processor(CosmosAsyncDatabase db, CosmosDatabase sync, boolean newer) {
        String of = newer ? "newwork" : "oldwork";
        sync.createContainer(new CosmosContainerProperties(of, "/pk"), ThroughputProperties.createManualThroughput(25100));
        sync.createContainer(new CosmosContainerProperties(of + "leases", "/id"));
        CosmosContainer c = sync.getContainer(of), leases = sync.getContainer(of + "leases");
        test("splits: two workers of the " + (newer ? "newer" : "older") + " processor miss nothing", () -> {
            Set<String> one = ConcurrentHashMap.newKeySet(), two = ConcurrentHashMap.newKeySet();
            ChangeFeedProcessor a = worker(db, of, "one", one, newer), b = worker(db, of, "two", two, newer);
            a.start().block();
            b.start().block();
            Feeds.until(() -> Versions.owned(leases, "one") >= 1 && Versions.owned(leases, "two") >= 1);
            int all = newer ? 400 : 300;
            for (int written = 0; written < all; written++) {
                if (written == 100 || written == 200) splitAll(db.getId(), of);
                if (written == 300) mergePairs(db.getId(), of);
                c.createItem(item("id", "w" + written, "pk", "p" + written % 40));
            }
            Feeds.until(() -> Versions.union(one, two) == all);
            a.stop().block();
            b.stop().block();
            return Versions.union(one, two) + " of " + all + ", by each: " + (!one.isEmpty() && !two.isEmpty()) + ", " + partitions(db.getId(), of, null, null).size() + " partitions";
        }, newer ? "400 of 400, by each: true, 6 partitions" : "300 of 300, by each: true, 12 partitions");
    }

    static ChangeFeedProcessor worker(CosmosAsyncDatabase db, String of, String host, Set<String> seen, boolean newer) {
        var o = new ChangeFeedProcessorOptions().setStartFromBeginning(true).setFeedPollDelay(Duration.ofMillis(100)).setMaxItemCount(10)
                .setLeaseAcquireInterval(Duration.ofSeconds(1)).setLeaseRenewInterval(Duration.ofSeconds(1)).setLeaseExpirationInterval(Duration.ofSeconds(5));
        var b = new ChangeFeedProcessorBuilder().hostName(host).feedContainer(db.getContainer(of)).leaseContainer(db.getContainer(of + "leases")).options(o);
        if (newer) b.handleLatestVersionChanges(list -> list.forEach(i -> seen.add(i.getCurrent().get("id").asText())));
        else b.handleChanges(list -> list.forEach(n -> seen.add(n.get("id").asText())));
        return b.buildChangeFeedProcessor();
    }
}

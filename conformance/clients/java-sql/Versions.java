import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.*;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;

/** All versions and deletes, in the pull model and with the processor; and a processor whose process is killed. */
class Versions extends Check {
    static String token;

    /** drain reads until a page is empty, and returns "operation previous>current" of each change. */
    static List<String> drain(CosmosContainer c, CosmosChangeFeedRequestOptions o) {
        List<String> out = new ArrayList<>();
        for (var p : c.queryChangeFeed(o.allVersionsAndDeletes().setMaxItemCount(3), ChangeFeedProcessorItem.class).iterableByPage()) {
            p.getResults().forEach(i -> out.add(told(i)));
            token = p.getContinuationToken();
            if (p.getResults().isEmpty()) break;
        }
        return out;
    }

    static String told(ChangeFeedProcessorItem i) {
        var about = i.getChangeFeedMetaData();
        return about.getOperationType().toString().toLowerCase() + " " + n(i.getPrevious()) + ">" + n(i.getCurrent()) + (about.isTimeToLiveExpired() ? " expired" : "");
    }

    static String n(JsonNode item) {
        return item == null || item.get("n") == null ? "-" : item.get("n").asText();
    }

    static CosmosChangeFeedRequestOptions now(FeedRange r) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromNow(r);
    }

    static CosmosChangeFeedRequestOptions after(String t) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(t);
    }

    static void change(CosmosContainer c) {
        c.createItem(item("id", "a", "pk", "p1", "n", 1));
        c.upsertItem(item("id", "a", "pk", "p1", "n", 2));
        c.patchItem("a", pk("p1"), CosmosPatchOperations.create().set("/n", 3), Map.class);
        c.deleteItem("a", pk("p1"), null);
        c.createItem(item("id", "b", "pk", "p2", "n", 4));
    }

    static void run(CosmosAsyncClient async, CosmosDatabase db) {
        var props = new CosmosContainerProperties("versions", "/pk").setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        db.createContainer(props, ThroughputProperties.createManualThroughput(25100));
        CosmosContainer c = db.getContainer("versions");
        String changes = "[create ->1, replace 1>2, replace 2>3, delete 3>-]";
        test("versions: the policy is kept", () -> c.read().getProperties().getChangeFeedPolicy().getRetentionDurationForAllVersionsAndDeletesPolicy(), Duration.ofMinutes(10));
        test("versions: from now", () -> drain(c, now(FeedRange.forFullRange())), "[]");
        String whole = token;
        drain(c, now(FeedRange.forLogicalPartition(pk("p1"))));
        String key = token;
        List<String> parts = new ArrayList<>();
        for (FeedRange r : c.getFeedRanges()) {
            drain(c, now(r));
            parts.add(token);
        }
        change(c);
        test("versions: of the container", () -> drain(c, after(whole)).size(), 5);
        test("versions: nothing more", () -> drain(c, after(token)), "[]");
        test("versions: of a key", () -> drain(c, after(key)), changes);
        test("versions: of each range", () -> {
            int n = 0;
            for (String p : parts) n += drain(c, after(p)).size();
            return n;
        }, 5);
        test("versions: refused without the policy", () -> drain(db.getContainer("feed"), now(FeedRange.forFullRange())), "status 400");
        processor(async.getDatabase(db.getId()), c, changes);
        killed(async.getDatabase(db.getId()), db);
    }

    static void processor(CosmosAsyncDatabase db, CosmosContainer c, String changes) {
        test("versions: the processor", () -> {
            db.createContainer(new CosmosContainerProperties("versionleases", "/id")).block();
            List<String> seen = Collections.synchronizedList(new ArrayList<>());
            ChangeFeedProcessor p = new ChangeFeedProcessorBuilder().hostName("one").feedContainer(db.getContainer("versions")).leaseContainer(db.getContainer("versionleases"))
                    .options(new ChangeFeedProcessorOptions().setFeedPollDelay(Duration.ofMillis(200)).setLeaseAcquireInterval(Duration.ofSeconds(1)).setMaxItemCount(10))
                    .handleAllVersionsAndDeletesChanges(list -> list.forEach(i -> seen.add(told(i)))).buildChangeFeedProcessor();
            p.start().block();
            // it begins at the time when it first polls a range: changes before that are not its own
            Feeds.until(() -> {
                c.upsertItem(item("id", "probe", "pk", "p1", "n", 0));
                return !seen.isEmpty();
            });
            c.deleteItem("probe", pk("p1"), null);
            change2(c);
            Feeds.until(() -> seen.contains("delete 3>-"));
            p.stop().block();
            return seen.subList(seen.indexOf("create ->1"), seen.indexOf("delete 3>-") + 1);
        }, changes);
    }

    /** change2 makes the changes of one item again. */
    static void change2(CosmosContainer c) {
        c.createItem(item("id", "a", "pk", "p1", "n", 1));
        c.upsertItem(item("id", "a", "pk", "p1", "n", 2));
        c.replaceItem(item("id", "a", "pk", "p1", "n", 3), "a", pk("p1"), null);
        c.deleteItem("a", pk("p1"), null);
    }

    // Two workers share the ranges. One of them is a process, which is killed while items are written.
    static void killed(CosmosAsyncDatabase db, CosmosDatabase sync) {
        db.createContainer(new CosmosContainerProperties("work", "/pk"), ThroughputProperties.createManualThroughput(25100)).block();
        db.createContainer(new CosmosContainerProperties("workleases", "/id")).block();
        CosmosContainer c = sync.getContainer("work"), leases = sync.getContainer("workleases");
        Set<String> seen = ConcurrentHashMap.newKeySet(), others = ConcurrentHashMap.newKeySet();
        test("processor: two workers, one is killed: nothing is missed, and the other takes over", () -> {
            Process other = start(db.getId(), others);
            Feeds.until(() -> owned(leases, "other") == 3);
            ChangeFeedProcessor p = worker(db, "here", seen);
            p.start().block();
            Feeds.until(() -> owned(leases, "here") >= 1 && owned(leases, "other") >= 1);
            int written = 0;
            while (written < 300) {
                c.createItem(item("id", "w" + written, "pk", "p" + written % 40));
                if (++written == 150) other.destroyForcibly().waitFor();
            }
            Feeds.until(() -> owned(leases, "here") == 3);
            int all = written;
            Feeds.until(() -> union(seen, others) == all);
            p.stop().block();
            return union(seen, others) + " of 300, by the killed one: " + (others.size() > 0) + ", by the other: " + (seen.size() > 0);
        }, "300 of 300, by the killed one: true, by the other: true");
    }

    static int union(Set<String> a, Set<String> b) {
        Set<String> all = new HashSet<>(a);
        all.addAll(b);
        return all.size();
    }

    static int owned(CosmosContainer leases, String host) {
        return ((Number) rows(leases, "SELECT VALUE COUNT(1) FROM c WHERE c.Owner = '" + host + "'", null).get(0)).intValue();
    }

    static ChangeFeedProcessor worker(CosmosAsyncDatabase db, String host, Set<String> seen) {
        var o = new ChangeFeedProcessorOptions().setStartFromBeginning(true).setFeedPollDelay(Duration.ofMillis(100)).setMaxItemCount(10)
                .setLeaseAcquireInterval(Duration.ofSeconds(1)).setLeaseRenewInterval(Duration.ofSeconds(1)).setLeaseExpirationInterval(Duration.ofSeconds(5));
        return new ChangeFeedProcessorBuilder().hostName(host).feedContainer(db.getContainer("work")).leaseContainer(db.getContainer("workleases")).options(o)
                .handleChanges(list -> list.forEach(n -> {
                    seen.add(n.get("id").asText());
                    if (host.equals("other")) System.out.println("seen " + n.get("id").asText());
                })).buildChangeFeedProcessor();
    }

    /** start runs the worker "other" in a process of its own, and collects the ids that it prints. */
    static Process start(String db, Set<String> seen) throws IOException {
        List<String> cmd = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElse("java")));
        cmd.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        cmd.addAll(List.of("-cp", System.getProperty("java.class.path"), "Versions", db));
        Process p = new ProcessBuilder(cmd).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        new Thread(() -> new BufferedReader(new InputStreamReader(p.getInputStream())).lines().filter(l -> l.startsWith("seen ")).forEach(l -> seen.add(l.substring(5)))).start();
        return p;
    }

    public static void main(String[] args) throws InterruptedException {
        worker(client().key(KEY).buildAsyncClient().getDatabase(args[0]), "other", ConcurrentHashMap.newKeySet()).start().block();
        Thread.sleep(Duration.ofMinutes(10).toMillis());
    }
}

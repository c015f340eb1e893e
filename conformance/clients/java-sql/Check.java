import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.util.*;
import java.util.concurrent.Callable;

/** What all parts of the run share: counted comparisons, items as maps, queries as lists. */
class Check {
    static final String ENDPOINT = System.getenv("ORRERY_NOSQL"), KEY = System.getenv("ORRERY_ACCOUNT_KEY"), ADMIN = System.getenv("ORRERY_ADMIN");
    static final HttpClient HTTP = HttpClient.newHttpClient();
    static int passed, failed;

    /** test compares texts; a refusal of the server reads "status CODE", with "/SUB" when there is one. */
    static void test(String name, Callable<Object> got, Object want) {
        Object g;
        Throwable thrown = null;
        try {
            g = got.call();
        } catch (Throwable e) {
            g = status(e);
            thrown = e;
        }
        boolean ok = String.valueOf(want).equals(String.valueOf(g));
        System.out.println((ok ? "ok   " : "FAIL ") + name + (ok ? "" : ": " + g + ", want " + want));
        if (ok) passed++;
        else failed++;
        if (!ok && thrown != null) thrown.printStackTrace(System.out);
    }

    static Object status(Throwable e) {
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof CosmosException c) return "status " + c.getStatusCode() + (c.getSubStatusCode() == 0 ? "" : "/" + c.getSubStatusCode());
        }
        return e;
    }

    static CosmosClientBuilder client() {
        return new CosmosClientBuilder().endpoint(ENDPOINT).gatewayMode().consistencyLevel(ConsistencyLevel.SESSION).contentResponseOnWriteEnabled(true).clientTelemetryEnabled(false);
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

    /** partitions asks the admin port for the ids of physical partitions. If change isn't null, it splits or merges one before. */
    static List<String> partitions(String db, String container, String partition, String change) {
        var ask = HttpRequest.newBuilder().header("Authorization", "Bearer " + KEY);
        if (change == null) ask.uri(URI.create(ADMIN + "/orrery/partitions?database=" + db + "&container=" + container));
        else {
            String body = "{\"database\":\"%s\",\"container\":\"%s\",\"partition\":\"%s\",\"do\":\"%s\"}".formatted(db, container, partition, change);
            ask.uri(URI.create(ADMIN + "/orrery/partitions")).POST(HttpRequest.BodyPublishers.ofString(body));
        }
        try {
            var reply = HTTP.send(ask.build(), HttpResponse.BodyHandlers.ofString());
            if (reply.statusCode() != 200) throw new IllegalStateException(reply.statusCode() + " " + reply.body());
            List<String> ids = new ArrayList<>();
            new ObjectMapper().readTree(reply.body()).get("partitions").forEach(p -> ids.add(p.get("id").asText()));
            return ids;
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void splitAll(String db, String container) {
        for (String p : partitions(db, container, null, null)) partitions(db, container, p, "split");
    }

    static void mergePairs(String db, String container) {
        List<String> ids = partitions(db, container, null, null);
        for (int i = 0; i + 1 < ids.size(); i += 2) partitions(db, container, ids.get(i), "merge");
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}

import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.util.*;
import java.util.stream.*;

/** Queries over three physical partitions: this client plans each, sends the plan's text to every range and merges. */
class Queries extends Check {
    static final int N = 120;

    static void run(CosmosDatabase db) {
        CosmosContainerProperties def = new CosmosContainerProperties("queries", "/pk");
        IndexingPolicy policy = new IndexingPolicy();
        policy.setCompositeIndexes(List.of(List.of(column("/g", CompositePathSortOrder.ASCENDING), column("/n", CompositePathSortOrder.DESCENDING)),
                List.of(column("/g", CompositePathSortOrder.ASCENDING), column("/h", CompositePathSortOrder.ASCENDING), column("/n", CompositePathSortOrder.ASCENDING))));
        db.createContainer(def.setIndexingPolicy(policy), ThroughputProperties.createManualThroughput(25100));
        CosmosContainer c = db.getContainer("queries");
        List<CosmosItemOperation> ops = new ArrayList<>();
        for (int i = 0; i < N; i++) {
            Map<String, Object> m = item("id", "i" + i, "pk", "p" + i % 8, "n", i, "g", i % 5, "h", i * 7 % 11, "name", "name" + i * 13 % 20, "flag", i % 3 == 0, "tags", List.of("t" + i % 4, "all"), "deep", Map.of("y", i % 6));
            if (i % 2 == 1) m.put("opt", i);
            ops.add(CosmosBulkOperations.getCreateItemOperation(m, pk("p" + i % 8)));
        }
        c.executeBulkOperations(ops).forEach(r -> {});
        rowsAndOrders(c);
        aggregates(c);
        pages(c);
        options(c);
        refusals(c);
    }

    static CompositePath column(String path, CompositePathSortOrder order) {
        return new CompositePath().setPath(path).setOrder(order);
    }

    static List<Integer> ns(Comparator<Integer> order) {
        return IntStream.range(0, N).boxed().sorted(order).collect(Collectors.toList());
    }

    static void rowsAndOrders(CosmosContainer c) {
        Comparator<Integer> g = Comparator.comparing(i -> i % 5), h = Comparator.comparing(i -> i * 7 % 11), n = Comparator.naturalOrder();
        test("all", () -> rows(c, "SELECT * FROM c", null).size(), N);
        test("one partition key", () -> rows(c, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(pk("p1"))).size(), 15);
        test("bound by its filter", () -> rows(c, "SELECT * FROM c WHERE c.pk = 'p2' AND c.n > 20", null).size(), 12);
        test("bound to two keys", () -> rows(c, "SELECT * FROM c WHERE c.pk IN ('p2', 'p3')", null).size(), 30);
        test("parameters", () -> {
            List<Object> out = new ArrayList<>();
            c.queryItems(new SqlQuerySpec("SELECT VALUE c.id FROM c WHERE c.n = @n OR ARRAY_CONTAINS(@l, c.n)", new SqlParameter("@n", 7), new SqlParameter("@l", List.of(8))), new CosmosQueryRequestOptions(), Object.class).forEach(out::add);
            return sorted(out);
        }, "[i7, i8]");
        test("join", () -> rows(c, "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n < 2 AND t != 'all'", null).size(), 2);
        test("sub-query", () -> rows(c, "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't3') AND c.n < 8", null).size(), 2);
        test("constant", () -> rows(c, "SELECT VALUE 1 + 1", null), "[2]");
        test("order", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n", null), ns(n));
        test("order, descending", () -> rows(c, "SELECT VALUE c.n FROM c WHERE c.n < 5 ORDER BY c.n DESC", null), "[4, 3, 2, 1, 0]");
        test("order by a deep path", () -> rows(c, "SELECT VALUE c.deep.y FROM c WHERE c.n < 6 ORDER BY c.deep.y DESC", null), "[5, 4, 3, 2, 1, 0]");
        test("order by two paths", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.g ASC, c.n DESC", null), ns(g.thenComparing(n.reversed())));
        test("order by two paths, reversed", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.g DESC, c.n ASC", null), ns(g.reversed().thenComparing(n)));
        test("order by three paths", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.g, c.h, c.n", null), ns(g.thenComparing(h).thenComparing(n)));
        test("top", () -> rows(c, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", null), "[119, 118, 117]");
        test("top without order", () -> rows(c, "SELECT TOP 7 * FROM c", null).size(), 7);
        test("offset", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 3", null), "[2, 3, 4]");
        test("offset beyond the end", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 118 LIMIT 30", null), "[118, 119]");
        test("distinct", () -> sorted(rows(c, "SELECT DISTINCT VALUE c.pk FROM c", null)), "[p0, p1, p2, p3, p4, p5, p6, p7]");
        test("distinct in order", () -> rows(c, "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g DESC", null), "[4, 3, 2, 1, 0]");
        test("distinct objects", () -> rows(c, "SELECT DISTINCT c.g, c.flag FROM c", null).size(), 10);
        test("distinct of a field that some lack", () -> rows(c, "SELECT DISTINCT c.opt FROM c WHERE c.n < 4", null).size(), 3);
    }

    static void aggregates(CosmosContainer c) {
        test("count", () -> rows(c, "SELECT VALUE COUNT(1) FROM c", null), "[120]");
        test("count of a field that some lack", () -> rows(c, "SELECT VALUE COUNT(c.opt) FROM c", null), "[60]");
        test("count of none", () -> rows(c, "SELECT VALUE COUNT(1) FROM c WHERE c.n > 1000", null), "[0]");
        test("sum", () -> rows(c, "SELECT VALUE SUM(c.n) FROM c", null), "[7140.0]");
        test("average", () -> rows(c, "SELECT VALUE AVG(c.n) FROM c", null), "[59.5]");
        test("least and greatest", () -> rows(c, "SELECT VALUE MIN(c.name) FROM c", null) + " " + rows(c, "SELECT VALUE MAX(c.n) FROM c", null), "[name0] [119]");
        test("several aggregates", () -> rows(c, "SELECT COUNT(1) AS n, MIN(c.n) AS low, AVG(c.n) AS mean FROM c", null), "[{n=120, low=0, mean=59.5}]");
        test("counted distinct", () -> rows(c, "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)", null), "[5]");
        test("group", () -> sorted(rows(c, "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", null)).get(0), "{pk=p0, n=15}");
        test("group by two", () -> rows(c, "SELECT c.g, c.flag, SUM(c.n) AS total, MAX(c.h) AS most FROM c GROUP BY c.g, c.flag", null).size(), 10);
        test("group by an expression", () -> sorted(rows(c, "SELECT UPPER(c.pk) AS k, AVG(c.n) AS mean FROM c WHERE c.n < 8 GROUP BY UPPER(c.pk)", null)).get(7), "{k=P7, mean=7.0}");
    }

    static void pages(CosmosContainer c) {
        for (String text : List.of("SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n", "SELECT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT VALUE c.n FROM c ORDER BY c.g, c.n DESC", "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 60",
                "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n")) { // without an order this client can't resume DISTINCT
            test("pages by continuation alone: " + text, () -> {
                List<Object> seen = new ArrayList<>();
                String token = null;
                int pages = 0;
                do {
                    var page = c.queryItems(text, new CosmosQueryRequestOptions(), Object.class).iterableByPage(token, 7).iterator().next();
                    seen.addAll(page.getResults());
                    token = page.getContinuationToken();
                    pages++;
                } while (token != null && pages < 500);
                List<Object> whole = rows(c, text, null);
                return text.contains("ORDER") ? seen.equals(whole) : sorted(seen).equals(sorted(whole)) && seen.size() == whole.size();
            }, true);
        }
        test("pages of one partition", () -> {
            int n = 0, pages = 0;
            for (var p : c.queryItems("SELECT * FROM c ORDER BY c.n", new CosmosQueryRequestOptions().setPartitionKey(pk("p3")), Object.class).iterableByPage(4)) {
                n += p.getResults().size();
                pages++;
            }
            return n + " " + (pages >= 4);
        }, "15 true");
    }

    static void options(CosmosContainer c) {
        test("feed ranges", () -> c.getFeedRanges().size(), 3);
        test("each feed range has its share", () -> {
            int n = 0;
            for (FeedRange r : c.getFeedRanges()) n += rows(c, "SELECT * FROM c WHERE c.n >= 0", new CosmosQueryRequestOptions().setFeedRange(r)).size();
            return n;
        }, N);
        test("parallel, buffered, limited tokens", () -> rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(-1).setMaxBufferedItemCount(1000).setResponseContinuationTokenLimitInKb(1).setScanInQueryEnabled(true)).size(), N);
        test("query metrics and index metrics", () -> {
            var p = c.queryItems("SELECT * FROM c WHERE c.n < 10", new CosmosQueryRequestOptions().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true), Object.class).iterableByPage().iterator().next();
            return p.getCosmosDiagnostics().toString().contains("retrievedDocumentCount") + " " + (p.getRequestCharge() > 0);
        }, "true true");
        test("a class of one's own", () -> {
            for (Row r : c.queryItems("SELECT c.id, c.n FROM c WHERE c.n = 5", new CosmosQueryRequestOptions(), Row.class)) return r.id + r.n;
            return null;
        }, "i55");
    }

    public static class Row {
        public String id;
        public int n;
    }

    static void refusals(CosmosContainer c) {
        for (String text : List.of("SELEC", "SELECT * FROM c WHERE NOSUCH(c.n)", "SELECT * FROM c GROUP BY c.g", "SELECT c.h FROM c GROUP BY c.g", "SELECT TOP -1 * FROM c", "SELECT * FROM c ORDER BY c.n + 1", "SELECT * FROM c WHERE c.n = @none")) {
            test("refused: " + text, () -> rows(c, text, null).size(), "status 400");
        }
    }
}

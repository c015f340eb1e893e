import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.time.Duration;
import java.util.*;

/** Databases, containers and their policies, throughput, users, permissions, conflicts. */
class Resources extends Check {
    static void run(CosmosClient client, CosmosAsyncClient async, CosmosDatabase db) {
        databases(client, db);
        containers(db);
        throughput(client, db);
        users(async.getDatabase(db.getId()), db);
        test("conflicts: none", () -> async.getDatabase(db.getId()).getContainer("plain").readAllConflicts(new CosmosQueryRequestOptions()).collectList().block(), "[]");
        test("conflicts: none to read", () -> async.getDatabase(db.getId()).getContainer("plain").getConflict("x").read(new CosmosConflictRequestOptions().setPartitionKey(pk("a"))).block(), "status 404");
        test("encryption keys: none", () -> db.readAllClientEncryptionKeys().stream().count(), 0);
    }

    static void databases(CosmosClient client, CosmosDatabase db) {
        test("read database", () -> db.read().getProperties().getId().equals(db.getId()), true);
        test("list databases", () -> client.readAllDatabases().stream().filter(d -> d.getId().equals(db.getId())).count(), 1);
        test("query databases", () -> client.queryDatabases(new SqlQuerySpec("SELECT * FROM root r WHERE r.id = @id", new SqlParameter("@id", db.getId())), new CosmosQueryRequestOptions()).stream().count(), 1);
        test("read absent database", () -> client.getDatabase("absent").read().getStatusCode(), "status 404");
        test("a wrong key", () -> {
            try (CosmosClient other = client().key(Base64.getEncoder().encodeToString("wrong".getBytes())).buildClient()) {
                return other.getDatabase("x").read().getStatusCode();
            }
        }, "status 401");
    }

    static void containers(CosmosDatabase db) {
        test("create container", () -> db.createContainer("plain", "/pk").getStatusCode(), 201);
        test("create it again", () -> db.createContainer("plain", "/pk").getStatusCode(), "status 409");
        test("create it if it isn't there", () -> db.createContainerIfNotExists("plain", "/pk").getStatusCode(), 200);
        CosmosContainer c = db.getContainer("plain");
        test("defaults", () -> {
            CosmosContainerProperties p = c.read().getProperties();
            return p.getPartitionKeyDefinition().getPaths() + " " + p.getPartitionKeyDefinition().getKind() + " " + p.getIndexingPolicy().getIndexingMode() + " " + p.getIndexingPolicy().getIncludedPaths().size() + " "
                    + p.getIndexingPolicy().getExcludedPaths().size() + " " + p.getDefaultTimeToLiveInSeconds() + " " + p.getConflictResolutionPolicy().getMode();
        }, "[/pk] Hash Consistent 1 1 null LastWriterWins");
        test("replace container", () -> {
            CosmosContainerProperties p = c.read().getProperties();
            p.getIndexingPolicy().setExcludedPaths(List.of(new ExcludedPath("/big/*")));
            p.setDefaultTimeToLiveInSeconds(3600);
            CosmosContainerProperties q = c.replace(p).getProperties();
            return q.getDefaultTimeToLiveInSeconds() + " " + q.getIndexingPolicy().getExcludedPaths().stream().anyMatch(x -> x.getPath().equals("/big/*"));
        }, "3600 true");
        test("replace with another key", () -> {
            PartitionKeyDefinition other = new PartitionKeyDefinition();
            other.setPaths(List.of("/other"));
            return c.replace(c.read().getProperties().setPartitionKeyDefinition(other)).getStatusCode();
        }, "status 400");
        test("list containers", () -> db.readAllContainers().stream().count(), 1);
        test("query containers", () -> db.queryContainers("SELECT * FROM c WHERE c.id = 'plain'").stream().count(), 1);
        test("quota", () -> c.read(new CosmosContainerRequestOptions().setQuotaInfoEnabled(true)).getResponseHeaders().get("x-ms-resource-usage").contains("documentsCount"), true);
        test("policies", () -> {
            CosmosContainerProperties p = new CosmosContainerProperties("policies", "/pk");
            p.setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/a", "/b")))));
            p.setComputedProperties(List.of(new ComputedProperty("low", "SELECT VALUE LOWER(c.name) FROM c")));
            p.setConflictResolutionPolicy(ConflictResolutionPolicy.createLastWriterWinsPolicy("/version"));
            CosmosVectorEmbeddingPolicy v = new CosmosVectorEmbeddingPolicy();
            v.setCosmosVectorEmbeddings(List.of(new CosmosVectorEmbedding().setPath("/v").setDataType(CosmosVectorDataType.FLOAT32).setEmbeddingDimensions(3).setDistanceFunction(CosmosVectorDistanceFunction.COSINE)));
            p.setVectorEmbeddingPolicy(v);
            p.getIndexingPolicy().setVectorIndexes(List.of(new CosmosVectorIndexSpec().setPath("/v").setType("flat")));
            db.createContainer(p);
            CosmosContainerProperties q = db.getContainer("policies").read().getProperties();
            return q.getUniqueKeyPolicy().getUniqueKeys().get(0).getPaths() + " " + q.getComputedProperties().size() + " " + q.getConflictResolutionPolicy().getConflictResolutionPath() + " "
                    + q.getVectorEmbeddingPolicy().getVectorEmbeddings().get(0).getPath() + " " + q.getIndexingPolicy().getVectorIndexes().get(0).getType();
        }, "[/a, /b] 1 /version /v flat");
        test("vector search", () -> {
            CosmosContainer v = db.getContainer("policies");
            for (int i = 0; i < 10; i++) v.createItem(item("id", "v" + i, "pk", "p" + i, "a", i, "name", "Name" + i, "v", List.of(Math.cos(i), Math.sin(i), 0.5)));
            return rows(v, "SELECT TOP 2 c.id, c.low FROM c ORDER BY VectorDistance(c.v, [1, 0, 0.5])", null);
        }, "[{id=v0, low=name0}, {id=v6, low=name6}]");
        test("refused definitions", () -> db.createContainer(new CosmosContainerProperties("bad", "no slash")).getStatusCode(), "status 400");
        test("delete container", () -> db.getContainer("policies").delete().getStatusCode(), 204);
        test("item of a deleted container", () -> read(db.getContainer("policies"), "v0", pk("p0")), "status 404/1003");
    }

    static void throughput(CosmosClient client, CosmosDatabase db) {
        db.createContainer(new CosmosContainerProperties("manual", "/pk"), ThroughputProperties.createManualThroughput(500));
        db.createContainer(new CosmosContainerProperties("auto", "/pk"), ThroughputProperties.createAutoscaledThroughput(4000));
        CosmosContainer manual = db.getContainer("manual"), auto = db.getContainer("auto");
        test("manual throughput", () -> manual.readThroughput().getProperties().getManualThroughput(), 500);
        test("replace it", () -> manual.replaceThroughput(ThroughputProperties.createManualThroughput(700)).getProperties().getManualThroughput(), 700);
        test("its least value", () -> manual.readThroughput().getMinThroughput(), 400);
        test("autoscale", () -> auto.readThroughput().getProperties().getAutoscaleMaxThroughput(), 4000);
        test("replace its maximum", () -> auto.replaceThroughput(ThroughputProperties.createAutoscaledThroughput(8000)).getProperties().getAutoscaleMaxThroughput(), 8000);
        test("refused throughput", () -> refused(() -> manual.replaceThroughput(ThroughputProperties.createManualThroughput(123))), true);
        test("a change of kind without its header", () -> refused(() -> manual.replaceThroughput(ThroughputProperties.createAutoscaledThroughput(1000))), true);
        test("throughput of a database", () -> {
            String id = db.getId() + "-shared";
            client.createDatabase(id, ThroughputProperties.createManualThroughput(600));
            CosmosDatabase s = client.getDatabase(id);
            s.createContainer("c", "/pk");
            int was = s.readThroughput().getProperties().getManualThroughput();
            int is = s.replaceThroughput(ThroughputProperties.createManualThroughput(900)).getProperties().getManualThroughput();
            s.delete();
            return was + " " + is;
        }, "600 900");
        test("no throughput of a container in it", () -> {
            String id = db.getId() + "-shared";
            client.createDatabase(id, ThroughputProperties.createManualThroughput(600));
            CosmosDatabase s = client.getDatabase(id);
            try {
                s.createContainer("c", "/pk");
                return s.getContainer("c").readThroughput().getStatusCode();
            } finally {
                s.delete();
            }
        }, "status 400");
    }

    static void users(CosmosAsyncDatabase adb, CosmosDatabase db) {
        CosmosContainer c = db.getContainer("manual");
        for (String k : List.of("a", "b")) c.createItem(item("id", "1", "pk", k));
        CosmosAsyncUser u = adb.getUser("u");
        CosmosPermissionRequestOptions o = new CosmosPermissionRequestOptions();
        test("create user", () -> db.createUser(new CosmosUserProperties().setId("u")).getStatusCode(), 201);
        test("create user again", () -> refused(() -> db.createUser(new CosmosUserProperties().setId("u"))), true);
        test("upsert, list, query users", () -> db.upsertUser(new CosmosUserProperties().setId("u")).getStatusCode() + " " + db.readAllUsers().stream().count() + " " + db.queryUsers("SELECT * FROM c WHERE c.id = 'u'").stream().count(), "200 1 1");
        test("create permission", () -> u.createPermission(new CosmosPermissionProperties().setId("p").setContainerName("manual").setPermissionMode(PermissionMode.READ), o).block().getStatusCode(), 201);
        test("a second of one container", () -> refused(() -> u.createPermission(new CosmosPermissionProperties().setId("q").setContainerName("manual").setPermissionMode(PermissionMode.READ), o).block()), true);
        test("read, list, query permissions", () -> u.getPermission("p").read(o).block().getProperties().getPermissionMode() + " " + u.readAllPermissions().collectList().block().size() + " " + u.queryPermissions("SELECT * FROM c WHERE c.id = 'p'").collectList().block().size(), "Read 1 1");
        String read = u.getPermission("p").read(o).block().getProperties().getToken();
        try (CosmosClient holder = client().resourceToken(read).buildClient()) {
            CosmosContainer h = holder.getDatabase(db.getId()).getContainer("manual");
            test("a token that reads: read", () -> read(h, "1", pk("a")).get("pk"), "a");
            test("a token that reads: query", () -> rows(h, "SELECT * FROM c ORDER BY c.pk", null).size(), 2);
            test("a token that reads: write", () -> h.upsertItem(item("id", "1", "pk", "a")).getStatusCode(), "status 403");
        }
        test("upsert permission", () -> u.upsertPermission(new CosmosPermissionProperties().setId("p").setContainerName("manual").setPermissionMode(PermissionMode.ALL).setResourcePartitionKey(pk("a")), o).block().getProperties().getPermissionMode(), "All");
        try (CosmosClient holder = client().resourceToken(u.getPermission("p").read(o).block().getProperties().getToken()).buildClient()) {
            CosmosContainer h = holder.getDatabase(db.getId()).getContainer("manual");
            test("a token of one key: write", () -> h.upsertItem(item("id", "1", "pk", "a", "n", 1), pk("a"), null).getStatusCode(), 200);
            test("a token of one key: query", () -> rows(h, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(pk("a"))).size(), 1);
            test("a token of one key: another", () -> read(h, "1", pk("b")), "status 403");
        }
        test("delete permission", () -> u.getPermission("p").delete(o).block().getStatusCode() + " " + status(() -> u.getPermission("p").read(o).block()), "204 status 404");
        test("rename and delete user", () -> db.getUser("u").replace(db.getUser("u").read().getProperties().setId("v")).getProperties().getId() + " " + db.getUser("v").delete().getStatusCode(), "v 204");
    }

    static Object status(Runnable r) {
        try {
            r.run();
            return "no error";
        } catch (Throwable e) {
            return Check.status(e);
        }
    }

    /** refused: this client (4.75.0) loses the code of an error about a throughput, a user or a permission in its own retries. */
    static boolean refused(Runnable r) {
        return !"no error".equals(status(r));
    }
}

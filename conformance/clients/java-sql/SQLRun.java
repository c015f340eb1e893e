import com.azure.cosmos.*;
import com.azure.cosmos.models.*;

/** azure-cosmos for Java against the NoSQL API. The client plans every query and merges the partitions itself. */
public class SQLRun extends Check {
    public static void main(String[] args) {
        CosmosClient client = client().key(KEY).buildClient();
        CosmosAsyncClient async = client().key(KEY).buildAsyncClient();
        String name = "java-" + ProcessHandle.current().pid();
        test("create database", () -> client.createDatabase(name).getStatusCode(), 201);
        test("create database again", () -> client.createDatabase(name).getStatusCode(), "status 409");
        test("create database if it isn't there", () -> client.createDatabaseIfNotExists(name).getStatusCode(), 200);
        CosmosDatabase db = client.getDatabase(name);
        Resources.run(client, async, db);
        Items.run(db);
        Bulk.run(async, db);
        Queries.run(db);
        Scripts.run(db);
        Levels.run(db);
        Feeds.run(async, db);
        Versions.run(async, db);
        Splits.run(async, db);
        Async.run(async.getDatabase(name));
        test("delete database", () -> db.delete().getStatusCode(), 204);
        client.close();
        async.close();
        System.out.println("javasql: " + passed + " passed, " + failed + " failed, " + (passed + failed) + " tests");
        System.exit(failed == 0 ? 0 : 1);
    }
}

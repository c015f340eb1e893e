import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.bson.Document;

// Debezium's MongoDB connector in its embedded engine: the snapshot of what is there, the changes that follow, and those
// that were made while the connector didn't run. It keeps its position in a file, as with a broker.
public class DebeziumRun {
  // Change is what a test compares: the operation, the document behind it, and what was updated.
  record Change(String op, Document after, String updated) {}

  static final BlockingQueue<Change> changes = new LinkedBlockingQueue<>();
  static int passed, failed;

  static void test(String name, Body body) {
    try {
      body.run();
      passed++;
      System.out.println("ok " + name);
    } catch (Throwable t) {
      failed++;
      System.out.println("FAILED " + name + ": " + t);
    }
  }

  interface Body {
    void run() throws Exception;
  }

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError(got + ", want " + want);
  }

  static Change next() throws InterruptedException {
    Change c = changes.poll(30, TimeUnit.SECONDS);
    if (c == null) throw new AssertionError("no change");
    return c;
  }

  // Connector is a running engine.
  static final class Connector implements AutoCloseable {
    private final DebeziumEngine<ChangeEvent<String, String>> engine;
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile Throwable error;

    Connector(String uri, String db, Path offsets) {
      Properties p = new Properties();
      p.setProperty("name", "orrery");
      p.setProperty("connector.class", "io.debezium.connector.mongodb.MongoDbConnector");
      p.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
      p.setProperty("offset.storage.file.filename", offsets.toString());
      p.setProperty("offset.flush.interval.ms", "0");
      p.setProperty("mongodb.connection.string", uri);
      p.setProperty("topic.prefix", "t");
      p.setProperty("collection.include.list", db + ".orders");
      p.setProperty("capture.mode", "change_streams_update_full");
      p.setProperty("tombstones.on.delete", "false");
      p.setProperty("converter.schemas.enable", "false");
      engine = DebeziumEngine.create(Json.class).using(p).notifying(e -> {
        Document d = Document.parse(e.value());
        String after = d.getString("after");
        Document updated = d.get("updateDescription", Document.class);
        changes.add(new Change(d.getString("op"), after == null ? null : Document.parse(after),
            updated == null ? null : updated.getString("updatedFields")));
      }).using((ok, message, cause) -> {
        if (!ok) error = cause == null ? new IllegalStateException(message) : cause;
        ended.countDown();
      }).build();
      thread = new Thread(engine);
      thread.start();
    }

    @Override public void close() throws Exception {
      engine.close();
      if (!ended.await(30, TimeUnit.SECONDS)) throw new AssertionError("the connector doesn't end");
      thread.join();
      if (error != null) throw new AssertionError(error);
    }
  }

  public static void main(String[] args) throws Exception {
    String key = URLEncoder.encode(System.getenv("ORRERY_ACCOUNT_KEY"), StandardCharsets.UTF_8);
    String uri = "mongodb://" + System.getenv("ORRERY_ACCOUNT_NAME") + ":" + key + "@" + System.getenv("ORRERY_MONGO")
        + "/?replicaSet=globaldb";
    String db = "debezium-" + ProcessHandle.current().pid();
    Path offsets = Files.createTempFile("orrery", ".offsets");
    Files.delete(offsets); // the connector makes it
    try (MongoClient client = MongoClients.create(uri)) {
      MongoCollection<Document> orders = client.getDatabase(db).getCollection("orders");
      orders.insertMany(List.of(new Document("_id", 1).append("n", 1), new Document("_id", 2).append("n", 2)));
      Connector[] c = {new Connector(uri, db, offsets)};
      test("snapshot", () -> {
        equal(next(), new Change("r", new Document("_id", 1).append("n", 1), null));
        equal(next(), new Change("r", new Document("_id", 2).append("n", 2), null));
      });
      test("insert", () -> {
        orders.insertOne(new Document("_id", 3).append("n", 3));
        equal(next(), new Change("c", new Document("_id", 3).append("n", 3), null));
      });
      test("update", () -> {
        orders.updateOne(new Document("_id", 1), new Document("$set", new Document("n", 10)));
        equal(next(), new Change("u", new Document("_id", 1).append("n", 10), "{\"n\": 10}"));
      });
      test("replace", () -> {
        orders.replaceOne(new Document("_id", 1), new Document("m", 1));
        equal(next(), new Change("u", new Document("_id", 1).append("m", 1), null));
      });
      test("delete", () -> {
        orders.deleteOne(new Document("_id", 2));
        equal(next(), new Change("d", null, null));
      });
      test("transaction", () -> {
        try (ClientSession s = client.startSession()) {
          s.withTransaction(() -> {
            orders.insertOne(s, new Document("_id", 4));
            return orders.insertOne(s, new Document("_id", 5));
          });
        }
        equal(next().after(), new Document("_id", 4));
        equal(next().after(), new Document("_id", 5));
      });
      test("stop", () -> c[0].close());
      test("changes made meanwhile, each once", () -> {
        orders.insertOne(new Document("_id", 6));
        c[0] = new Connector(uri, db, offsets);
        equal(next(), new Change("c", new Document("_id", 6), null));
        orders.insertOne(new Document("_id", 7));
        equal(next(), new Change("c", new Document("_id", 7), null));
        c[0].close();
      });
      client.getDatabase(db).drop();
    } finally {
      Files.deleteIfExists(offsets);
    }
    System.out.println("javadebezium: " + passed + " passed, " + failed + " failed, " + (passed + failed) + " tests");
    System.exit(failed == 0 ? 0 : 1);
  }
}

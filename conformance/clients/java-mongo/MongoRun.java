import com.mongodb.MongoCommandException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.gridfs.GridFSBuckets;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.bson.Document;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.SimpleMongoClientDatabaseFactory;
import org.springframework.data.mongodb.core.aggregation.Aggregation;
import org.springframework.data.mongodb.core.convert.DefaultDbRefResolver;
import org.springframework.data.mongodb.core.convert.MappingMongoConverter;
import org.springframework.data.mongodb.core.convert.MongoCustomConversions;
import org.springframework.data.mongodb.core.index.Indexed;
import org.springframework.data.mongodb.core.index.MongoPersistentEntityIndexResolver;
import org.springframework.data.mongodb.core.mapping.MongoMappingContext;
import org.springframework.data.mongodb.core.query.Criteria;
import org.springframework.data.mongodb.core.query.Query;
import org.springframework.data.mongodb.core.query.Update;
import org.springframework.data.mongodb.repository.MongoRepository;
import org.springframework.data.mongodb.repository.support.MongoRepositoryFactory;

/** The synchronous Java driver, and Spring Data: a repository, a template, a unique index. Prints counts as ../run.sh reads them. */
public class MongoRun {
  @org.springframework.data.mongodb.core.mapping.Document
  public static class Person {
    @Id public String id;
    @Indexed(unique = true) public String mail;
    public String name;
    public int age;
    public List<String> tags = new ArrayList<>();
    public Instant born;
    @Version public Long version;

    public Person() {}

    Person(String mail, String name, int age, String... tags) {
      this.mail = mail;
      this.name = name;
      this.age = age;
      this.tags.addAll(List.of(tags));
      this.born = Instant.ofEpochMilli(1_700_000_000_123L);
    }
  }

  public interface People extends MongoRepository<Person, String> {
    List<Person> findByAgeGreaterThanOrderByNameDesc(int age);

    Person findFirstByTagsContaining(String tag);

    long countByNameStartingWith(String prefix);
  }

  interface Case {
    void run() throws Exception;
  }

  static int passed, failed;

  static void test(String name, Case c) {
    try {
      c.run();
      passed++;
    } catch (Throwable e) {
      failed++;
      System.out.println("FAIL java-mongo " + name + ": " + e);
    }
  }

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
  }

  static <E extends Throwable> E thrown(Class<E> type, Case c) throws Exception {
    try {
      c.run();
    } catch (Throwable e) {
      if (type.isInstance(e)) return type.cast(e);
      throw new AssertionError(e);
    }
    throw new AssertionError("no " + type.getSimpleName());
  }

  public static void main(String[] args) {
    String key = URLEncoder.encode(System.getenv("ORRERY_ACCOUNT_KEY"), StandardCharsets.UTF_8);
    String uri = "mongodb://" + System.getenv("ORRERY_ACCOUNT_NAME") + ":" + key + "@" + System.getenv("ORRERY_MONGO");
    String name = "java-" + ProcessHandle.current().pid();
    MongoClient client = MongoClients.create(uri + "/?directConnection=true");
    for (String o : List.of("directConnection=true", "replicaSet=globaldb", "replicaSet=globaldb&directConnection=true&compressors=zlib",
        "authMechanism=SCRAM-SHA-1")) {
      test(o, () -> {
        try (MongoClient c = MongoClients.create(uri + "/?" + o)) {
          equal(c.getDatabase("admin").runCommand(new Document("ping", 1)).getDouble("ok"), 1.0);
        }
      });
    }
    test("driver: errors", () -> {
      var things = client.getDatabase(name).getCollection("things");
      things.insertOne(new Document("_id", 1));
      equal(thrown(MongoWriteException.class, () -> things.insertOne(new Document("_id", 1))).getCode(), 11000);
      equal(thrown(MongoCommandException.class, () -> client.getDatabase(name).runCommand(new Document("nope", 1))).getErrorCode(), 59);
    });
    test("driver: GridFS", () -> {
      byte[] content = new byte[700_000];
      for (int i = 0; i < content.length; i++) content[i] = (byte) (i * 31);
      var bucket = GridFSBuckets.create(client.getDatabase(name));
      var id = bucket.uploadFromStream("f", new ByteArrayInputStream(content));
      var out = new ByteArrayOutputStream();
      bucket.downloadToStream(id, out);
      equal(java.util.Arrays.equals(out.toByteArray(), content), true);
    });
    var context = new MongoMappingContext();
    MongoTemplate template = template(client, name, context);
    People people = new MongoRepositoryFactory(template).getRepository(People.class);
    test("Spring Data: repository", () -> {
      new MongoPersistentEntityIndexResolver(context).resolveIndexFor(Person.class).forEach(template.indexOps(Person.class)::createIndex);
      people.saveAll(List.of(new Person("a@x", "Ann", 31, "x", "y"), new Person("b@x", "Ben", 25, "y"), new Person("c@x", "Cy", 40)));
      equal(people.count(), 3L);
      equal(people.findByAgeGreaterThanOrderByNameDesc(30).stream().map(p -> p.name).toList(), List.of("Cy", "Ann"));
      equal(people.findFirstByTagsContaining("x").mail, "a@x");
      equal(people.countByNameStartingWith("B"), 1L);
      var page = people.findAll(PageRequest.of(1, 2, Sort.by("age")));
      equal(page.getTotalElements(), 3L);
      equal(page.getContent().get(0).name, "Cy");
      equal(page.getContent().get(0).born, Instant.ofEpochMilli(1_700_000_000_123L));
    });
    test("Spring Data: unique index", () -> {
      thrown(DuplicateKeyException.class, () -> people.insert(new Person("a@x", "Other", 1)));
      equal(template.indexOps(Person.class).getIndexInfo().stream().filter(i -> i.isUnique()).map(i -> i.getName()).toList(), List.of("mail"));
    });
    test("Spring Data: version", () -> {
      Person one = people.findFirstByTagsContaining("x"), other = people.findFirstByTagsContaining("x");
      one.age = 32;
      people.save(one);
      other.age = 33;
      thrown(OptimisticLockingFailureException.class, () -> people.save(other));
    });
    test("Spring Data: template", () -> {
      Query q = Query.query(Criteria.where("name").is("Ben"));
      equal(template.updateFirst(q, new Update().inc("age", 1).push("tags", "z"), Person.class).getModifiedCount(), 1L);
      equal(template.findOne(q, Person.class).tags, List.of("y", "z"));
      equal(template.findAndRemove(q, Person.class).age, 26);
      equal(template.exists(q, Person.class), false);
      var groups = template.aggregate(Aggregation.newAggregation(Aggregation.group().sum("age").as("total")), Person.class, Document.class);
      equal(groups.getUniqueMappedResult().getInteger("total"), 72);
      try (var all = template.stream(new Query(), Person.class)) {
        equal(all.count(), 2L);
      }
    });
    client.getDatabase(name).drop();
    client.close();
    System.out.println("javamongo: " + passed + " passed, " + failed + " failed, " + (passed + failed) + " tests");
    System.exit(failed == 0 ? 0 : 1);
  }

  static MongoTemplate template(MongoClient client, String name, MongoMappingContext context) {
    var factory = new SimpleMongoClientDatabaseFactory(client, name);
    var conversions = new MongoCustomConversions(List.of());
    context.setSimpleTypeHolder(conversions.getSimpleTypeHolder());
    context.afterPropertiesSet();
    var converter = new MappingMongoConverter(new DefaultDbRefResolver(factory), context);
    converter.setCustomConversions(conversions);
    converter.afterPropertiesSet();
    return new MongoTemplate(factory, converter);
  }
}

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV2;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;

/** Runs the Java driver (the Gremlin Console's) against a server: ORRERY_GREMLIN, ORRERY_ACCOUNT_NAME, ORRERY_ACCOUNT_KEY. */
public final class GremlinRun {
    static int passed;
    static int failed;

    static void test(String name, Callable<Object> got, Object want) {
        Object v;
        try {
            v = got.call();
        } catch (Throwable e) {
            v = "error: " + e.getMessage();
        }
        if (String.valueOf(want).equals(String.valueOf(v))) {
            passed++;
            return;
        }
        failed++;
        System.out.println("FAIL " + name + ": got " + v + ", want " + want);
    }

    static Cluster cluster(String user, MessageSerializer<?> serializer) {
        java.net.URI u = java.net.URI.create(System.getenv("ORRERY_GREMLIN"));
        return Cluster.build(u.getHost()).port(u.getPort()).path(u.getPath()).credentials(user, System.getenv("ORRERY_ACCOUNT_KEY"))
                .serializer(serializer).minConnectionPoolSize(1).maxConnectionPoolSize(2).create();
    }

    static List<String> strings(List<Result> rs) {
        List<String> out = new ArrayList<>();
        for (Result r : rs) {
            out.add(r.getString());
        }
        Collections.sort(out);
        return out;
    }

    static void scripts(String name, MessageSerializer<?> serializer) throws Exception {
        Cluster c = cluster(System.getenv("ORRERY_ACCOUNT_NAME"), serializer);
        Client client = c.connect();
        String id = "java-" + name;
        Map<String, Object> x = Map.of("x", id);
        test(name + " addV", () -> client.submit("g.addV('person').property(id, x).property('name', 'marko').property('age', 29)", x).all().get().size(), 1);
        test(name + " vertex", () -> {
            Vertex v = client.submit("g.V(x)", x).one().getVertex();
            return v.id() + " " + v.label() + " " + v.value("name");
        }, id + " person marko");
        test(name + " values", () -> client.submit("g.V(x).values('age')", x).one().getInt(), 29);
        test(name + " nothing", () -> client.submit("g.V('nobody')").all().get().size(), 0);
        test(name + " chunks", () -> client.submit("g.inject(1,2,3,4,5,6,7,8,9)").all().get().size(), 9);
        test(name + " error", () -> {
            try {
                client.submit("g.V().nonsense()").all().get();
                return "no error";
            } catch (java.util.concurrent.ExecutionException e) {
                return "an error";
            }
        }, "an error");
        test(name + " drop", () -> client.submit("g.V(x).drop()", x).all().get().size(), 0);
        client.close();
        c.close();
    }

    static void console() throws Exception {
        Cluster c = cluster(System.getenv("ORRERY_ACCOUNT_NAME"), stringd());
        Client client = c.connect();
        test("console", () -> client.submit("g.inject(1, 'a')").all().get().get(0).getString(), "1");
        Client session = c.connect("java-session");
        test("console session", () -> session.submit("g.inject(1).count()").all().get().get(0).getString(), "1");
        session.close();
        client.close();
        c.close();
    }

    static MessageSerializer<?> stringd() {
        GraphBinaryMessageSerializerV1 s = new GraphBinaryMessageSerializerV1();
        s.configure(Map.of("serializeResultToString", true), null);
        return s;
    }

    static void bytecode() throws Exception {
        Cluster c = cluster(System.getenv("ORRERY_ACCOUNT_NAME"), new GraphBinaryMessageSerializerV1());
        GraphTraversalSource g = AnonymousTraversalSource.traversal().withRemote(DriverRemoteConnection.using(c, "g"));
        g.addV("person").property(T.id, "j1").property("name", "marko").property("age", 29).property("run", "java").iterate();
        g.addV("person").property(T.id, "j2").property("name", "vadas").property("age", 27).property("run", "java").iterate();
        g.V("j1").addE("knows").to(__.V("j2")).property("weight", 0.5).iterate();
        test("bytecode count", () -> g.V().has("run", "java").count().next(), 2);
        test("bytecode out", () -> g.V("j1").out("knows").values("name").toList(), "[vadas]");
        test("bytecode in", () -> g.V("j2").in().values("name").toList(), "[marko]");
        test("bytecode P", () -> g.V().has("run", "java").has("age", P.gt(27).and(P.lt(40))).values("name").toList(), "[marko]");
        test("bytecode edge", () -> {
            Edge e = g.V("j1").outE().next();
            return e.outVertex().id() + " " + e.label() + " " + e.inVertex().id() + " " + e.value("weight");
        }, "j1 knows j2 0.5");
        test("bytecode group", () -> g.V().has("run", "java").groupCount().by(T.label).next(), "{person=2}");
        test("bytecode path", () -> g.V("j1").out().path().by("name").next().objects(), "[marko, vadas]");
        test("bytecode repeat", () -> g.V("j1").repeat(__.out()).times(1).id().toList(), "[j2]");
        test("bytecode valueMap", () -> g.V("j2").valueMap("name").next(), "{name=[vadas]}");
        test("bytecode timeout", () -> {
            try {
                g.with("evaluationTimeout", 50L).inject(1).repeat(__.identity()).until(__.not(__.identity())).iterate();
                return "no error";
            } catch (Exception e) {
                return "an error";
            }
        }, "an error");
        g.V().has("run", "java").drop().iterate();
        test("bytecode drop", () -> g.V().has("run", "java").hasNext(), false);
        g.close();
        c.close();
    }

    public static void main(String[] args) throws Exception {
        scripts("graphbinary", new GraphBinaryMessageSerializerV1());
        scripts("graphson2", new GraphSONMessageSerializerV2());
        scripts("graphson3", new GraphSONMessageSerializerV3());
        console();
        bytecode();
        System.out.println("java: " + passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}

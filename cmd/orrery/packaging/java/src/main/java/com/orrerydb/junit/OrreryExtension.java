package com.orrerydb.junit;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives test methods an account of a server, which all tests of a run share. The account is empty, and is removed after
 * the test.
 *
 * <pre>{@code
 * @ExtendWith(OrreryExtension.class)
 * class ShopTest {
 *   @Test
 *   void sells(Orrery orrery) {
 *     MongoClients.create(orrery.mongoConnectionString());
 *   }
 * }
 * }</pre>
 */
public final class OrreryExtension implements ParameterResolver {
  private static final ExtensionContext.Namespace SPACE = ExtensionContext.Namespace.create(OrreryExtension.class);
  private static final AtomicLong ACCOUNTS = new AtomicLong();

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Orrery.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    OrreryServer server = context.getRoot().getStore(SPACE)
        .getOrComputeIfAbsent("server", k -> new Shared(new OrreryServer()), Shared.class).server;
    return context.getStore(SPACE)
        .getOrComputeIfAbsent("account", k -> new Own(server, "test-" + ACCOUNTS.incrementAndGet()), Own.class).account;
  }

  /** The server of a run, which ends with it. */
  private record Shared(OrreryServer server) implements ExtensionContext.Store.CloseableResource {
    @Override
    public void close() { server.close(); }
  }

  /** The account of a test, which ends with it. */
  private static final class Own implements ExtensionContext.Store.CloseableResource {
    private final OrreryServer server;
    private final Orrery account;

    Own(OrreryServer server, String name) {
      this.server = server;
      account = new Orrery(server.control("POST", "accounts", "{\"name\":\"" + name + "\"}"), server);
    }

    @Override
    public void close() { server.control("DELETE", "accounts", "{\"name\":\"" + account.name() + "\"}"); }
  }
}

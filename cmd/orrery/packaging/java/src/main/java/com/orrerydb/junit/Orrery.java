package com.orrerydb.junit;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An account of a server: a store of its own, behind ports of its own. A test method gets one as a parameter.
 *
 * <p>The values are those of the server's connection strings.
 */
public final class Orrery {
  private final String name;
  private final String key;
  private final String nosqlEndpoint;
  private final String nosqlConnectionString;
  private final String tableConnectionString;
  private final String gremlinEndpoint;
  private final String mongoConnectionString;
  private final OrreryServer server;

  Orrery(String connect, OrreryServer server) {
    this.server = server;
    name = field(connect, "account");
    key = field(connect, "key");
    nosqlEndpoint = part(connect, "nosql", "endpoint");
    nosqlConnectionString = part(connect, "nosql", "connectionString");
    tableConnectionString = part(connect, "table", "connectionString");
    gremlinEndpoint = part(connect, "gremlin", "endpoint");
    mongoConnectionString = part(connect, "mongo", "connectionString");
  }

  /** The account's name: the user of MongoDB and Gremlin, the account of Table. */
  public String name() { return name; }

  /** The account's key, in base64. */
  public String key() { return key; }

  public String nosqlEndpoint() { return nosqlEndpoint; }

  public String nosqlConnectionString() { return nosqlConnectionString; }

  public String tableConnectionString() { return tableConnectionString; }

  public String gremlinEndpoint() { return gremlinEndpoint; }

  public String mongoConnectionString() { return mongoConnectionString; }

  /** Removes everything from the account. */
  public void reset() { server.control("POST", "reset", "{\"account\":\"" + name + "\"}"); }

  /** Keeps the content of the account under a name. */
  public void snapshot(String snapshot) {
    server.control("POST", "snapshot", "{\"account\":\"" + name + "\",\"name\":\"" + snapshot + "\"}");
  }

  /** Gives the account the content of a snapshot. */
  public void restore(String snapshot) {
    server.control("POST", "restore", "{\"account\":\"" + name + "\",\"name\":\"" + snapshot + "\"}");
  }

  /** Sends a request to the server's test controls and returns the reply. The body is JSON. */
  public String control(String method, String control, String body) { return server.control(method, control, body); }

  /** Returns a text field of a part of the connection strings, null if there is none. */
  private static String part(String json, String part, String field) {
    Matcher m = Pattern.compile("\"" + part + "\": *\\{(.*?)\\}", Pattern.DOTALL).matcher(json);
    return m.find() ? field(m.group(1), field) : null;
  }

  /** Returns a text field. The server writes no quotes in the values. */
  static String field(String json, String field) {
    Matcher m = Pattern.compile("\"" + field + "\": *\"([^\"]*)\"").matcher(json);
    return m.find() ? m.group(1) : null;
  }
}

package com.orrerydb.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.Socket;
import java.net.URI;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(OrreryExtension.class)
class OrreryExtensionTest {
  private static String first;

  @Test
  void accountsAnswer(Orrery orrery) throws Exception {
    if (first == null) {
      first = orrery.name();
    }
    URI at = URI.create(orrery.nosqlEndpoint());
    try (Socket s = new Socket(at.getHost(), at.getPort())) {
      assertTrue(s.isConnected());
    }
    assertTrue(orrery.mongoConnectionString().startsWith("mongodb://" + orrery.name() + ":"));
    assertTrue(orrery.tableConnectionString().contains("AccountName=" + orrery.name()));
    orrery.snapshot("base");
    orrery.reset();
    orrery.restore("base");
  }

  @Test
  void eachTestHasAnAccount(Orrery orrery, Orrery again) {
    assertEquals(orrery.name(), again.name());
    assertNotEquals(orrery.name(), first == null ? "" : first);
    if (first == null) {
      first = orrery.name();
    }
    assertTrue(orrery.control("GET", "", "").contains(orrery.name()));
  }
}

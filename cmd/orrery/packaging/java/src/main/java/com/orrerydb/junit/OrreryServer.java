package com.orrerydb.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The process of a server: in memory, on free ports, with test controls. */
final class OrreryServer implements AutoCloseable {
  private static final Duration START = Duration.ofSeconds(20);

  private final HttpClient http = HttpClient.newHttpClient();
  private final Process process;
  private final Path directory;
  private final String admin;
  private final String key;

  /** Starts the program of the variable ORRERY_BINARY, or else the command orrery. */
  OrreryServer() {
    try {
      directory = Files.createTempDirectory("orrery-");
      Path file = directory.resolve("connect.json");
      String program = System.getenv().getOrDefault("ORRERY_BINARY", "orrery");
      List<String> command = new ArrayList<>(List.of(program, "serve", "--memory", "--test-controls",
          "--connect-file", file.toString(), "--log-level", "warn"));
      for (String api : List.of("nosql", "table", "gremlin", "mongo", "admin")) {
        command.addAll(List.of("--" + api + "-addr", "127.0.0.1:0"));
      }
      process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .redirectError(ProcessBuilder.Redirect.INHERIT).start();
      String connect = read(file);
      key = Orrery.field(connect, "key");
      String endpoint = connect.substring(connect.indexOf("\"admin\""));
      admin = Orrery.field(endpoint, "endpoint");
      await();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private String read(Path file) throws IOException {
    long until = System.nanoTime() + START.toNanos();
    while (!Files.exists(file)) {
      if (!process.isAlive() || System.nanoTime() > until) {
        close();
        throw new IllegalStateException("orrery did not start");
      }
      pause();
    }
    return Files.readString(file);
  }

  private void await() {
    long until = System.nanoTime() + START.toNanos();
    while (send(HttpRequest.newBuilder(URI.create(admin + "ready")).build()).statusCode() != 200) {
      if (System.nanoTime() > until) {
        close();
        throw new IllegalStateException("orrery is not ready");
      }
      pause();
    }
  }

  private static void pause() {
    try {
      Thread.sleep(10);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }

  private HttpResponse<String> send(HttpRequest request) {
    try {
      return http.send(request, HttpResponse.BodyHandlers.ofString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }

  String control(String method, String control, String body) {
    String url = admin + "orrery/test" + (control.isEmpty() ? "" : "/" + control);
    HttpResponse<String> r = send(HttpRequest.newBuilder(URI.create(url))
        .header("Authorization", "Bearer " + key).method(method, HttpRequest.BodyPublishers.ofString(body)).build());
    if (r.statusCode() >= 300) {
      throw new IllegalStateException(control + ": " + r.statusCode() + " " + r.body());
    }
    return r.body();
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
      Files.deleteIfExists(directory.resolve("connect.json"));
      Files.deleteIfExists(directory);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

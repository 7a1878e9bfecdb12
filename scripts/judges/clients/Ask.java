import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/** Makes the requests listed on stdin with java.net.http, and prints the result of each (scripts/judges/cases.mjs). */
public class Ask {
  static String base;
  static HttpClient plain;
  static HttpClient following;

  public static void main(String[] args) throws Exception {
    base = args[0];
    SSLContext trusting = SSLContext.getInstance("TLS");
    trusting.init(null, new TrustManager[] {new Trusting()}, new SecureRandom());
    plain = HttpClient.newBuilder().sslContext(trusting).build();
    following = HttpClient.newBuilder().sslContext(trusting).followRedirects(HttpClient.Redirect.NORMAL).build();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] parts = line.split("\t", -1);
      String result;
      try {
        result = ask(parts[1], parts[2], parts[3], parts[4], parts[5]);
      } catch (Exception error) {
        result = "error: " + error;
      }
      System.out.println(parts[0] + "\t" + result);
    }
    System.exit(0);
  }

  static String ask(String method, String path, String upload, String flags, String headers) throws Exception {
    HttpRequest.BodyPublisher body = BodyPublishers.noBody();
    if (!upload.equals("-")) {
      byte[] bytes = new byte[Integer.parseInt(upload)];
      Arrays.fill(bytes, (byte) 'x');
      body =
          flags.contains("chunked")
              ? BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(bytes))
              : BodyPublishers.ofByteArray(bytes);
    }
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path)).method(method, body);
    request.expectContinue(flags.contains("expect"));
    for (String line : headers.split("\\|")) {
      int colon = line.indexOf(": ");
      if (colon > 0) request.header(line.substring(0, colon), line.substring(colon + 2));
    }
    HttpClient client = flags.contains("follow") ? following : plain;
    var answer = client.send(request.build(), BodyHandlers.ofByteArray());
    List<String> fields = new ArrayList<>();
    answer.headers().map().forEach((name, values) -> values.forEach(value -> fields.add(name + ": " + value)));
    fields.removeIf(field -> field.startsWith(":"));
    byte[] sum = MessageDigest.getInstance("SHA-256").digest(answer.body());
    String content = answer.body().length + "\t" + HexFormat.of().formatHex(sum);
    return answer.statusCode() + "\t" + content + "\t" + String.join("\u0001", fields);
  }

  static class Trusting implements X509TrustManager {
    public void checkClientTrusted(X509Certificate[] chain, String type) {}

    public void checkServerTrusted(X509Certificate[] chain, String type) {}

    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }
}

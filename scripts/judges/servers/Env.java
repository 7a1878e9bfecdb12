import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

/** Answers every request with its fields as the application sees them, one in a line. */
public class Env {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            StringBuilder lines = new StringBuilder();
            exchange.getRequestHeaders().forEach((name, values) -> lines.append(name + "=" + values + "\n"));
            byte[] body = lines.toString().getBytes("ISO-8859-1");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        System.out.println("listening on port " + server.getAddress().getPort());
    }
}

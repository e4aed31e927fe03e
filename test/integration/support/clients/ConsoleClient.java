/* SPDX-License-Identifier: ISC */
/* What pgjdbc does with the console: argument HOST:PORT. */
import java.sql.*;
import java.util.Properties;

class ConsoleClient {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "admin");
        properties.setProperty("prepareThreshold", "2");
        String url = "jdbc:postgresql://" + arguments[0] + "/pgbouncer";
        try (Connection connection = DriverManager.getConnection(url, properties)) {
            for (int i = 0; i < 6; i++) {
                try (PreparedStatement show =
                         connection.prepareStatement("SHOW DATABASES WHERE name = main");
                     ResultSet rows = show.executeQuery()) {
                    rows.next();
                    System.out.println(rows.getString(1) + " " + rows.getInt("port"));
                }
            }
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(3);
                ResultSet rows = statement.executeQuery("SHOW TOTALS");
                int count = 0;
                while (rows.next())
                    count += rows.getBigDecimal(2).signum() >= 0 ? 1 : 0;
                System.out.println("rows " + count);
                statement.execute("DISABLE main");
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery("SELECT x");
            } catch (SQLException error) {
                System.out.println(error.getSQLState() + " " + error.getMessage());
            }
        }
    }
}

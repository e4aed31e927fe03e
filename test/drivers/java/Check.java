// SPDX-License-Identifier: ISC

import java.sql.*;
import java.util.*;
import java.util.concurrent.*;

/** What the programs in Java share: clients that work at once, and a report in TAP. */
class Check {
    static final int CLIENTS = 6;

    interface Body {
        void run(int number) throws Exception;
    }

    interface Action {
        void run() throws Exception;
    }

    private static final List<Boolean> results = new ArrayList<>();

    /** Run the body for every client at once; all have to succeed. */
    static void check(String name, Body body) throws Exception {
        check(name, body, CLIENTS);
    }

    static void check(String name, Body body, int count) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        List<Future<?>> ends = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            ends.add(threads.submit(() -> {
                body.run(number);
                return null;
            }));
        }
        Throwable failure = null;
        for (Future<?> end : ends) {
            try {
                end.get();
            } catch (ExecutionException error) {
                failure = failure == null ? error.getCause() : failure;
            }
        }
        threads.shutdown();
        results.add(failure == null);
        String word = failure == null ? "ok " : "not ok ";
        System.out.println(word + results.size() + " - " + name);
        if (failure != null) {
            System.out.println("# " + failure.toString().replace("\n", "\n# "));
            for (StackTraceElement frame : failure.getStackTrace())
                System.out.println("#   at " + frame);
        }
    }

    static void that(boolean holds, Object words) {
        if (!holds)
            throw new AssertionError(words);
    }

    static void same(Object seen, Object wanted) {
        that(Objects.equals(seen, wanted), seen + " instead of " + wanted);
    }

    /** The action has to fail with this SQLSTATE. */
    static SQLException fails(String state, Action action) throws Exception {
        try {
            action.run();
        } catch (SQLException error) {
            same(error.getSQLState() + " " + error.getMessage(), state + " " + error.getMessage());
            return error;
        }
        throw new AssertionError("no error " + state);
    }

    static boolean isConsole() {
        return "console".equals(System.getenv("DRIVER_MODE"));
    }

    /** What tools do with a connection to the console; pgjdbc begins by SET extra_float_digits. */
    static void useConsole(Connection client) throws Exception {
        that(client.isValid(5), "is not valid");
        for (int turn = 0; turn < 8; turn++) {
            same(one(client, "SELECT 1"), 1);
            that(((String) one(client, "SELECT version()")).startsWith("PostgreSQL"), "no version");
            same(client.getSchema(), "public");
            same(client.getCatalog(), System.getenv("PGDATABASE"));
        }
        same(client.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
        client.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        client.setReadOnly(true);
        client.setAutoCommit(false);
        try (Statement statement = client.createStatement()) {
            statement.setFetchSize(7); // in portions, from a portal that lives on
            ResultSet rows = statement.executeQuery("SHOW CONFIG");
            int count = 0;
            while (rows.next())
                count++;
            that(count > 50, count);
        }
        client.commit();
        that(one(client, "SHOW POOLS") != null, "no pool");
        client.rollback();
        client.setAutoCommit(true);
        // At last: HikariCP closes a connection that reports an error of this class.
        fails("08P01", () -> one(client, "SELECT * FROM x"));
    }

    static void finish() {
        System.out.println("1.." + results.size());
        System.exit(results.isEmpty() || results.contains(false) ? 1 : 0);
    }

    // What both programs need from the database.

    static String url() {
        return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv("PGDATABASE");
    }

    static Connection connect(String... options) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        for (int i = 0; i < options.length; i += 2)
            properties.setProperty(options[i], options[i + 1]);
        return DriverManager.getConnection(url(), properties);
    }

    static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** The first column of the first row. */
    static Object one(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++)
                statement.setObject(i + 1, values[i]);
            try (ResultSet rows = statement.executeQuery()) {
                that(rows.next(), "no row");
                return rows.getObject(1);
            }
        }
    }
}

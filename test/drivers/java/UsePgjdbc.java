// SPDX-License-Identifier: ISC

import java.io.*;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;

/** pgjdbc with its defaults: statements go by name from their fifth execution on. */
class UsePgjdbc extends Check {
    static final Connection[] clients = new Connection[CLIENTS];

    static void connects(int number) throws Exception {
        Connection client = clients[number] = connect("ApplicationName", "jdbc " + number);
        same(one(client, "SHOW application_name"), "jdbc " + number);
        same(one(client, "SHOW DateStyle"), "ISO, MDY");
        same(one(client, "SHOW TimeZone"), TimeZone.getDefault().getID());
        execute(client, "CREATE TABLE item" + number + " (id int, name text)");
        execute(client, "CREATE SCHEMA own" + number);
    }

    static void settings(int number) throws Exception {
        try (Connection client = connect("currentSchema", "own" + number, "options",
                 "-c statement_timeout=" + (41 + number) + "s -c jit=off", "assumeMinServerVersion",
                 "15", "replication", "false")) {
            execute(client, "CREATE TABLE here (a int)");
            for (int turn = 0; turn < 10; turn++) {
                same(one(client, "SHOW search_path"), "own" + number);
                same(client.getSchema(), "own" + number);
                same(one(client, "SHOW statement_timeout"), (41 + number) + "s");
                same(one(client, "SHOW jit"), "off");
                same(one(client, "SELECT count(*) FROM here"), 0L);
            }
        }
    }

    static void prepared(int number) throws Exception {
        Connection client = clients[number];
        String sum = "SELECT ?::int * 1000 + ?::int";
        try (PreparedStatement kept = client.prepareStatement("SELECT " + number + " + ?::int")) {
            for (int turn = 0; turn < 15; turn++) {
                same(one(client, sum, number, turn), number * 1000 + turn);
                same(one(client, "SELECT '" + number + " ' || ?::text", turn), number + " " + turn);
                kept.setInt(1, turn);
                ResultSet rows = kept.executeQuery();
                rows.next();
                same(rows.getInt(1), number + turn);
            }
            that(kept.unwrap(PGStatement.class).isUseServerPrepare(), "was not prepared by name");
        }
    }

    /** More than the cache of a connection keeps: pgjdbc closes the statements it drops. */
    static void manyPrepared(int number) throws Exception {
        try (Connection client = connect("prepareThreshold", "1", "preparedStatementCacheQueries", "5")) {
            for (int turn = 0; turn < 60; turn++)
                same(one(client, "SELECT ?::int + " + turn % 12, number), number + turn % 12);
        }
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            try (Connection client = connect("preferQueryMode", mode)) {
                for (int turn = 0; turn < 10; turn++)
                    same(one(client, "SELECT ?::int + 1", number), number + 1);
            }
        }
    }

    static void transactions(int number) throws Exception {
        Connection client = clients[number];
        String insert = "INSERT INTO item" + number + " VALUES (?, ?)";
        client.setAutoCommit(false);
        // Set for a session, not for a transaction.
        client.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        for (int turn = 0; turn < 10; turn++) {
            insert(client, insert, turn, "kept");
            client.commit();
            same(one(client, "SHOW transaction_isolation"), "repeatable read");
            insert(client, insert, turn, "dropped");
            client.rollback();
            Savepoint savepoint = client.setSavepoint("here");
            fails("22012", () -> one(client, "SELECT 1 / ?::int", 0));
            fails("25P02", () -> one(client, "SELECT 1"));
            client.rollback(savepoint);
            same(one(client, "SELECT ?::int", number), number);
            client.commit();
        }
        client.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        client.setAutoCommit(true);
        same(one(client, "SELECT count(*) FROM item" + number), 10L);
        client.setReadOnly(true);
        client.setReadOnly(false);
    }

    static void insert(Connection client, String sql, int id, String name) throws Exception {
        try (PreparedStatement statement = client.prepareStatement(sql)) {
            statement.setInt(1, id);
            statement.setString(2, name);
            same(statement.executeUpdate(), 1);
        }
    }

    static void autosave(int number) throws Exception {
        try (Connection client = connect("autosave", "always", "cleanupSavepoints", "true")) {
            client.setAutoCommit(false);
            for (int turn = 0; turn < 8; turn++) {
                same(one(client, "SELECT ?::int", number), number);
                fails("22012", () -> one(client, "SELECT 1 / ?::int", 0));
                same(one(client, "SELECT ?::int", number), number);
                client.commit();
            }
        }
    }

    static void batches(int number) throws Exception {
        for (String rewrite : List.of("false", "true")) {
            try (Connection client = connect("reWriteBatchedInserts", rewrite)) {
                String insert = "INSERT INTO item" + number + " VALUES (?, ?)";
                for (int turn = 0; turn < 7; turn++) {
                    try (PreparedStatement statement = client.prepareStatement(insert)) {
                        for (int i = 0; i < 300; i++) {
                            statement.setInt(1, 100 + i);
                            statement.setString(2, "batch");
                            statement.addBatch();
                        }
                        same(statement.executeBatch().length, 300);
                    }
                }
                client.setAutoCommit(false);
                try (PreparedStatement statement = client.prepareStatement("SELECT 1 / ?::int")) {
                    for (int i = 0; i < 3; i++) {
                        statement.setInt(1, 1 - i);
                        statement.addBatch();
                    }
                    try {
                        statement.executeBatch();
                        that(false, "a batch with an error ended well");
                    } catch (BatchUpdateException error) {
                        client.rollback();
                    }
                }
                same(one(client, "SELECT ?::int", number), number);
                client.commit();
            }
        }
        try (PreparedStatement statement = clients[number].prepareStatement(
                 "INSERT INTO item" + number + " VALUES (?, 'key')", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < 10; i++) {
                statement.setInt(1, 9000 + i);
                statement.addBatch();
            }
            statement.executeBatch();
            ResultSet keys = statement.getGeneratedKeys();
            for (int i = 0; keys.next(); i++)
                same(keys.getInt(1), 9000 + i);
        }
    }

    static void copies(int number) throws Exception {
        var copy = clients[number].unwrap(PGConnection.class).getCopyAPI();
        StringBuilder lines = new StringBuilder();
        for (int i = 20000; i < 25000; i++)
            lines.append(i).append("\tcopied\n");
        String table = "item" + number;
        same(copy.copyIn("COPY " + table + " FROM STDIN", new StringReader(lines.toString())), 5000L);
        StringWriter out = new StringWriter();
        copy.copyOut("COPY (SELECT * FROM " + table + " WHERE id >= 20000 ORDER BY id) TO STDOUT", out);
        same(out.toString(), lines.toString());
        Reader broken = new StringReader("1\tone\nnonsense\n" + lines);
        fails("22P02", () -> copy.copyIn("COPY " + table + " FROM STDIN", broken));
        var stopped = copy.copyIn("COPY " + table + " FROM STDIN");
        stopped.cancelCopy();
        same(one(clients[number], "SELECT ?::int", number), number);
    }

    static void types(int number) throws Exception {
        byte[] data = new byte[50000];
        Arrays.fill(data, (byte) 7);
        var when = OffsetDateTime.of(2024, 2, 29, 12, 30, 15, 123456000, ZoneOffset.UTC);
        for (int turn = 0; turn < 12; turn++) {
            try (PreparedStatement statement = clients[number].prepareStatement(
                     "SELECT ?::int8, ?::numeric, ?::float8, ?::bool, ?::text, ?::bytea, ?::date,"
                     + " ?::timestamptz, ?::uuid, ?::int[], ?::text")) {
                UUID uuid = new UUID(number, number);
                Object[] values = {(long) number, new BigDecimal("12345678901234567890.0987654321"),
                    1.5e-300, true, "ünïcödé \\ '", data, LocalDate.of(2024, 2, 29), when, uuid,
                    new Integer[] {1, 2, number}, null};
                for (int i = 0; i < values.length; i++)
                    statement.setObject(i + 1, values[i]);
                ResultSet row = statement.executeQuery();
                row.next();
                same(row.getLong(1), values[0]);
                same(row.getBigDecimal(2), values[1]);
                same(row.getDouble(3), values[2]);
                same(row.getString(5), values[4]);
                that(Arrays.equals(row.getBytes(6), data), "other bytes");
                same(row.getObject(7, LocalDate.class), values[6]);
                same(row.getObject(8, OffsetDateTime.class), when);
                same(row.getObject(9), uuid);
                same(Arrays.toString((Integer[]) row.getArray(10).getArray()), "[1, 2, " + number + "]");
                same(row.getString(11), null);
            }
        }
    }

    static void cursors(int number) throws Exception {
        Connection client = clients[number];
        client.setAutoCommit(false);
        for (int turn = 0; turn < 7; turn++) {
            try (PreparedStatement statement =
                     client.prepareStatement("SELECT i + ?::int FROM generate_series(1, 100) AS i")) {
                statement.setFetchSize(7);
                statement.setInt(1, number);
                ResultSet rows = statement.executeQuery();
                for (int i = 1; i <= 100; i++) {
                    that(rows.next(), "too few rows");
                    same(rows.getInt(1), i + number);
                }
                that(!rows.next(), "too many rows");
            }
        }
        client.commit();
        client.setAutoCommit(true);
    }

    static void largeObjects(int number) throws Exception {
        Connection client = clients[number];
        client.setAutoCommit(false);
        var manager = client.unwrap(PGConnection.class).getLargeObjectAPI();
        long id = manager.createLO();
        try (var thing = manager.open(id)) {
            thing.write(new byte[100000]);
            thing.seek(0);
            same(thing.read(200000).length, 100000);
        }
        manager.delete(id);
        client.commit();
        client.setAutoCommit(true);
    }

    static void cancels(int number) throws Exception {
        Connection client = clients[number];
        client.setNetworkTimeout(Runnable::run, 30000);
        for (int turn = 0; turn < 2; turn++) {
            try (Statement statement = client.createStatement()) {
                statement.setQueryTimeout(1);
                fails("57014", () -> statement.execute("SELECT pg_sleep(60)"));
            }
            same(one(client, "SELECT ?::int", number), number);
        }
        try (Statement statement = client.createStatement()) {
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(500);
                    statement.cancel();
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            thread.start();
            fails("57014", () -> statement.execute("SELECT pg_sleep(60)"));
            thread.join();
        }
        same(one(client, "SELECT ?::int", number), number);
        same(client.getNetworkTimeout(), 30000);
        client.setNetworkTimeout(Runnable::run, 0);
        // A read that takes too long closes the connection.
        Connection other = connect();
        other.setNetworkTimeout(Runnable::run, 500);
        fails("08006", () -> execute(other, "SELECT pg_sleep(5)"));
        that(other.isClosed(), "it is still open");
        that(client.isValid(5), "not valid");
    }

    static void changedTables(int number) throws Exception {
        String table = "change" + number;
        Connection client = clients[number];
        execute(client, "CREATE TABLE " + table + " (a int); INSERT INTO " + table + " VALUES (1)");
        String query = "SELECT * FROM " + table + " WHERE a < ?";
        try (PreparedStatement statement = client.prepareStatement(query)) {
            for (int turn = 0; turn < 8; turn++)
                same(columns(statement), 1);
            try (Connection other = connect()) {
                execute(other, "ALTER TABLE " + table + " ADD COLUMN b text DEFAULT 'new'");
            }
            // Outside of a transaction pgjdbc repeats it by itself.
            for (int turn = 0; turn < 8; turn++)
                same(columns(statement), 2);
            try (Connection other = connect()) {
                execute(other, "ALTER TABLE " + table + " ADD COLUMN c text DEFAULT 'newer'");
            }
            client.setAutoCommit(false);
            try {
                same(columns(statement), 3);
            } catch (SQLException error) {
                same(error.getSQLState(), "0A000");
            }
            client.rollback();
            for (int turn = 0; turn < 8; turn++)
                same(columns(statement), 3);
            client.rollback();
            client.setAutoCommit(true);
        }
    }

    static int columns(PreparedStatement statement) throws SQLException {
        statement.setInt(1, 2);
        try (ResultSet rows = statement.executeQuery()) {
            that(rows.next(), "no row");
            return rows.getMetaData().getColumnCount();
        }
    }

    static void catalogues(int number) throws Exception {
        DatabaseMetaData about = clients[number].getMetaData();
        try (ResultSet columns = about.getColumns(null, "public", "item" + number, null)) {
            that(columns.next(), "no column");
            same(columns.getString("COLUMN_NAME"), "id");
        }
        try (CallableStatement call = clients[number].prepareCall("{? = call upper(?)}")) {
            call.registerOutParameter(1, Types.VARCHAR);
            call.setString(2, "a" + number);
            call.execute();
            same(call.getString(1), "A" + number);
        }
    }

    static void notifications(int number) throws Exception {
        try (Connection client = connect()) {
            execute(client, "LISTEN news" + number);
            execute(clients[number], "NOTIFY news" + number + ", 'hello'");
            var notices = client.unwrap(PGConnection.class).getNotifications(20000);
            same(notices[0].getParameter(), "hello");
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.err.println("# pgjdbc " + org.postgresql.Driver.getVersion());
        if (isConsole()) {
            check("the console", number -> {
                for (String mode : List.of("extended", "simple", "extendedCacheEverything")) {
                    try (Connection client = connect("preferQueryMode", mode, "targetServerType",
                             "primary", "ApplicationName", "tool")) {
                        useConsole(client);
                        same(one(client, "SELECT 1"), 1);
                    }
                }
            }, 1);
            finish();
        }
        check("connects", UsePgjdbc::connects);
        check("startup parameters stay the client's own", UsePgjdbc::settings);
        check("statements go by name after five executions", UsePgjdbc::prepared);
        check("statements are closed past the cache's size; query modes", UsePgjdbc::manyPrepared);
        check("transactions, savepoints and errors", UsePgjdbc::transactions);
        check("autosave", UsePgjdbc::autosave);
        check("batches, rewritten, with an error, with keys", UsePgjdbc::batches);
        check("COPY in and out, broken and given up", UsePgjdbc::copies);
        check("types", UsePgjdbc::types);
        check("cursors with a fetch size", UsePgjdbc::cursors);
        check("large objects", UsePgjdbc::largeObjects);
        check("query timeouts, cancels and network timeouts", UsePgjdbc::cancels);
        // Alone: a server that never had the plan reports no change to a client that remembers the columns.
        check("a changed table", UsePgjdbc::changedTables, 1);
        check("catalogues and calls", UsePgjdbc::catalogues);
        check("LISTEN", UsePgjdbc::notifications);
        check("closes", number -> clients[number].close());
        finish();
    }
}

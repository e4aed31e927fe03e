// SPDX-License-Identifier: ISC

import com.zaxxer.hikari.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;

/** HikariCP over pgjdbc with its defaults: isValid, network timeouts, and resets. */
class UseHikari extends Check {
    static final HikariDataSource[] pools = new HikariDataSource[CLIENTS];

    static HikariDataSource pool(int number) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url() + "?ApplicationName=hikari%20" + number);
        config.setUsername(System.getenv("PGUSER"));
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(4);
        config.setPoolName("pool" + number);
        if (!isConsole())
            config.setConnectionInitSql("SET app.tenant = 't" + number + "'");
        return new HikariDataSource(config);
    }

    static void connects(int number) throws Exception {
        pools[number] = pool(number);
        try (Connection connection = pools[number].getConnection()) {
            same(one(connection, "SHOW application_name"), "hikari " + number);
            same(one(connection, "SHOW app.tenant"), "t" + number);
            execute(connection, "CREATE TABLE item" + number + " (id int primary key, name text)");
        }
    }

    /** Many threads borrow the few connections of a pool. */
    static void borrows(int number) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(8);
        List<Future<Object>> sums = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            int turn = i;
            sums.add(threads.submit(() -> {
                try (Connection connection = pools[number].getConnection()) {
                    same(one(connection, "SHOW app.tenant"), "t" + number);
                    return one(connection, "SELECT ?::int * 1000 + ?::int", number, turn);
                }
            }));
        }
        for (int i = 0; i < 60; i++)
            same(sums.get(i).get(), number * 1000 + i);
        threads.shutdown();
    }

    /**
     * What a user leaves changed is put back: autocommit, isolation, read only, timeout. pgjdbc sets
     * the isolation for a session, not for a transaction.
     */
    static void resets(int number) throws Exception {
        for (int turn = 0; turn < 8; turn++) {
            try (Connection connection = pools[number].getConnection()) {
                connection.setNetworkTimeout(Runnable::run, 20000);
                connection.setAutoCommit(false);
                connection.setReadOnly(true);
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                same(one(connection, "SHOW transaction_isolation"), "serializable");
                fails("25006", () -> execute(connection, "CREATE TABLE no (a int)"));
                connection.rollback();
            }
            try (Connection connection = pools[number].getConnection()) {
                same(one(connection, "SHOW transaction_isolation"), "read committed");
                that(connection.getAutoCommit() && !connection.isReadOnly(), "was not reset");
                that(connection.isValid(5), "not valid");
                execute(connection, "INSERT INTO item" + number + " VALUES (" + turn + ", 'kept')");
            }
        }
    }

    /** A connection that is returned in a transaction is rolled back. */
    static void rollsBack(int number) throws Exception {
        for (int turn = 0; turn < 8; turn++) {
            try (Connection connection = pools[number].getConnection()) {
                connection.setAutoCommit(false);
                execute(connection, "INSERT INTO item" + number + " VALUES (100, 'dropped')");
                fails("23505", () -> execute(connection, "INSERT INTO item" + number + " VALUES (100)"));
            }
        }
        try (Connection connection = pools[number].getConnection()) {
            same(one(connection, "SELECT count(*) FROM item" + number), 8L);
        }
    }

    /** All connections are closed and opened anew, as when a password changes. */
    static void evicts(int number) throws Exception {
        pools[number].getHikariPoolMXBean().softEvictConnections();
        try (Connection connection = pools[number].getConnection()) {
            same(one(connection, "SELECT ?::int", number), number);
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (isConsole()) {
            check("the console", number -> {
                try (HikariDataSource pool = pool(number)) {
                    for (int turn = 0; turn < 3; turn++) {
                        try (Connection connection = pool.getConnection()) {
                            useConsole(connection);
                        }
                    }
                }
            }, 1);
            finish();
        }
        check("connects", UseHikari::connects);
        check("threads borrow connections", UseHikari::borrows);
        check("connections are reset", UseHikari::resets);
        check("connections are rolled back", UseHikari::rollsBack);
        check("connections are evicted", UseHikari::evicts);
        check("closes", number -> pools[number].close());
        finish();
    }
}

// SPDX-License-Identifier: ISC

import java.nio.file.*;
import java.sql.*;
import java.util.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.output.MigrateResult;

/** Flyway with its defaults, and with a lock of the session as CREATE INDEX CONCURRENTLY needs it. */
class UseFlyway extends Check {
    static final Map<String, String> MIGRATIONS = Map.of(
        "V1__author.sql", "CREATE TABLE author (id int PRIMARY KEY, name text);",
        "V2__rows.sql", "SET lock_timeout = '20s'; SET app.migration = 'V2';\n"
            + "INSERT INTO author VALUES (1, current_setting('app.migration')), (2, 'two');",
        "V3__function.sql", "CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS $$\n"
            + "SELECT $1 * 2; $$;",
        "R__view.sql", "CREATE OR REPLACE VIEW names AS SELECT name FROM author;");

    static Path folder;

    static Flyway flyway(String schema, boolean sessionLock) {
        return Flyway.configure()
            .dataSource(url(), System.getenv("PGUSER"), System.getenv("PGPASSWORD"))
            .locations("filesystem:" + folder)
            .schemas(schema)
            .initSql("SET statement_timeout = '50s'")
            .configuration(Map.of("flyway.postgresql.transactional.lock", sessionLock ? "false" : "true"))
            .cleanDisabled(false)
            .load();
    }

    static void migrates(String schema, boolean sessionLock) throws Exception {
        Flyway flyway = flyway(schema, sessionLock);
        MigrateResult result = flyway.migrate();
        that(result.success, result);
        flyway.validate();
        try (Connection client = connect("currentSchema", schema)) {
            same(one(client, "SELECT string_agg(name, ' ' ORDER BY name) FROM names"), "V2 two");
            same(one(client, "SELECT count(*) FROM flyway_schema_history WHERE success"), 5L);
        }
    }

    public static void main(String[] arguments) throws Exception {
        folder = Files.createTempDirectory("pgusher-flyway-");
        for (Map.Entry<String, String> each : MIGRATIONS.entrySet())
            Files.writeString(folder.resolve(each.getKey()), each.getValue());
        check("migrates once, though all clients do", number -> migrates("by_transaction", false), 3);
        check("migrates with a lock of the session", number -> migrates("by_session", true), 3);
        Files.writeString(folder.resolve("V4__index.sql"),
            "CREATE INDEX CONCURRENTLY by_name ON author (name);");
        check("migrates outside of a transaction", number -> {
            same(flyway("by_session", true).migrate().migrationsExecuted, 1);
        }, 1);
        check("cleans up", number -> flyway("by_session", true).clean(), 1);
        for (String each : MIGRATIONS.keySet())
            Files.delete(folder.resolve(each));
        Files.delete(folder.resolve("V4__index.sql"));
        Files.delete(folder);
        finish();
    }
}

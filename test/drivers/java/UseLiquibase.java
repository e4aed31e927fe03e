// SPDX-License-Identifier: ISC

import java.nio.file.*;
import java.sql.*;
import liquibase.Liquibase;
import liquibase.database.*;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;

/** Liquibase with its defaults: its lock is a row of a table, and it sets search_path. */
class UseLiquibase extends Check {
    static final String CHANGES = """
        --liquibase formatted sql
        --changeset one:1
        CREATE TABLE author (id int PRIMARY KEY, name text);
        --rollback DROP TABLE author;
        --changeset one:2
        SET app.change = 'two';
        INSERT INTO author VALUES (1, current_setting('app.change')), (2, 'b');
        --rollback DELETE FROM author;
        --changeset one:3 runInTransaction:false
        CREATE INDEX CONCURRENTLY by_name ON author (name);
        --rollback DROP INDEX by_name;
        """;

    static Path folder;

    interface Work {
        void run(Liquibase liquibase) throws Exception;
    }

    static void with(Work work) throws Exception {
        try (Connection client = connect()) {
            Database database =
                DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(client));
            database.setDefaultSchemaName("changes");
            try (Liquibase liquibase =
                     new Liquibase("changes.sql", new DirectoryResourceAccessor(folder), database)) {
                work.run(liquibase);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        folder = Files.createTempDirectory("pgusher-liquibase-");
        Files.writeString(folder.resolve("changes.sql"), CHANGES);
        check("migrates", number -> {
            try (Connection client = connect()) {
                execute(client, "CREATE SCHEMA changes");
            }
            with(liquibase -> liquibase.update(""));
        }, 1);
        check("is migrated", number -> with(liquibase -> {
            same(liquibase.listUnrunChangeSets(null, new liquibase.LabelExpression()).size(), 0);
            try (Connection client = connect("currentSchema", "changes")) {
                same(one(client, "SELECT string_agg(name, ' ' ORDER BY id) FROM author"), "two b");
            }
        }), 1);
        check("goes back", number -> with(liquibase -> {
            liquibase.rollback(3, "");
            liquibase.dropAll();
        }), 1);
        Files.delete(folder.resolve("changes.sql"));
        Files.delete(folder);
        finish();
    }
}

// SPDX-License-Identifier: ISC

// golang-migrate over pgx with its defaults: it holds an advisory lock of the session while it works.
package main

import (
	"database/sql"
	"embed"
	"errors"
	"os"

	. "drivers/check"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/jackc/pgx/v5/stdlib"
)

//go:embed migrations/*.sql
var migrations embed.FS

func migrator() *migrate.Migrate {
	database, err := sql.Open("pgx", "")
	Good(err)
	driver, err := pgx.WithInstance(database, &pgx.Config{})
	Good(err)
	source, err := iofs.New(migrations, "migrations")
	Good(err)
	made, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	Good(err)
	return made
}

func closed(migrator *migrate.Migrate) {
	source, database := migrator.Close()
	Good(source)
	Good(database)
}

// All clients at once: the first one with the lock migrates, the others find nothing to do.
func up(int) {
	migrator := migrator()
	if err := migrator.Up(); !errors.Is(err, migrate.ErrNoChange) {
		Good(err)
	}
	version, dirty, err := migrator.Version()
	Good(err)
	That(version == 3 && !dirty, "version %d", version)
	closed(migrator)
}

func rows(wanted int) {
	database, err := sql.Open("pgx", "")
	Good(err)
	var count int
	Good(database.QueryRow("SELECT count(*) FROM author").Scan(&count))
	That(count == wanted, "%d rows", count)
	Good(database.Close())
}

func down(int) {
	migrator := migrator()
	Good(migrator.Steps(-1))
	Good(migrator.Steps(1))
	Good(migrator.Down())
	closed(migrator)
}

func main() {
	os.Unsetenv("PGSERVICE")
	Run("migrates once, though all clients do", up)
	RunFor(1, "has migrated", func(int) { rows(2) })
	RunFor(1, "goes back", down)
	Finish()
}

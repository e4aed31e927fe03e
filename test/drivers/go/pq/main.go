// SPDX-License-Identifier: ISC

// lib/pq with its defaults, below database/sql: a query with parameters is Parse, Describe and
// Sync, and only then Bind, Execute and Sync, on the unnamed statement.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lib/pq"

	. "drivers/check"
)

var background = context.Background()
var clients [Clients]*sql.DB

func opened(parameters string) *sql.DB {
	database, err := sql.Open("postgres", parameters+" sslmode=disable")
	Good(err)
	return database
}

func one[T any](from interface {
	QueryRow(string, ...any) *sql.Row
}, query string, arguments ...any) T {
	var value T
	Good(from.QueryRow(query, arguments...).Scan(&value))
	return value
}

func asker(database *sql.DB) Asker {
	return func(into any, query string, arguments ...any) {
		Good(database.QueryRow(query, arguments...).Scan(into))
	}
}

func connect(number int) {
	clients[number] = opened(fmt.Sprintf("application_name='pq %d'", number))
	clients[number].SetMaxOpenConns(2)
	Good(clients[number].Ping())
	HasName(asker(clients[number]), fmt.Sprintf("pq %d", number))
	_, err := clients[number].Exec(fmt.Sprintf("CREATE TABLE item%d (id int, name text)", number))
	Good(err)
}

func settings(number int) {
	database := opened(fmt.Sprintf("search_path=own%d statement_timeout=%ds extra_float_digits=1 TimeZone=Etc/GMT+%d",
		number, 41+number, number))
	KeepsSettings(asker(database),
		"search_path", fmt.Sprintf("own%d", number),
		"statement_timeout", fmt.Sprintf("%ds", 41+number),
		"extra_float_digits", "1",
		"timezone", fmt.Sprintf("Etc/GMT+%d", number))
	Good(database.Close())
}

func unnamed(number int) {
	OwnAnswers(asker(clients[number]), number, 30)
}

func named(number int) {
	statement, err := clients[number].Prepare(fmt.Sprintf("SELECT $1::int + %d", number))
	Good(err)
	for turn := range 15 {
		That(one[int](queried{statement}, "", turn) == turn+number, "foreign answer")
	}
	Good(statement.Close())
	_, err = clients[number].Prepare("SELECT * FROM nowhere")
	HasCode(err, "42P01")
}

type queried struct{ statement *sql.Stmt }

func (each queried) QueryRow(_ string, arguments ...any) *sql.Row {
	return each.statement.QueryRow(arguments...)
}

func transactions(number int) {
	insert := fmt.Sprintf("INSERT INTO item%d VALUES ($1, $2)", number)
	for turn := range 10 {
		options := &sql.TxOptions{Isolation: sql.LevelSerializable}
		transaction, err := clients[number].BeginTx(background, options)
		Good(err)
		_, err = transaction.Exec(insert, turn, "kept")
		Good(err)
		Good(transaction.Commit())
		transaction, err = clients[number].Begin()
		Good(err)
		statement, err := transaction.Prepare(insert)
		Good(err)
		_, err = statement.Exec(turn, "dropped")
		Good(err)
		_, err = transaction.Exec("SELECT 1 / $1::int", 0)
		HasCode(err, "22012")
		Good(transaction.Rollback())
	}
	count := one[int](clients[number], fmt.Sprintf("SELECT count(*) FROM item%d", number))
	That(count == 10, "%d rows", count)
}

func copies(number int) {
	transaction, err := clients[number].Begin()
	Good(err)
	statement, err := transaction.Prepare(pq.CopyIn(fmt.Sprintf("item%d", number), "id", "name"))
	Good(err)
	for i := range 5000 {
		_, err = statement.Exec(i+5000, fmt.Sprintf("copied %d", i))
		Good(err)
	}
	_, err = statement.Exec()
	Good(err)
	Good(statement.Close())
	Good(transaction.Commit())
	count := one[int](clients[number], fmt.Sprintf("SELECT count(*) FROM item%d WHERE id >= 5000", number))
	That(count == 5000, "%d rows", count)
	transaction, err = clients[number].Begin()
	Good(err)
	statement, err = transaction.Prepare(pq.CopyIn(fmt.Sprintf("item%d", number), "id", "name"))
	Good(err)
	_, err = statement.Exec("nonsense", "x")
	if err == nil {
		_, err = statement.Exec()
	}
	HasCode(err, "22P02")
	Good(transaction.Rollback())
}

func types(number int) {
	for range 7 {
		var id int64
		var word string
		var data []byte
		var then time.Time
		var list []int64
		query := "SELECT $1::int8, $2::text, $3::bytea, $4::timestamptz, $5::int[]"
		Good(clients[number].QueryRow(query, number, Word, make([]byte, 50000), When,
			pq.Array([]int{1, 2, number})).Scan(&id, &word, &data, &then, pq.Array(&list)))
		That(id == int64(number) && word == Word && len(data) == 50000, "%d %s", id, word)
		That(then.Equal(When) && len(list) == 3 && list[2] == id, "%v %v", then, list)
	}
}

func cancels(number int) {
	for range 2 {
		short, stop := context.WithTimeout(background, 500*time.Millisecond)
		_, err := clients[number].ExecContext(short, "SELECT pg_sleep(60)")
		stop()
		That(err != nil, "it slept")
		sum := one[int](clients[number], "SELECT $1::int", number)
		That(sum == number, "foreign answer %d", sum)
	}
}

func changedTables(number int) {
	table := fmt.Sprintf("change%d", number)
	client, err := clients[number].Conn(background)
	Good(err)
	defer client.Close()
	_, err = client.ExecContext(background, fmt.Sprintf("CREATE TABLE %s (a int); INSERT INTO %s VALUES (1)", table, table))
	Good(err)
	statement, err := client.PrepareContext(background, "SELECT * FROM "+table+" WHERE a < $1")
	Good(err)
	count := func() error {
		rows, err := statement.Query(2)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	}
	Good(count())
	_, err = client.ExecContext(background, fmt.Sprintf("ALTER TABLE %s ADD COLUMN b text DEFAULT 'new'", table))
	Good(err)
	// lib/pq remembers the columns: the user gets the error, as with PostgreSQL itself.
	if err = count(); err != nil {
		HasCode(err, "0A000")
	}
	var columns string
	query := "SELECT t::text FROM " + table + " t WHERE a < $1"
	Good(client.QueryRowContext(background, query, 2).Scan(&columns))
	That(columns == "(1,new)", "%s", columns)
}

func notifications(number int) {
	listener := pq.NewListener("sslmode=disable", time.Second, time.Minute, nil)
	Good(listener.Listen(fmt.Sprintf("news%d", number)))
	_, err := clients[number].Exec("SELECT pg_notify($1, 'hello')", fmt.Sprintf("news%d", number))
	Good(err)
	That((<-listener.Notify).Extra == "hello", "other news")
	Good(listener.Close())
}

func console(int) {
	database := opened("")
	Good(database.Ping())
	That(one[int](database, "SELECT 1") == 1, "not 1")
	transaction, err := database.BeginTx(background, &sql.TxOptions{ReadOnly: true})
	Good(err)
	That(one[string](transaction, "SHOW VERSION") != "", "no version")
	Good(transaction.Commit())
	_, err = database.Exec("SELECT * FROM x")
	HasCode(err, "08P01")
	Good(database.Ping())
	Good(database.Close())
}

func main() {
	if IsConsole {
		RunFor(1, "the console", console)
		Finish()
	}
	Run("connects", connect)
	Run("startup parameters stay the client's own", settings)
	Run("the unnamed statement, Parse and Bind apart", unnamed)
	Run("statements with a name", named)
	Run("transactions and errors", transactions)
	Run("COPY in, and broken", copies)
	Run("types", types)
	Run("contexts that end", cancels)
	// Alone: a server that never had the plan reports no change to a client that remembers the columns.
	RunFor(1, "a changed table", changedTables)
	Run("LISTEN", notifications)
	Run("closes", func(number int) { Good(clients[number].Close()) })
	Finish()
}

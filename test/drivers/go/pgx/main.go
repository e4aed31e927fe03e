// SPDX-License-Identifier: ISC

// pgx with its defaults: every query is prepared by name and cached, batches are pipelines.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	. "drivers/check"
)

var background = context.Background()
var clients [Clients]*pgx.Conn

func connected(parameters string) *pgx.Conn {
	client, err := pgx.Connect(background, parameters)
	Good(err)
	return client
}

type querier interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}

func one[T any](from querier, query string, arguments ...any) T {
	var value T
	Good(from.QueryRow(background, query, arguments...).Scan(&value))
	return value
}

func execute(client *pgx.Conn, query string, arguments ...any) {
	_, err := client.Exec(background, query, arguments...)
	Good(err)
}

func asker(client *pgx.Conn) Asker {
	return func(into any, query string, arguments ...any) {
		Good(client.QueryRow(background, query, arguments...).Scan(into))
	}
}

func connect(number int) {
	clients[number] = connected(fmt.Sprintf("application_name='pgx %d'", number))
	HasName(asker(clients[number]), fmt.Sprintf("pgx %d", number))
	execute(clients[number], fmt.Sprintf("CREATE TABLE item%d (id int, name text)", number))
}

func settings(number int) {
	// pgx sends parameters that it does not know to the server.
	client := connected(fmt.Sprintf(
		"search_path=own%d statement_timeout=%ds timezone=Etc/GMT+%d options='-c jit=off'",
		number, 41+number, number))
	KeepsSettings(asker(client),
		"search_path", fmt.Sprintf("own%d", number),
		"statement_timeout", fmt.Sprintf("%ds", 41+number),
		"timezone", fmt.Sprintf("Etc/GMT+%d", number),
		"jit", "off")
	Good(client.Close(background))
}

func prepared(number int) {
	client := clients[number]
	OwnAnswers(asker(client), number, 15)
	_, err := client.Prepare(background, "mine", fmt.Sprintf("SELECT %d + $1::int", number))
	Good(err)
	That(one[int](client, "mine", 1) == number+1, "another's statement")
	Good(client.Deallocate(background, "mine"))
	_, err = client.Exec(background, "SELECT * FROM nowhere WHERE a = $1", 1)
	HasCode(err, "42P01")
}

func otherModes(number int) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		client := connected("default_query_exec_mode=" + mode + " statement_cache_capacity=5 description_cache_capacity=5")
		for turn := range 30 {
			query := fmt.Sprintf("SELECT $1::int + %d", turn%12)
			That(one[int](client, query, number) == number+turn%12, "mode %s", mode)
		}
		Good(client.Close(background))
	}
}

func transactions(number int) {
	client := clients[number]
	insert := fmt.Sprintf("INSERT INTO item%d VALUES ($1, $2)", number)
	for turn := range 10 {
		transaction, err := client.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.Serializable})
		Good(err)
		_, err = transaction.Exec(background, insert, turn, "kept")
		Good(err)
		savepoint, err := transaction.Begin(background)
		Good(err)
		_, err = savepoint.Exec(background, "SELECT 1 / $1::int", 0)
		HasCode(err, "22012")
		Good(savepoint.Rollback(background))
		Good(transaction.Commit(background))
		transaction, err = client.Begin(background)
		Good(err)
		_, err = transaction.Exec(background, insert, turn, "dropped")
		Good(err)
		_, err = transaction.Exec(background, fmt.Sprintf("SELECT 1 / ($1::int - %d)", turn), turn)
		HasCode(err, "22012")
		That(errors.Is(transaction.Commit(background), pgx.ErrTxCommitRollback), "committed")
	}
	count := one[int](client, fmt.Sprintf("SELECT count(*) FROM item%d WHERE name = 'kept'", number))
	That(count == 10, "%d rows", count)
}

func batches(number int) {
	client := clients[number]
	for range 6 {
		batch := &pgx.Batch{}
		for i := range 50 {
			batch.Queue(fmt.Sprintf("SELECT $1::int + %d", i%10), i+number)
		}
		results := client.SendBatch(background, batch)
		for i := range 50 {
			var sum int
			Good(results.QueryRow().Scan(&sum))
			That(sum == i+i%10+number, "sum %d", sum)
		}
		Good(results.Close())
	}
	batch := &pgx.Batch{}
	batch.Queue(fmt.Sprintf("INSERT INTO item%d VALUES (77, 'never')", number))
	batch.Queue("SELECT 1 / $1::int", 0)
	batch.Queue("SELECT 2")
	HasCode(client.SendBatch(background, batch).Close(), "22012")
	// A batch is one transaction.
	count := one[int](client, fmt.Sprintf("SELECT count(*) FROM item%d WHERE id = 77", number))
	That(count == 0, "%d rows of a batch that failed", count)
	// A pipeline below pgx, with several Syncs.
	pipeline := client.PgConn().StartPipeline(background)
	for i := range 5 {
		pipeline.SendPrepare(fmt.Sprintf("p%d", i), fmt.Sprintf("SELECT %d / $1::int", number+1), nil)
		pipeline.SendQueryPrepared(fmt.Sprintf("p%d", i), [][]byte{fmt.Append(nil, i%2)}, nil, nil)
		Good(pipeline.Sync())
	}
	failures := 0
	for {
		result, err := pipeline.GetResults()
		if err != nil {
			HasCode(err, "22012")
			failures++
		} else if reader, is := result.(*pgconn.ResultReader); is {
			read := reader.Read()
			if read.Err != nil {
				HasCode(read.Err, "22012")
				failures++
			}
		} else if result == nil {
			break
		}
	}
	That(failures == 3, "%d failures", failures)
	Good(pipeline.Close())
	for i := range 5 {
		// The Parse of a statement may succeed although its Bind fails.
		Good(client.PgConn().Deallocate(background, fmt.Sprintf("p%d", i)))
	}
}

func copies(number int) {
	client := clients[number]
	table := fmt.Sprintf("item%d", number)
	rows := pgx.CopyFromSlice(5000, func(i int) ([]any, error) {
		return []any{i + 5000, fmt.Sprintf("copied %d", i)}, nil
	})
	count, err := client.CopyFrom(background, pgx.Identifier{table}, []string{"id", "name"}, rows)
	Good(err)
	That(count == 5000, "%d rows", count)
	var out bytes.Buffer
	query := fmt.Sprintf("COPY (SELECT id FROM %s WHERE id >= 5000 ORDER BY id) TO STDOUT", table)
	_, err = client.PgConn().CopyTo(background, &out, query)
	Good(err)
	That(strings.Count(out.String(), "\n") == 5000, "%d bytes came", out.Len())
	broken := strings.NewReader("1\tone\nnonsense\n" + strings.Repeat("2\ttwo\n", 100000))
	_, err = client.PgConn().CopyFrom(background, broken, "COPY "+table+" FROM STDIN")
	HasCode(err, "22P02")
	stops := pgx.CopyFromFunc(func() ([]any, error) { return nil, errors.New("of ours") })
	_, err = client.CopyFrom(background, pgx.Identifier{table}, []string{"id", "name"}, stops)
	That(err != nil && strings.Contains(err.Error(), "of ours"), "%v", err)
	That(one[int](client, "SELECT $1::int", number) == number, "foreign answer")
}

func types(number int) {
	query := "SELECT $1::int8, $2::text, $3::bytea, $4::timestamptz, $5::int[], $6::jsonb, $7::text"
	for range 7 {
		var id int64
		var word string
		var data []byte
		var then time.Time
		var list []int
		var object map[string]int
		var nothing *string
		Good(clients[number].QueryRow(background, query, number, Word, bytes.Repeat([]byte{7}, 50000),
			When, []int{1, 2, number}, map[string]int{"number": number}, nil).
			Scan(&id, &word, &data, &then, &list, &object, &nothing))
		That(id == int64(number) && word == Word && len(data) == 50000, "%d %s", id, word)
		That(then.Equal(When) && slices.Equal(list, []int{1, 2, number}), "%v %v", then, list)
		That(object["number"] == number && nothing == nil, "%v", object)
	}
}

func cancels(number int) {
	// A context that ends closes the connection, and sends a cancel request in the background.
	client := connected("")
	short, stop := context.WithTimeout(background, 500*time.Millisecond)
	defer stop()
	_, err := client.Exec(short, "SELECT pg_sleep(60)")
	That(errors.Is(err, context.DeadlineExceeded), "%v", err)
	That(client.IsClosed(), "it is still open")
	<-client.PgConn().CleanupDone()
	// A cancel request leaves the connection open.
	client = clients[number]
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
				_ = client.PgConn().CancelRequest(background)
			}
		}
	}()
	_, err = client.Exec(background, "SELECT pg_sleep(60)")
	close(done)
	HasCode(err, "57014")
	for {
		var sum int
		err = client.QueryRow(background, "SELECT $1::int", number).Scan(&sum)
		if err == nil {
			That(sum == number, "foreign answer")
			return
		}
		// A late request may still hit this connection.
		HasCode(err, "57014")
	}
}

func changedTables(number int) {
	client := clients[number]
	table := fmt.Sprintf("change%d", number)
	execute(client, fmt.Sprintf("CREATE TABLE %s (a int)", table))
	execute(client, fmt.Sprintf("INSERT INTO %s VALUES (1)", table))
	columns := func() (int, error) {
		rows, err := client.Query(background, "SELECT * FROM "+table+" WHERE a < $1", 2)
		Good(err)
		values, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err != nil {
			return 0, err
		}
		return len(values[0]), nil
	}
	for range 3 {
		count, err := columns()
		Good(err)
		That(count == 1, "%d columns", count)
	}
	execute(client, fmt.Sprintf("ALTER TABLE %s ADD COLUMN b text DEFAULT 'new'", table))
	// pgx remembers the columns. It returns the error once, and prepares anew.
	if _, err := columns(); err != nil {
		HasCode(err, "0A000")
	}
	for range 3 {
		count, err := columns()
		Good(err)
		That(count == 2, "%d columns", count)
	}
}

func pools(number int) {
	pool, err := pgxpool.New(background, fmt.Sprintf("pool_max_conns=3 application_name='pool %d'", number))
	Good(err)
	defer pool.Close()
	errs := make(chan error, 30)
	for i := range 30 {
		go func() {
			var sum int
			err := pool.QueryRow(background, fmt.Sprintf("SELECT $1::int + %d", i%5), i).Scan(&sum)
			if err == nil && sum != i+i%5 {
				err = fmt.Errorf("sum %d", sum)
			}
			errs <- err
		}()
	}
	for range 30 {
		Good(<-errs)
	}
	Good(pool.Ping(background))
	That(one[string](pool, "SHOW application_name") == fmt.Sprintf("pool %d", number), "its name")
}

// A pool for reading only: one by a parameter of its start, one by a SET of each connection.
func readOnly(number int) {
	parsed, err := pgxpool.ParseConfig("pool_max_conns=2")
	Good(err)
	parsed.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	byStart, err := pgxpool.NewWithConfig(background, parsed)
	Good(err)
	defer byStart.Close()
	parsed, err = pgxpool.ParseConfig("pool_max_conns=2")
	Good(err)
	parsed.AfterConnect = func(ctx context.Context, client *pgx.Conn) error {
		_, err := client.Exec(ctx, "SET default_transaction_read_only = on")
		return err
	}
	bySet, err := pgxpool.NewWithConfig(background, parsed)
	Good(err)
	defer bySet.Close()
	insert := fmt.Sprintf("INSERT INTO item%d VALUES ($1, 'read only')", number)
	for turn := range 10 {
		for _, pool := range []*pgxpool.Pool{byStart, bySet} {
			_, err := pool.Exec(background, insert, turn)
			HasCode(err, "25006")
		}
		execute(clients[number], insert, turn)
	}
	count := one[int](bySet, fmt.Sprintf("SELECT count(*) FROM item%d WHERE name = 'read only'", number))
	That(count == 10, "%d rows", count)
}

func notifications(number int) {
	client := connected("")
	execute(client, fmt.Sprintf("LISTEN news%d", number))
	execute(clients[number], "SELECT pg_notify($1, 'hello')", fmt.Sprintf("news%d", number))
	notice, err := client.WaitForNotification(background)
	Good(err)
	That(notice.Payload == "hello", "%s", notice.Payload)
	Good(client.Close(background))
}

func console(int) {
	for _, options := range []string{"target_session_attrs=read-write", "target_session_attrs=primary"} {
		client := connected(options)
		Good(client.Ping(background))
		That(one[int](client, "SELECT 1") == 1, "not 1")
		That(one[string](client, "SELECT current_database()") == "pgbouncer", "another database")
		That(!one[bool](client, "SELECT pg_is_in_recovery()"), "in recovery")
		transaction, err := client.BeginTx(background, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		Good(err)
		rows, err := transaction.Query(background, "SHOW POOLS")
		Good(err)
		for rows.Next() {
		}
		Good(rows.Err())
		Good(transaction.Commit(background))
		_, err = client.Exec(background, "SELECT * FROM x")
		HasCode(err, "08P01")
		_, err = client.Exec(background, "SHOW STATE", pgx.QueryExecModeSimpleProtocol)
		Good(err)
		Good(client.DeallocateAll(background))
		Good(client.Close(background))
	}
	pool, err := pgxpool.New(background, "")
	Good(err)
	That(one[string](pool, "SHOW VERSION") != "", "no version")
	pool.Close()
}

func main() {
	os.Unsetenv("PGSERVICE")
	if IsConsole {
		RunFor(1, "the console", console)
		Finish()
	}
	Run("connects", connect)
	Run("startup parameters stay the client's own", settings)
	Run("statements are prepared and cached", prepared)
	Run("other ways to query, and caches that overflow", otherModes)
	Run("transactions, savepoints and errors", transactions)
	Run("batches and pipelines, with errors", batches)
	Run("COPY in and out, broken and given up", copies)
	Run("types in binary", types)
	Run("contexts that end, and cancels", cancels)
	// Alone: a server that never had the plan reports no change to a client that remembers the columns.
	RunFor(1, "a changed table", changedTables)
	Run("pools", pools)
	Run("pools for reading only", readOnly)
	Run("LISTEN", notifications)
	Run("closes", func(number int) { Good(clients[number].Close(background)) })
	Finish()
}

// SPDX-License-Identifier: ISC

// River over pgx with its defaults: LISTEN leads its workers to jobs, a leader is elected.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	. "drivers/check"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	runners = 2
	each    = 40
)

var (
	background = context.Background()
	pool       *pgxpool.Pool
)

// Sum is a job that stores its result, and fails at its first attempt if asked to.
type Sum struct {
	Number int  `json:"number"`
	Fails  bool `json:"fails"`
}

func (Sum) Kind() string { return "sum" }

type sumWorker struct{ river.WorkerDefaults[Sum] }

func (sumWorker) Work(ctx context.Context, job *river.Job[Sum]) error {
	if job.Args.Fails && job.Attempt == 1 {
		return errors.New("the first attempt fails")
	}
	_, err := pool.Exec(ctx, "INSERT INTO sums VALUES ($1, $2)", job.Args.Number, job.Args.Number*2)
	return err
}

// NextRetry lets a job that failed run again at once.
func (sumWorker) NextRetry(*river.Job[Sum]) time.Time { return time.Now() }

func migrates(int) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	Good(err)
	_, err = migrator.Migrate(background, rivermigrate.DirectionUp, nil)
	Good(err)
	result, err := migrator.Validate(background)
	Good(err)
	That(result.OK, "%v", result.Messages)
	_, err = pool.Exec(background, "CREATE TABLE sums (number int PRIMARY KEY, sum int)")
	Good(err)
}

// A worker with a pool of its own. It polls so rarely that only a notification leads it to a job.
func newRunner(number int) (*river.Client[pgx.Tx], *pgxpool.Pool) {
	own, err := pgxpool.New(background, "pool_max_conns=4")
	Good(err)
	workers := river.NewWorkers()
	river.AddWorker(workers, sumWorker{})
	client, err := river.NewClient(riverpgxv5.New(own), &river.Config{
		FetchPollInterval: time.Hour,
		ID:                fmt.Sprintf("runner %d", number),
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 5}},
		Workers:           workers,
	})
	Good(err)
	return client, own
}

func runs(int) {
	type pair struct {
		client *river.Client[pgx.Tx]
		pool   *pgxpool.Pool
	}
	var pairs []pair
	for number := range runners {
		client, own := newRunner(number)
		Good(client.Start(background))
		pairs = append(pairs, pair{client, own})
	}
	inserter, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	Good(err)
	for number := range each {
		_, err := inserter.Insert(background, Sum{Number: number, Fails: number%10 == 0}, nil)
		Good(err)
	}
	// What is rolled back is never run; what is inserted with the user's data is run behind it.
	for number := each; number < 2*each; number++ {
		transaction, err := pool.Begin(background)
		Good(err)
		_, err = inserter.InsertTx(background, transaction, Sum{Number: number}, nil)
		Good(err)
		if number%2 == 0 {
			Good(transaction.Commit(background))
		} else {
			Good(transaction.Rollback(background))
		}
	}
	// River announces a job seldom enough that one may wait for the next, here of an even number.
	for nudges, before := 0, 0; ; {
		var done, right int
		Good(pool.QueryRow(background, "SELECT count(*), count(*) FILTER (WHERE sum = 2 * number"+
			" AND (number < $1 OR number % 2 = 0)) FROM sums", each).Scan(&done, &right))
		That(done == right, "%d of %d are right", right, done)
		if done == each+each/2+nudges {
			break
		}
		if done == before {
			That(nudges < 100, "only %d jobs were run", done)
			_, err := inserter.Insert(background, Sum{Number: 1000 + 2*nudges}, nil)
			Good(err)
			nudges++
		}
		before = done
		time.Sleep(300 * time.Millisecond)
	}
	for _, pair := range pairs {
		Good(pair.client.Stop(background))
		pair.pool.Close()
	}
}

func main() {
	os.Unsetenv("PGSERVICE")
	var err error
	pool, err = pgxpool.New(background, "pool_max_conns=3")
	Good(err)
	RunFor(1, "migrates", migrates)
	RunFor(1, "runs jobs that notifications announce", runs)
	pool.Close()
	Finish()
}

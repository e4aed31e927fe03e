// SPDX-License-Identifier: ISC

// Package check is what the programs of Go share: clients that work at once, and a report in TAP.
package check

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Clients is the number of clients at once.
const Clients = 6

// Heals is true where the pooler replays a batch that failed because a table has changed.
var Heals = os.Getenv("DRIVER_MODE") == "transaction"

// IsConsole is true where the database is the console.
var IsConsole = os.Getenv("DRIVER_MODE") == "console"

var results []bool

type wrong struct{ words string }

// That fails a check unless the condition holds.
func That(holds bool, words string, values ...any) {
	if !holds {
		panic(wrong{fmt.Sprintf(words, values...)})
	}
}

// Good fails a check if there is an error.
func Good(err error) {
	if err != nil {
		panic(wrong{fmt.Sprintf("%T: %v", err, err)})
	}
}

// HasCode fails a check unless the error is a server's with this SQLSTATE.
func HasCode(err error, code string) {
	var refusal interface {
		error
		SQLState() string
	}
	That(errors.As(err, &refusal), "no error %s: %v", code, err)
	That(refusal.SQLState() == code, "%s instead of %s: %v", refusal.SQLState(), code, err)
}

// Word has characters that wrong quoting or encoding would change.
const Word = "ünïcödé \\ '"

// When is a time that servers store without rounding.
var When = time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)

// Asker queries one row of one column as one of the clients, into a pointer of the column's type.
type Asker func(into any, query string, arguments ...any)

// HasName checks the application_name of a client.
func HasName(ask Asker, wanted string) {
	var name string
	ask(&name, "SHOW application_name")
	That(name == wanted, "is called %s", name)
}

// KeepsSettings checks repeatedly that these parameters are in force: name, value, …
func KeepsSettings(ask Asker, wanted ...string) {
	for range 10 {
		for i := 0; i < len(wanted); i += 2 {
			var said string
			ask(&said, "SELECT current_setting($1)", wanted[i])
			That(said == wanted[i+1], "%s is %s instead of %s", wanted[i], said, wanted[i+1])
		}
	}
}

// OwnAnswers sends in turn a query that all clients send, and one of this client only.
func OwnAnswers(ask Asker, number, turns int) {
	for turn := range turns {
		var sum int
		ask(&sum, "SELECT $1::int * 1000 + $2::int", number, turn)
		That(sum == number*1000+turn, "sum %d", sum)
		var word string
		ask(&word, fmt.Sprintf("SELECT '%d ' || $1::text", number), fmt.Sprint(turn))
		That(word == fmt.Sprintf("%d %d", number, turn), "word %s", word)
	}
}

// Run runs body(number) for every client at once; all have to succeed.
func Run(name string, body func(number int)) {
	RunFor(Clients, name, body)
}

// RunFor is Run for so many clients.
func RunFor(count int, name string, body func(number int)) {
	failures := make([]string, count)
	var group sync.WaitGroup
	for number := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			defer func() {
				if failure, is := recover().(wrong); is {
					failures[number] = failure.words
				}
			}()
			failures[number] = "it did not come to its end"
			body(number)
			failures[number] = ""
		}()
	}
	group.Wait()
	words := strings.Join(failures, "")
	results = append(results, words == "")
	if words == "" {
		fmt.Printf("ok %d - %s\n", len(results), name)
		return
	}
	fmt.Printf("not ok %d - %s\n", len(results), name)
	for _, failure := range failures {
		if failure != "" {
			fmt.Println("# " + strings.ReplaceAll(failure, "\n", "\n# "))
		}
	}
}

// Finish prints the number of checks, and exits with 0 if all were right.
func Finish() {
	fmt.Printf("1..%d\n", len(results))
	for _, good := range results {
		if !good {
			os.Exit(1)
		}
	}
	os.Exit(0)
}

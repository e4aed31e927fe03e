// SPDX-License-Identifier: ISC

// Package check is what the programs of Go share: clients that work at once, and a report in TAP.
package check

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Clients is how many work at once.
const Clients = 6

// HasSession tells that one client has its server for as long as it is connected.
var HasSession = os.Getenv("DRIVER_MODE") != "transaction"

// Heals tells that a statement whose table has changed is prepared anew, unseen.
var Heals = os.Getenv("DRIVER_MODE") == "transaction"

var results []bool

type wrong struct{ words string }

// That ends a check unless it holds.
func That(holds bool, words string, values ...any) {
	if !holds {
		panic(wrong{fmt.Sprintf(words, values...)})
	}
}

// Good ends a check if there is an error.
func Good(err error) {
	if err != nil {
		panic(wrong{fmt.Sprintf("%T: %v", err, err)})
	}
}

// Run runs body(number) for every client at once; all have to end well.
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

// Finish says how many there were, and ends: 0 if all were right.
func Finish() {
	fmt.Printf("1..%d\n", len(results))
	for _, good := range results {
		if !good {
			os.Exit(1)
		}
	}
	os.Exit(0)
}

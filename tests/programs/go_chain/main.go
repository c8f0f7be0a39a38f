// SPDX-License-Identifier: MIT

// Spends its time at the end of chains of calls, in main and in a goroutine, until standard input ends.
package main

import (
	"fmt"
	"os"
)

var sum int

//go:noinline
func spin(n int) {
	for i := 0; i < n; i++ {
		sum += i ^ sum
	}
}

//go:noinline
func step(n int) {
	spin(n)
	spin(n)
}

func work(turns chan int) {
	for {
		step(100000)
		turns <- 1
	}
}

func main() {
	turns := make(chan int)
	ended := make(chan bool)

	go work(turns)
	go func() {
		os.Stdin.Read(make([]byte, 1))
		ended <- true
	}()
	fmt.Println("ready")
	for {
		select {
		case <-turns:
			step(100000)
		case <-ended:
			return
		}
	}
}

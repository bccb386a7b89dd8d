// What measures the extender: an API server that answers at once, static replies, and kube-scheduler's cycle.
// The standard library alone: it is built without a network.
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func([]string) error{"apiserver": apiserver, "cycle": cycle}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: client apiserver|static|cycle [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

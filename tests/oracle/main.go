// Command dra-oracle answers JSON lines with what Kubernetes' own libraries say.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// commands holds one function a command, each in a file of its own.
var commands = map[string]func(line []byte) (any, error){
	"cel":          selector,
	"quantity":     quantity,
	"quantity-ops": quantityOperation,
	"semver":       semanticVersion,
}

func main() {
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: dra-oracle cel|quantity|quantity-ops|semver")
		os.Exit(2)
	}
	answer := commands[os.Args[1]]
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		value, err := answer(lines.Bytes())
		if err != nil {
			value = map[string]any{"error": err.Error()}
		}
		if err := encoder.Encode(value); err != nil {
			panic(err)
		}
	}
}

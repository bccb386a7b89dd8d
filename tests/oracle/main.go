// Command dra-oracle answers JSON lines with what Kubernetes' own libraries say, one line for each, at once.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// commands holds one function a command, each in a file of its own.
var commands = map[string]func(line []byte) (any, error){
	"allocate":     allocated,
	"cel":          evaluated,
	"cel-declared": declared,
	"footprint":    footprint,
	"quantity":     quantity,
	"quantity-ops": quantityOperation,
	"semver":       semanticVersion,
	"wire":         wire,
}

func main() {
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		names := make([]string, 0, len(commands))
		for name := range commands {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintln(os.Stderr, "usage: dra-oracle "+strings.Join(names, "|"))
		os.Exit(2)
	}
	if err := serve(os.Stdin, os.Stdout, commands[os.Args[1]]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(questions io.Reader, answers io.Writer, command func([]byte) (any, error)) error {
	lines := bufio.NewReader(questions)
	encoder := json.NewEncoder(answers)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := encoder.Encode(answer(command, line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answer makes an answer of everything that may go wrong: the lines after this one are still to be answered.
func answer(command func([]byte) (any, error), line []byte) (value any) {
	defer func() {
		if crash := recover(); crash != nil {
			value = failure{fmt.Sprint("panic: ", crash)}
		}
	}()
	value, err := command(line)
	if err != nil {
		return failure{err.Error()}
	}
	return value
}

type failure struct {
	Error string `json:"error"`
}

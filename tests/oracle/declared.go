package main

import (
	"slices"

	"github.com/google/cel-go/common/types"
)

// overload is one variant of a function of the environment.
type overload struct {
	Function   string   `json:"function"`
	IsMember   bool     `json:"isMember"`
	Parameters []string `json:"parameters"`
	Result     string   `json:"result"`
}

// declared lists every function and every macro of the environment in which selectors are compiled.
func declared([]byte) (any, error) {
	environment := carrier().Environment
	overloads, macros := []overload{}, []string{}
	functions := environment.Functions()
	for name, function := range functions {
		if function.IsDeclarationDisabled() {
			continue
		}
		for _, variant := range function.OverloadDecls() {
			overloads = append(overloads, overload{
				Function: name, IsMember: variant.IsMemberFunction(),
				Parameters: names(variant.ArgTypes()), Result: variant.ResultType().String(),
			})
		}
	}
	for _, macro := range environment.Macros() {
		macros = append(macros, macro.MacroKey())
	}
	slices.Sort(macros)
	return map[string]any{"overloads": overloads, "macros": macros}, nil
}

func names(given []*types.Type) []string {
	named := []string{}
	for _, one := range given {
		named = append(named, one.String())
	}
	return named
}

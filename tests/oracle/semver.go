package main

import (
	"encoding/json"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
)

// versionPrograms reach the normalisation of the API server's library, which is not exported, through CEL.
var versionPrograms = sync.OnceValues(func() (programs [2]cel.Program, err error) {
	environment, err := compiled("true", false).Environment.Extend(
		cel.Variable("text", cel.StringType), cel.Variable("other", cel.StringType), cel.Variable("normalize", cel.BoolType))
	if err != nil {
		return programs, err
	}
	for i, expression := range []string{
		"semver(text, normalize)",
		"semver(text, normalize).compareTo(semver(other, normalize))",
	} {
		ast, issues := environment.Compile(expression)
		if issues.Err() != nil {
			return programs, issues.Err()
		}
		if programs[i], err = environment.Program(ast); err != nil {
			return programs, err
		}
	}
	return programs, nil
})

func semanticVersion(line []byte) (any, error) {
	var question struct {
		Text      string
		Other     *string
		Normalize bool
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	programs, err := versionPrograms()
	if err != nil {
		return nil, err
	}
	variables := map[string]any{"text": question.Text, "normalize": question.Normalize}
	parsed, _, err := programs[0].Eval(variables)
	if err != nil {
		return nil, err
	}
	version := parsed.Value().(semver.Version)
	answer := map[string]any{
		"error": "", "string": version.String(), "major": version.Major, "minor": version.Minor, "patch": version.Patch,
	}
	if question.Other != nil {
		variables["other"] = *question.Other
		order, _, err := programs[1].Eval(variables)
		if err != nil {
			return nil, err
		}
		answer["compare"] = order.Value()
	}
	return answer, nil
}

package main

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/blang/semver/v4"
)

func semanticVersion(line []byte) (any, error) {
	var question struct {
		Text      string
		Normalize bool
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	version, err := read(question.Text, question.Normalize)
	if err != nil {
		return nil, err
	}
	return map[string]any{"error": "", "string": version.String()}, nil
}

// read normalises as the CEL library of the API server does, which unlike ParseTolerant keeps white space.
func read(text string, normalize bool) (semver.Version, error) {
	if !normalize {
		return semver.Parse(text)
	}
	if strings.TrimSpace(text) != text {
		return semver.Version{}, errors.New("white space around a version")
	}
	return semver.ParseTolerant(text)
}

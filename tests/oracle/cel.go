package main

import (
	"context"
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// selector answers whether a device selector compiles, and what it says of the device.
func selector(line []byte) (answer any, err error) {
	var question struct {
		Expression string
		Driver     string
		Device     resourceapi.Device
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	defer func() {
		if crash := recover(); crash != nil {
			answer, err = outcome("error", fmt.Sprint("panic: ", crash)), nil
		}
	}()
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	program := compiler.CompileCELExpression(question.Expression, dracel.Options{DisableCostEstimation: true})
	if program.Error != nil {
		return outcome("refused", program.Error.Error()), nil
	}
	matches, _, err := program.DeviceMatches(context.Background(), dracel.Device{
		Driver:                   question.Driver,
		AllowMultipleAllocations: question.Device.AllowMultipleAllocations,
		Attributes:               question.Device.Attributes,
		Capacity:                 question.Device.Capacity,
	})
	if err != nil {
		return outcome("error", err.Error()), nil
	}
	if matches {
		return outcome("match", ""), nil
	}
	return outcome("no", ""), nil
}

func outcome(word, reason string) map[string]string {
	return map[string]string{"outcome": word, "error": reason}
}

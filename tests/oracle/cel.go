package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	resourceapi "k8s.io/api/resource/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// verdict has one of the outcomes refused (it does not compile), error, match, no, and, where a value was asked for, value.
type verdict struct {
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	Value   any    `json:"value,omitempty"`
}

// evaluated compiles an expression as the mode says and evaluates it on a device: as a selector, as a derived
// attribute, or, in mode value, without a condition on its type.
func evaluated(line []byte) (answer any, err error) {
	var question struct {
		Expression, Driver, Mode string
		Device                   resourceapi.Device
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	defer func() {
		if crash := recover(); crash != nil {
			// The compiler crashes where it builds a map whose keys Go cannot hash. The API server survives that and
			// stores nothing. What crashes while it is evaluated is made an error by cel-go itself.
			answer, err = verdict{Outcome: "refused", Error: fmt.Sprint("panic: ", crash)}, nil
		}
	}()
	device := dracel.Device{
		Driver:                   question.Driver,
		AllowMultipleAllocations: question.Device.AllowMultipleAllocations,
		Attributes:               question.Device.Attributes,
		Capacity:                 question.Device.Capacity,
	}
	switch question.Mode {
	case "", "selector":
		return selected(question.Expression, device), nil
	case "attribute":
		return derived(question.Expression, device), nil
	case "value":
		return computed(question.Expression, device), nil
	default:
		return nil, fmt.Errorf("unknown mode %q", question.Mode)
	}
}

func compiled(expression string, isDerived bool) dracel.CompilationResult {
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	// The scheduler does not estimate either.
	return compiler.CompileCELExpression(expression, dracel.Options{DisableCostEstimation: true, DerivedAttribute: isDerived})
}

func selected(expression string, device dracel.Device) verdict {
	program := compiled(expression, false)
	if program.Error != nil {
		return verdict{Outcome: "refused", Error: program.Error.Error()}
	}
	matches, _, err := program.DeviceMatches(context.Background(), device)
	switch {
	case err != nil:
		return verdict{Outcome: "error", Error: err.Error()}
	case matches:
		return verdict{Outcome: "match"}
	default:
		return verdict{Outcome: "no"}
	}
}

func derived(expression string, device dracel.Device) verdict {
	program := compiled(expression, true)
	if program.Error != nil {
		return verdict{Outcome: "refused", Error: program.Error.Error()}
	}
	attribute, _, err := program.EvaluateDerivedAttribute(context.Background(), device)
	if err != nil {
		return verdict{Outcome: "error", Error: err.Error()}
	}
	return verdict{Outcome: "value", Value: attribute}
}

// carrier is a compiled selector whose program is exchanged for others: what upstream does around a program, such as
// making the variables out of the device, is then done for any expression.
var carrier = sync.OnceValue(func() dracel.CompilationResult { return compiled("true", false) })

func computed(expression string, device dracel.Device) verdict {
	carrying := carrier()
	ast, issues := carrying.Environment.Compile(expression)
	if issues != nil {
		return verdict{Outcome: "refused", Error: issues.String()}
	}
	program, err := carrying.Environment.Program(ast,
		cel.CostLimit(resourceapi.CELSelectorExpressionMaxCost), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return verdict{Outcome: "refused", Error: err.Error()}
	}
	witness := &witness{Program: program}
	carrying.Program = witness
	_, _, err = carrying.DeviceMatches(context.Background(), device)
	if witness.value == nil {
		return verdict{Outcome: "error", Error: err.Error()}
	}
	return verdict{Outcome: "value", Value: description(witness.value)}
}

// witness remembers the value before it must be a bool.
type witness struct {
	cel.Program
	value ref.Val
}

func (w *witness) ContextEval(ctx context.Context, variables any) (ref.Val, *cel.EvalDetails, error) {
	value, details, err := w.Program.ContextEval(ctx, variables)
	if err == nil {
		w.value = value
	}
	return value, details, err
}

package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

func quantity(line []byte) (any, error) {
	var question struct{ Text string }
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	value, err := resource.ParseQuantity(question.Text)
	if err != nil {
		return nil, err
	}
	return describedQuantity(value), nil
}

func quantityOperation(line []byte) (any, error) {
	var question struct{ Op, A, B string }
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	left, err := resource.ParseQuantity(question.A)
	if err != nil {
		return nil, err
	}
	if question.Op == "neg" {
		left.Neg()
		return describedQuantity(left), nil
	}
	if question.Op == "mul" {
		return product(left, question.B)
	}
	right, err := resource.ParseQuantity(question.B)
	if err != nil {
		return nil, err
	}
	switch question.Op {
	case "cmp":
		return map[string]any{"error": "", "compare": left.Cmp(right)}, nil
	case "add":
		left.Add(right)
	case "sub":
		left.Sub(right)
	default:
		return nil, fmt.Errorf("unknown operation %q", question.Op)
	}
	return describedQuantity(left), nil
}

func product(left resource.Quantity, factor string) (any, error) {
	number, err := strconv.ParseInt(factor, 10, 64)
	if err != nil {
		return nil, err
	}
	left.Mul(number)
	return describedQuantity(left), nil
}

// describedQuantity takes copies where a method may change how the quantity is held.
func describedQuantity(value resource.Quantity) map[string]any {
	whole, fits := value.AsInt64()
	decimal := value.DeepCopy()
	canonical := value.DeepCopy()
	number, suffix := canonical.CanonicalizeBytes(nil)
	return map[string]any{
		"error": "", "canonical": string(number) + string(suffix), "nanos": nanos(&decimal), "value": value.Value(),
		"milliValue": value.MilliValue(), "asInt64": []any{whole, fits}, "format": value.Format,
	}
}

func nanos(value *resource.Quantity) string {
	decimal := value.AsDec()
	digits := new(big.Int).Set(decimal.UnscaledBig())
	shift := 9 - int64(decimal.Scale())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(shift, -shift)), nil)
	if shift >= 0 {
		return digits.Mul(digits, power).String()
	}
	return digits.Quo(digits, power).String()
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	extender "k8s.io/kube-scheduler/extender/v1"
)

// requests and replies of each verb, as kube-scheduler declares them (pkg/scheduler/extender.go).
var (
	requests = map[string]func() any{
		"filter":     func() any { return &extender.ExtenderArgs{} },
		"prioritize": func() any { return &extender.ExtenderArgs{} },
		"preempt":    func() any { return &extender.ExtenderPreemptionArgs{} },
		"bind":       func() any { return &extender.ExtenderBindingArgs{} },
	}
	replies = map[string]func() any{
		"filter":     func() any { return &extender.ExtenderFilterResult{} },
		"prioritize": func() any { return &extender.HostPriorityList{} },
		"preempt":    func() any { return &extender.ExtenderPreemptionResult{} },
		"bind":       func() any { return &extender.ExtenderBindingResult{} },
	}
)

// wire answers with the body that kube-scheduler would send for "request", or with what it would understand of the
// bytes in "reply".
func wire(line []byte) (any, error) {
	var question struct {
		Verb    string
		Request json.RawMessage
		Reply   *string
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	if requests[question.Verb] == nil {
		return nil, fmt.Errorf("%q is no verb", question.Verb)
	}
	if question.Reply == nil {
		return sent(requests[question.Verb](), question.Request)
	}
	return understood(replies[question.Verb](), []byte(*question.Reply))
}

func sent(arguments any, request []byte) (any, error) {
	if err := json.Unmarshal(request, arguments); err != nil {
		return nil, err
	}
	body, err := json.Marshal(arguments)
	return map[string]string{"body": string(body)}, err
}

func understood(result any, reply []byte) (any, error) {
	if err := json.NewDecoder(bytes.NewReader(reply)).Decode(result); err != nil {
		return nil, err
	}
	return map[string]any{"understood": result}, nil
}

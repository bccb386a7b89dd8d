package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// described is a value of CEL for programs in other languages.
type described struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

func description(value ref.Val) described {
	switch value := value.(type) {
	case types.Null:
		return described{"null", nil}
	case types.Bool:
		return described{"bool", bool(value)}
	case types.Int:
		return described{"int", int64(value)}
	case types.Uint:
		return described{"uint", uint64(value)}
	case types.Double:
		// JSON has neither infinities nor a negative zero; the shortest text that reads as the same number is exact.
		return described{"double", strconv.FormatFloat(float64(value), 'g', -1, 64)}
	case types.String:
		return described{"string", string(value)}
	case types.Bytes:
		return described{"bytes", base64.StdEncoding.EncodeToString(value)}
	case types.Timestamp:
		return described{"timestamp", value.Time.Format(time.RFC3339Nano)}
	case types.Duration:
		return described{"duration", value.Duration.Nanoseconds()}
	case *types.Optional:
		return optional(value)
	case *types.Type:
		return described{"type", value.TypeName()}
	}
	return libraryDescription(value)
}

func libraryDescription(value ref.Val) described {
	switch value := value.(type) {
	case apiservercel.Quantity:
		decimal := value.Quantity.DeepCopy()
		return described{"quantity", nanos(&decimal) + "n"}
	case *apiservercel.Quantity: // what arithmetic makes
		decimal := value.Quantity.DeepCopy()
		return described{"quantity", nanos(&decimal) + "n"}
	case apiservercel.Semver:
		return described{"semver", value.Version.String()}
	case apiservercel.IP:
		return described{"ip", value.Addr.String()}
	case apiservercel.CIDR:
		return described{"cidr", value.Prefix.String()}
	case apiservercel.URL:
		return described{"url", value.URL.String()}
	case apiservercel.Format:
		return described{"format", value.Name}
	case *apiservercel.Format:
		return described{"format", value.Name}
	case traits.Mapper:
		return mapping(value)
	case traits.Lister:
		return list(value)
	default:
		return described{value.Type().TypeName(), fmt.Sprint(value.Value())}
	}
}

func optional(value *types.Optional) described {
	if !value.HasValue() {
		return described{"optional", nil}
	}
	return described{"optional", description(value.GetValue())}
}

func list(value traits.Lister) described {
	items := []described{}
	for iterator := value.Iterator(); iterator.HasNext() == types.True; {
		items = append(items, description(iterator.Next()))
	}
	return described{"list", items}
}

// mapping leaves the entries in any order, which is all the order they have.
func mapping(value traits.Mapper) described {
	entries := [][2]described{}
	for iterator := value.Iterator(); iterator.HasNext() == types.True; {
		key := iterator.Next()
		entries = append(entries, [2]described{description(key), description(value.Get(key))})
	}
	return described{"map", entries}
}

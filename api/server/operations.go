package server

import (
	"reflect"
	"strings"

	v1 "berth/api/v1"
)

// Operation is a route as the document describes it.
type Operation struct {
	Method, Path string // the path with its parameters in braces
	Scope        v1.Scope
	In, Out      reflect.Type // of the JSON of the body and of the answer; nil: none
	Public       bool         // needs no token
	Vendor       bool         // needs the vendor header
	TokenInQuery bool
	Idempotent   bool // takes an idempotency key
}

// Operations returns all routes.
func Operations() (list []Operation) {
	for _, r := range routes(handlers{}, decoder{}) {
		list = append(list, Operation{
			Method: r.method, Path: braces(r.path), Scope: r.scope, In: r.in, Out: r.out,
			Public: r.is(public), Vendor: !r.is(public | anyAccept), TokenInQuery: r.is(queryToken),
			Idempotent: r.method == post && r.out != nil,
		})
	}
	return list
}

// braces converts :id to {id}.
func braces(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, ":"); is {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"strconv"
)

// pageSize is the number of items of one request of an iteration.
const pageSize = 500

// pages yields the items of a list, which its answer has in the field name, and gets
// one page after the other. It ends with the first error.
func pages[T any](ctx context.Context, c *Client, path, name string, parameters url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		values := maps.Clone(parameters)
		if values == nil {
			values = url.Values{}
		}
		values.Set("limit", strconv.Itoa(pageSize))
		for {
			items, next, err := getPage[T](ctx, c, path+"?"+values.Encode(), name)
			if err != nil {
				yield(zero, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			values.Set("continue", next)
		}
	}
}

func getPage[T any](ctx context.Context, c *Client, path, name string) (items []T, next string, err error) {
	var body map[string]json.RawMessage
	if err := c.get(ctx, path, &body); err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(body[name], &items); err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	if body["continue"] != nil {
		err = json.Unmarshal(body["continue"], &next)
	}
	return items, next, err
}

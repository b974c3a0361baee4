package server

import (
	"encoding/base64"
	"iter"
	"strconv"
	"strings"

	v1 "berth/api/v1"
)

const (
	maxPage     = 1000 // items of one page
	maxContinue = 512  // characters
	pageFormat  = "1:" // begins a decoded continuation
)

var errContinue = v1.Errorf(v1.InvalidRequest, "continue: must be the value of a response to this list")

// listPage is the part of a list that a request asks for. The zero listPage is the whole list.
type listPage struct {
	limit int    // items; 0: all
	after string // the item before the first one; empty: none
}

// pageOf returns the page of the query parameters limit and continue.
func pageOf(c *call) (p listPage, err error) {
	if text := c.Query("limit"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n < 1 || n > maxPage {
			return p, v1.Errorf(v1.InvalidRequest, "limit: must be a number between 1 and %d", maxPage)
		}
		p.limit = int(n)
	}
	text := c.Query("continue")
	if text == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	after, is := strings.CutPrefix(string(raw), pageFormat)
	if err != nil || !is || after == "" || len(text) > maxContinue || strings.Contains(after, "\x00") {
		return p, errContinue
	}
	p.after = after
	return p, nil
}

// continuation returns the query parameter for the page behind an item.
func continuation(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(pageFormat + last))
}

// take returns the items of a page, and the continuation if there are more. Items come
// with the text that identifies them, in its order, from the first one of the page on.
func take[T any](p listPage, items iter.Seq2[string, T]) (list []T, next string) {
	list = []T{}
	last := ""
	for id, item := range items {
		if p.limit > 0 && len(list) == p.limit {
			return list, continuation(last)
		}
		list, last = append(list, item), id
	}
	return list, ""
}

// listShown returns a page of objects, which come sorted by id from the first one of the page on. It has
// the results of show, except where show returns false.
func listShown[S, T, V any](p listPage, found iter.Seq[v1.Object[S, T]], show func(v1.Object[S, T]) (V, bool)) (list []V, next string) {
	return take(p, func(yield func(string, V) bool) {
		for o := range found {
			if v, shown := show(o); shown && !yield(o.Meta.ID, v) {
				return
			}
		}
	})
}

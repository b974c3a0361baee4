// Package http measures what the real berth's interface bears from bad clients,
// seen by a good one beside them:
//
//	go test -run '^$' -bench . -benchtime 1x ./hack/bench/http
package http

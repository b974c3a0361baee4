// Package life measures berth against the bare Docker API, alternating in one
// run and with the same container settings: starts, kills, fifty containers at
// once, and how soon a killed daemon serves again.
//
//	go test -run '^$' -bench . -benchtime 25x ./hack/bench/life
//
// BenchmarkCluster measures the same on the cluster of hack/kube; only starts at once have a floor:
//
//	hack/kube/kube.sh with go test -tags cluster -run '^$' -bench Cluster -benchtime 1x ./hack/bench/life
package life

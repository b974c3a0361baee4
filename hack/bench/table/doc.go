// Package table collects the results of benchmarks for the table that make bench
// prints: berth beside its floor, and the goal of their ratio.
package table

package table

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
)

// fileVariable names the environment variable with the file that rows are appended to.
const fileVariable = "BERTH_BENCH_TABLE"

// Goal is a bound on the ratio of berth to its floor, or on berth's value if there is no
// floor.
type Goal struct {
	bound   float64
	atLeast bool
}

// AtLeast returns the goal of values from bound on.
func AtLeast(bound float64) Goal { return Goal{bound, true} }

// AtMost returns the goal of values up to bound.
func AtMost(bound float64) Goal { return Goal{bound, false} }

// met reports whether a value reaches the goal.
func (g Goal) met(value float64) bool {
	if g.atLeast {
		return value >= g.bound
	}
	return value <= g.bound
}

// String returns the goal as the table shows it.
func (g Goal) String() string {
	if g.atLeast {
		return "≥ " + number(g.bound)
	}
	return "≤ " + number(g.bound)
}

// Row is one line of the table.
type Row struct {
	Measure string
	Unit    string    // of Berth and Floor
	Berth   []float64 // the median of these
	Floor   []float64 // the same; empty: the measure has no floor
	Goal    Goal
}

// Add shows a row, and appends it to the file of make bench, if there is one.
func Add(b testing.TB, r Row) {
	b.Helper()
	line := r.line()
	b.Log(line)
	path := os.Getenv(fileVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		b.Fatal(err)
	}
}

func (r Row) line() string {
	berth := Median(r.Berth)
	value, floor, ratio := berth, "-", "-"
	if len(r.Floor) > 0 {
		value = berth / Median(r.Floor)
		floor, ratio = number(Median(r.Floor)), strconv.FormatFloat(value, 'f', 3, 64)
	}
	met := "no"
	if r.Goal.met(value) {
		met = "yes"
	}
	return fmt.Sprintf("%-58s %10s %10s %-8s %7s %9s %s", r.Measure, number(berth), floor, r.Unit, ratio, r.Goal, met)
}

// Median returns the median of values, which must not be empty.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// number returns four significant digits.
func number(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }
